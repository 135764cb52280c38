# SPDX-License-Identifier: Apache-2.0
"""Locking and unlocking, told by a logind and a screen saver of our own on a bus of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.platform.lock import BusWatch, LockState, LogindLock, ScreenSaverLock
from app.platform.lock_macos import MEANINGS, MacLockWatch
from app.platform.lock_windows import WM_WTSSESSION_CHANGE, is_locked_by
from app.platform.secure_input import SecureInputWatch, secure_input_question
from tests.helpers.waiting import wait_until

jeepney = pytest.importorskip("jeepney")
if sys.platform.startswith("linux"):
    from jeepney import DBusAddress, HeaderFields, MessageType, new_method_return, new_signal
    from jeepney.bus_messages import message_bus
    from jeepney.io.blocking import Proxy, open_dbus_connection

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None,
    reason="needs Linux and dbus-daemon",
)
PATH = "/org/freedesktop/login1/session/auto"
SESSION = "org.freedesktop.login1.Session"


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bus that is the system bus and the session bus of this test."""
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert daemon.stdout is not None
    address = daemon.stdout.readline().strip()
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    yield address
    daemon.kill()
    daemon.wait(10)
    daemon.stdout.close()


class Logind:
    """Answers the question for LockedHint, and sends signals."""

    def __init__(self, address: str, is_locked: bool) -> None:
        self._bus = open_dbus_connection(bus=address)
        self._is_locked = is_locked
        Proxy(message_bus, self._bus).RequestName("org.freedesktop.login1")
        self.asked = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def send(
        self, interface: str, member: str, signature: str = "", body: tuple[Any, ...] = ()
    ) -> None:
        self._bus.send(new_signal(DBusAddress(PATH, interface=interface), member, signature, body))

    def close(self) -> None:
        import socket

        self._bus.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._bus.close()

    def _serve(self) -> None:
        try:
            while True:
                message = self._bus.receive()
                fields = message.header.fields
                if (
                    message.header.message_type is MessageType.method_call
                    and fields.get(HeaderFields.member) == "Get"
                ):
                    answer = (("b", self._is_locked),)
                    self._bus.send(new_method_return(message, "v", answer))
                    self.asked.set()
        except (OSError, ConnectionError):
            return


class Heard:
    """What the companion would be told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.state = LockState(
            lambda: self.calls.append("locked"), lambda: self.calls.append("unlocked")
        )


@on_linux
def test_logind_tells_of_locking(bus: str) -> None:
    logind, heard = Logind(bus, is_locked=False), Heard()
    watch = BusWatch("SYSTEM", LogindLock(heard.state.listener("logind")))
    watch.start()
    assert logind.asked.wait(5)
    logind.send(SESSION, "Lock")
    wait_until(lambda: heard.calls == ["locked"])
    changed = (SESSION, {"LockedHint": ("b", False), "IdleHint": ("b", True)}, [])
    logind.send("org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", changed)
    wait_until(lambda: heard.calls == ["locked", "unlocked"])
    other = ("org.freedesktop.login1.Seat", {"LockedHint": ("b", True)}, [])
    logind.send("org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", other)
    logind.send(SESSION, "Lock")
    logind.send(SESSION, "Unlock")
    wait_until(lambda: heard.calls == ["locked", "unlocked"] * 2)
    watch.stop()
    watch.stop()
    logind.close()


@on_linux
def test_a_session_that_is_locked_at_the_start_counts(bus: str) -> None:
    logind, heard = Logind(bus, is_locked=True), Heard()
    watch = BusWatch("SYSTEM", LogindLock(heard.state.listener("logind")))
    watch.start()
    wait_until(lambda: heard.calls == ["locked"])
    watch.stop()
    logind.close()


@on_linux
@pytest.mark.parametrize("name", ["org.gnome.ScreenSaver", "org.freedesktop.ScreenSaver"])
def test_screen_savers_tell_too(bus: str, name: str) -> None:
    logind, heard = Logind(bus, is_locked=False), Heard()
    watch = BusWatch("SESSION", ScreenSaverLock(heard.state.listener("saver")))
    watch.start()
    logind.send("org.example.Music", "ActiveChanged", "b", (True,))

    def repeat() -> bool:
        logind.send(name, "ActiveChanged", "b", (True,))
        return heard.calls == ["locked"]

    wait_until(repeat)
    logind.send(name, "ActiveChanged", "b", (False,))
    wait_until(lambda: heard.calls[-1:] == ["unlocked"])
    watch.stop()
    logind.close()


@on_linux
@pytest.mark.expected_log("nobody tells any more of locking")
def test_a_bus_that_goes_away_is_no_crash(bus: str) -> None:
    logind, heard = Logind(bus, is_locked=False), Heard()
    watch = BusWatch("SYSTEM", LogindLock(heard.state.listener("logind")))
    watch.start()
    assert logind.asked.wait(5)
    assert watch._connection is not None
    watch._connection.sock.shutdown(2)
    watch._thread.join(5)
    watch.stop()
    logind.close()
    assert heard.calls == []


def test_without_a_bus_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/at/all")
    watch = BusWatch("SYSTEM", LogindLock(lambda _locked: None))
    watch.start()
    watch.stop()


def test_it_is_locked_while_any_source_says_so() -> None:
    heard = Heard()
    one, two = heard.state.listener("one"), heard.state.listener("two")
    for say, is_locked in ((one, True), (one, True), (two, True), (one, False), (two, False)):
        say(is_locked)
    two(False)
    assert heard.calls == ["locked", "unlocked"]


@pytest.mark.parametrize(
    ("event", "expected"), [(7, True), (8, False), (2, True), (1, False), (4, True), (5, None)]
)
def test_messages_of_windows(event: int, expected: bool | None) -> None:
    assert is_locked_by(WM_WTSSESSION_CHANGE, event) is expected
    assert is_locked_by(0x0010, event) is None


def test_notifications_of_macos() -> None:
    blocks: dict[str, Callable[[Any], None]] = {}
    removed: list[str] = []

    class Center:
        def addObserverForName_object_queue_usingBlock_(
            self, name: str, _object: None, _queue: None, block: Callable[[Any], None]
        ) -> str:
            blocks[name] = block
            return name

        def removeObserver_(self, observer: str) -> None:
            removed.append(observer)

    said: list[bool] = []
    watch = MacLockWatch(said.append, Center)
    watch.start()
    for name in MEANINGS:
        blocks[name](None)
    watch.stop()
    assert said == [True, False]
    assert sorted(removed) == sorted(MEANINGS)


def test_secure_input_of_macos_is_looked_at() -> None:
    heard = Heard()
    is_on = threading.Event()
    watch = SecureInputWatch(heard.state.listener("secure input"), is_on.is_set, look_s=0.01)
    watch.start()
    is_on.set()
    wait_until(lambda: heard.calls == ["locked"])
    is_on.clear()
    wait_until(lambda: heard.calls == ["locked", "unlocked"])
    watch.stop()
    watch.stop()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has it")
def test_elsewhere_there_is_no_secure_input_to_ask_for() -> None:
    assert secure_input_question() is None
