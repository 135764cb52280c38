# SPDX-License-Identifier: Apache-2.0
"""The portal's side of shortcuts, played by a desktop of our own on a bus of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.hotkey import portal as portal_module
from app.hotkey.bindings import HotkeyAction, parse
from app.hotkey.portal import PortalHotkeys
from tests.helpers.waiting import wait_until

jeepney = pytest.importorskip("jeepney")
if sys.platform.startswith("linux"):
    from jeepney import (
        DBusAddress,
        HeaderFields,
        MessageType,
        new_error,
        new_method_return,
        new_signal,
    )
    from jeepney.bus_messages import message_bus
    from jeepney.io.blocking import Proxy, open_dbus_connection

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None,
    reason="needs Linux and dbus-daemon",
)
PATH = "/org/freedesktop/portal/desktop"
SHORTCUTS = "org.freedesktop.portal.GlobalShortcuts"
WANTED = {
    HotkeyAction.ASK: parse("<ctrl>+<alt>+a"),
    HotkeyAction.PAUSE: parse("<ctrl>+<alt>+p"),
}


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert daemon.stdout is not None
    address = daemon.stdout.readline().strip()
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    yield address
    daemon.kill()
    daemon.wait(10)
    daemon.stdout.close()


class Portal:
    """Answers as xdg-desktop-portal does. `code` is that of each Response; `has` False: no such portal."""

    def __init__(self, address: str, *, code: int = 0, has: bool = True, takes: int = 9) -> None:
        self._bus = open_dbus_connection(bus=address)
        Proxy(message_bus, self._bus).RequestName("org.freedesktop.portal.Desktop")
        self._code, self._has, self._takes = code, has, takes
        self.session = ""
        self.bound: list[tuple[str, dict[str, Any]]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def press(self, name: str, session: str | None = None) -> None:
        address = DBusAddress(PATH, interface=SHORTCUTS)
        body = (session or self.session, name, 0, {})
        self._bus.send(new_signal(address, "Activated", "osta{sv}", body))

    def close(self) -> None:
        self._bus.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._bus.close()

    def _serve(self) -> None:
        try:
            while True:
                message = self._bus.receive()
                if message.header.message_type is MessageType.method_call:
                    self._answer(message)
        except (OSError, ConnectionError):
            return

    def _answer(self, message: Any) -> None:
        fields = message.header.fields
        member, sender = fields[HeaderFields.member], fields[HeaderFields.sender]
        if member == "Register" or not self._has:
            self._bus.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))
            return
        name = sender.removeprefix(":").replace(".", "_")
        options = message.body[0] if member == "CreateSession" else message.body[3]
        request = f"{PATH}/request/{name}/{options['handle_token'][1]}"
        self._bus.send(new_method_return(message, "o", (request,)))
        results: dict[str, Any] = {}
        if member == "CreateSession":
            self.session = f"{PATH}/session/{name}/{options['session_handle_token'][1]}"
            results["session_handle"] = ("s", self.session)
        else:
            assert message.body[0] == self.session
            self.bound = message.body[1][: self._takes]
            results["shortcuts"] = ("a(sa{sv})", self.bound)
        address = DBusAddress(request, interface="org.freedesktop.portal.Request")
        self._bus.send(new_signal(address, "Response", "ua{sv}", (self._code, results)))


def test_shortcuts_are_bound_and_their_presses_come(bus: str) -> None:
    portal, pressed = Portal(bus), []
    source = PortalHotkeys()
    source.start(WANTED, pressed.append)
    wait_until(lambda: len(portal.bound) == 2)
    assert portal.bound[0] == (
        "ask",
        {"description": ("s", "Ask Thock"), "preferred_trigger": ("s", "CTRL+ALT+a")},
    )
    portal.press("ask", session=f"{PATH}/session/somebody/else")
    portal.press("no-such-action")
    portal.press("pause")
    portal.press("ask")
    wait_until(lambda: len(pressed) == 2)
    assert pressed == [HotkeyAction.PAUSE, HotkeyAction.ASK]
    source.stop()
    source.stop()
    portal.close()


@pytest.mark.expected_log("said no to the shortcuts")
def test_a_no_of_the_person_is_told(bus: str, caplog: pytest.LogCaptureFixture) -> None:
    portal = Portal(bus, code=1)
    source = PortalHotkeys()
    source.start(WANTED, lambda _action: None)
    wait_until(lambda: "said no" in caplog.text)
    source.stop()
    portal.close()


@pytest.mark.expected_log("no portal for shortcuts")
def test_a_desktop_without_the_portal_is_told(bus: str, caplog: pytest.LogCaptureFixture) -> None:
    portal = Portal(bus, has=False)
    source = PortalHotkeys()
    source.start(WANTED, lambda _action: None)
    wait_until(lambda: "no portal" in caplog.text)
    source.stop()
    portal.close()


@pytest.mark.expected_log("did not take the shortcut pause")
def test_a_shortcut_that_the_desktop_does_not_take_is_told(
    bus: str, caplog: pytest.LogCaptureFixture
) -> None:
    portal = Portal(bus, takes=1)
    source = PortalHotkeys()
    source.start(WANTED, lambda _action: None)
    wait_until(lambda: "did not take" in caplog.text)
    source.stop()
    portal.close()


class FakeBus:
    """Where the end of the connection does not end what the thread does."""

    def __init__(self) -> None:
        self.sock, self._theirs = socket.socketpair()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
        self.sock.close()
        self._theirs.close()


@pytest.mark.parametrize("ends", [True, False])
def test_a_bus_is_closed_only_when_nobody_reads_it(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(portal_module, "_CALL_S", 30.0 if ends else 0.05)
    bus, may_end, hotkeys = FakeBus(), threading.Event(), PortalHotkeys()
    hotkeys._bus = bus  # type: ignore[assignment]  # what of a bus is used here
    hotkeys._thread = threading.Thread(target=may_end.wait, args=(60,))
    hotkeys._thread.start()
    if ends:
        may_end.set()
    thread = hotkeys._thread
    hotkeys.stop()
    assert bus.is_closed is ends
    may_end.set()
    thread.join()
    bus.close()
