# SPDX-License-Identifier: Apache-2.0
"""Shortcuts on Wayland: the desktop asks the person, and tells of nothing but these combinations.

org.freedesktop.portal.GlobalShortcuts (flatpak.github.io/xdg-desktop-portal). Every call is answered by a
signal Response at a path that follows from our name on the bus and a token that we choose.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

from app.hotkey.bindings import Combination, HotkeyAction
from app.hotkey.source import Bindings, HotkeysUnavailableError, Press
from engine.texts import Text

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

_log = logging.getLogger(__name__)

_NAME = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_SHORTCUTS = "org.freedesktop.portal.GlobalShortcuts"
_REQUEST = "org.freedesktop.portal.Request"
_REGISTRY = "org.freedesktop.host.portal.Registry"
_APP_ID = "org.thock.Thock"
# The person may be asked, and may take a while.
_ANSWER_S = 120.0
_CALL_S = 10.0

_TRIGGER_NAMES = {"ctrl": "CTRL", "alt": "ALT", "shift": "SHIFT", "cmd": "LOGO"}
_KEYSYMS = {
    "space": "space", "tab": "Tab", "enter": "Return", "esc": "Escape", "home": "Home", "end": "End",
    "insert": "Insert", "delete": "Delete", "backspace": "BackSpace", "page_up": "Prior",
    "page_down": "Next", "up": "Up", "down": "Down", "left": "Left", "right": "Right",
    "pause": "Pause", "print_screen": "Print", "menu": "Menu", "+": "plus",
}  # fmt: skip

DESCRIPTIONS = {
    HotkeyAction.ASK: "Ask Thock",
    HotkeyAction.PAUSE: "Pause or resume Thock",
    HotkeyAction.CANCEL: "Cancel Thock's answer",
    HotkeyAction.NEXT_MODE: "Next mode of Thock",
}


def trigger(combination: Combination) -> str:
    """As the shortcuts specification of freedesktop.org writes it: `CTRL+ALT+a`."""
    parts = [text for name, text in _TRIGGER_NAMES.items() if name in combination.modifiers]
    key = combination.key
    name = _KEYSYMS.get(key) or (key.upper() if len(key) > 1 else key)
    return "+".join([*parts, name])


class PortalHotkeys:
    """One session with the portal."""

    def __init__(self) -> None:
        self._bus: DBusConnection | None = None
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    def start(self, wanted: Bindings, press: Press) -> None:
        try:
            from jeepney.io.blocking import open_dbus_connection

            bus = open_dbus_connection(bus="SESSION")
        except (ImportError, OSError, ValueError, KeyError) as error:
            raise HotkeysUnavailableError(
                Text("on Wayland shortcuts need jeepney and a session bus: {error}", error=error)
            ) from error
        self._bus = bus
        self._thread = threading.Thread(
            target=self._run, args=(bus, wanted, press), name="thock-portal", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None and self._thread is not None:
            self._is_stopping = True
            with contextlib.suppress(OSError):
                bus.sock.shutdown(socket.SHUT_RDWR)
            self._thread.join(_CALL_S)
            if not self._thread.is_alive():  # else it may still read
                bus.close()

    def _run(self, bus: DBusConnection, wanted: Bindings, press: Press) -> None:
        try:
            self._listen(bus, wanted, press)
        except HotkeysUnavailableError as error:
            if not self._is_stopping:
                _log.warning("no shortcuts: %s", error)
        except Exception as error:  # noqa: BLE001  the thread's top: the bus may go away at any time
            if not self._is_stopping:
                _log.warning("no shortcuts any more: %s", type(error).__name__)

    def _listen(self, bus: DBusConnection, wanted: Bindings, press: Press) -> None:
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import Proxy

        activated = {
            "type": "signal", "interface": _SHORTCUTS, "member": "Activated", "path": _PATH,
        }  # fmt: skip
        Proxy(message_bus, bus).AddMatch(MatchRule(sender=_NAME, **activated))
        with bus.filter(MatchRule(**activated)) as signals:
            self._register(bus)
            session = self._create_session(bus)
            self._bind(bus, session, wanted)
            while not self._is_stopping:
                body = bus.recv_until_filtered(signals).body
                if body[0] == session and body[1] in wanted:
                    press(HotkeyAction(body[1]))

    def _register(self, bus: DBusConnection) -> None:
        """Newer portals want to know which program asks; older ones do not know the question."""
        from jeepney import DBusAddress, new_method_call

        address = DBusAddress(_PATH, bus_name=_NAME, interface=_REGISTRY)
        call = new_method_call(address, "Register", "sa{sv}", (_APP_ID, {}))
        bus.send_and_get_reply(call, timeout=_CALL_S)

    def _create_session(self, bus: DBusConnection) -> str:
        token = _token()
        options = {"handle_token": ("s", token), "session_handle_token": ("s", _token())}
        results = self._ask(bus, "CreateSession", "a{sv}", (options,), token)
        return str(results["session_handle"][1])

    def _bind(self, bus: DBusConnection, session: str, wanted: Bindings) -> None:
        token = _token()
        shortcuts = [
            (
                action.value,
                {
                    "description": ("s", DESCRIPTIONS[action]),
                    "preferred_trigger": ("s", trigger(combination)),
                },
            )
            for action, combination in wanted.items()
        ]
        body = (session, shortcuts, "", {"handle_token": ("s", token)})
        results = self._ask(bus, "BindShortcuts", "oa(sa{sv})sa{sv}", body, token)
        bound = {name for name, _ in results.get("shortcuts", ("", []))[1]}
        for action in wanted:
            if action.value not in bound:
                _log.warning("the desktop did not take the shortcut %s", action.value)

    def _ask(
        self, bus: DBusConnection, member: str, signature: str, body: tuple[Any, ...], token: str
    ) -> dict[str, Any]:
        """Call, and wait for the Response; its results.

        Raises:
            HotkeysUnavailableError: there is no such portal, or the person said no.
        """
        from jeepney import DBusAddress, MatchRule, MessageType, message_bus, new_method_call
        from jeepney.io.blocking import Proxy

        sender = bus.unique_name.removeprefix(":").replace(".", "_")
        response = {
            "type": "signal", "interface": _REQUEST, "member": "Response",
            "path": f"{_PATH}/request/{sender}/{token}",
        }  # fmt: skip
        Proxy(message_bus, bus).AddMatch(MatchRule(sender=_NAME, **response))
        with bus.filter(MatchRule(**response)) as answers:
            address = DBusAddress(_PATH, bus_name=_NAME, interface=_SHORTCUTS)
            reply = bus.send_and_get_reply(
                new_method_call(address, member, signature, body), timeout=_CALL_S
            )
            if reply.header.message_type is MessageType.error:
                raise HotkeysUnavailableError("this desktop has no portal for shortcuts")
            code, results = bus.recv_until_filtered(answers, timeout=_ANSWER_S).body
        if code != 0:
            raise HotkeysUnavailableError("the desktop, or you, said no to the shortcuts")
        answer: dict[str, Any] = results
        return answer


def _token() -> str:
    return f"thock_{secrets.token_hex(8)}"
