# SPDX-License-Identifier: Apache-2.0
"""Tells when the screen is locked and when it is open again.

Linux: logind says so on the system bus (property LockedHint of our session, signals Lock and Unlock;
org.freedesktop.login1(5)), and the screen savers of most desktops on the session bus (ActiveChanged of
org.gnome.ScreenSaver, org.freedesktop.ScreenSaver and their like). Desktops keep to one or the other or
both, so the screen counts as locked while any of them says so.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from app.platform.secure_input import SecureInputWatch, secure_input_question

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

_log = logging.getLogger(__name__)

_LOGIN = "org.freedesktop.login1"
_SESSION = "org.freedesktop.login1.Session"
# logind's own name for the session of whoever asks.
_SESSION_PATH = "/org/freedesktop/login1/session/auto"
_PROPERTIES = "org.freedesktop.DBus.Properties"

Listener = Callable[[bool], None]


class Watch(Protocol):
    """Something that tells of locking, on a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class LockState:
    """Joins what several sources say; `locked` and `unlocked` are called when the whole changes."""

    def __init__(self, locked: Callable[[], None], unlocked: Callable[[], None]) -> None:
        self._locked = locked
        self._unlocked = unlocked
        self._lock = threading.Lock()
        self._saying: set[str] = set()

    def listener(self, source: str) -> Listener:
        """Takes what `source` says."""

        def say(is_locked: bool) -> None:
            with self._lock:
                before = bool(self._saying)
                (self._saying.add if is_locked else self._saying.discard)(source)
                after = bool(self._saying)
                if after and not before:
                    self._locked()
                elif before and not after:
                    self._unlocked()

        return say


def lock_watches(state: LockState) -> list[Watch]:
    """All that this system has. None of them starts by itself."""
    if sys.platform == "win32":
        from app.platform.lock_windows import WindowsLockWatch

        return [WindowsLockWatch(state.listener("windows"))]
    if sys.platform == "darwin":
        from app.platform.lock_macos import MacLockWatch

        watches: list[Watch] = [MacLockWatch(state.listener("macos"))]
        question = secure_input_question()
        if question is not None:
            watches.append(SecureInputWatch(state.listener("secure input"), question))
        return watches
    return [
        BusWatch("SYSTEM", LogindLock(state.listener("logind"))),
        BusWatch("SESSION", ScreenSaverLock(state.listener("screen saver"))),
    ]


class BusSource(Protocol):
    """What is listened to on one bus."""

    def begin(self, bus: DBusConnection) -> None:
        """Ask for signals, and for the present state."""
        ...

    def take(self, message: Any) -> None:
        """A signal came."""
        ...


class BusWatch:
    """Gives the signals of one bus to a source. Without a bus, or without jeepney, it does nothing."""

    def __init__(self, bus: str, source: BusSource) -> None:
        self._bus = bus
        self._source = source
        self._connection: DBusConnection | None = None
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="thock-lock", daemon=True)

    def start(self) -> None:
        try:
            from jeepney.io.blocking import open_dbus_connection

            self._connection = open_dbus_connection(bus=self._bus)
        except (ImportError, OSError, ValueError, KeyError) as error:
            _log.info("the %s bus does not tell of locking: %s", self._bus.lower(), error)
            return
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Safe to call twice, and without `start`."""
        self._is_stopping = True
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # ends the read in the thread
            self._thread.join()
            connection.close()

    def _run(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            self._source.begin(connection)
            while not self._is_stopping:
                self._source.take(connection.receive())
        except Exception as error:  # noqa: BLE001  the thread's top: the bus may go away at any time
            if not self._is_stopping:
                _log.warning("nobody tells any more of locking: %s", type(error).__name__)


class LogindLock:
    """Our session, as logind sees it."""

    def __init__(self, say: Listener) -> None:
        self._say = say

    def begin(self, bus: DBusConnection) -> None:
        from jeepney import DBusAddress, MatchRule, Properties, message_bus
        from jeepney.io.blocking import Proxy

        add = Proxy(message_bus, bus).AddMatch
        add(MatchRule(type="signal", sender=_LOGIN, interface=_SESSION))
        add(
            MatchRule(
                type="signal", sender=_LOGIN, interface=_PROPERTIES, member="PropertiesChanged"
            )
        )
        session = DBusAddress(_SESSION_PATH, bus_name=_LOGIN, interface=_SESSION)
        reply = bus.send_and_get_reply(Properties(session).get("LockedHint"), timeout=5)
        match reply.body:
            case (("b", bool(is_locked)),):
                self._say(is_locked)

    def take(self, message: Any) -> None:
        from jeepney import HeaderFields

        fields = message.header.fields
        member, body = fields.get(HeaderFields.member), message.body
        match fields.get(HeaderFields.interface), member, body:
            case (interface, "Lock", _) if interface == _SESSION:
                self._say(True)
            case (interface, "Unlock", _) if interface == _SESSION:
                self._say(False)
            case (
                interface,
                "PropertiesChanged",
                (changed, {"LockedHint": ("b", is_locked)}, _),
            ) if interface == _PROPERTIES and changed == _SESSION:
                self._say(bool(is_locked))


class ScreenSaverLock:
    """The screen saver of the desktop; which one tells does not matter."""

    def __init__(self, say: Listener) -> None:
        self._say = say

    def begin(self, bus: DBusConnection) -> None:
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import Proxy

        Proxy(message_bus, bus).AddMatch(MatchRule(type="signal", member="ActiveChanged"))

    def take(self, message: Any) -> None:
        from jeepney import HeaderFields

        fields = message.header.fields
        interface = fields.get(HeaderFields.interface, "")
        if fields.get(HeaderFields.member) == "ActiveChanged" and interface.endswith(
            ".ScreenSaver"
        ):
            match message.body:
                case (bool(is_active),):
                    self._say(is_active)
