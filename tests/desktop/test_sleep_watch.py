# SPDX-License-Identifier: Apache-2.0
"""Before sleep and after it, told by a logind of our own on a bus of its own."""

from __future__ import annotations

import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from app.platform.sleep import NoSleepSignalsError, SleepWatch, system_bus
from tests.helpers.waiting import wait_until

jeepney = pytest.importorskip("jeepney")
if sys.platform.startswith("linux"):
    from jeepney import DBusAddress, HeaderFields, new_method_return, new_signal
    from jeepney.bus_messages import message_bus
    from jeepney.io.blocking import DBusConnection, Proxy, open_dbus_connection

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("dbus-daemon") is None,
    reason="needs Linux and dbus-daemon",
)


class Logind:
    """Answers Inhibit with one end of a pipe and sends PrepareForSleep."""

    def __init__(self, address: str) -> None:
        self._bus = open_dbus_connection(bus=address, enable_fds=True)
        Proxy(message_bus, self._bus).RequestName("org.freedesktop.login1")
        self._held: list[int] = []  # our ends of the pipes
        self._lock = threading.Lock()
        self.asked: list[tuple[str, ...]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def is_held_up(self) -> bool:
        """Whether any lock is still open."""
        with self._lock:
            for end in self._held:
                try:
                    if os.read(end, 1):
                        raise AssertionError("nobody writes")
                except BlockingIOError:
                    return True
        return False

    def prepare(self, about_to_sleep: bool) -> None:
        address = DBusAddress("/org/freedesktop/login1", interface="org.freedesktop.login1.Manager")
        self._bus.send(new_signal(address, "PrepareForSleep", "b", (about_to_sleep,)))

    def close(self) -> None:
        self._bus.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._bus.close()
        for end in self._held:
            os.close(end)

    def _serve(self) -> None:
        while True:
            try:
                message = self._bus.receive()
            except (OSError, ConnectionError):
                return
            if message.header.fields.get(HeaderFields.member) != "Inhibit":
                continue
            ours, theirs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            with self._lock:
                self.asked.append(message.body)
                self._held.append(ours)
            self._bus.send(new_method_return(message, "h", (theirs,)))
            os.close(theirs)


@pytest.fixture
def address() -> Iterator[str]:
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert daemon.stdout is not None
    with daemon, daemon.stdout:
        yield daemon.stdout.readline().strip()
        daemon.terminate()


@pytest.fixture
def logind(address: str) -> Iterator[Logind]:
    logind = Logind(address)
    yield logind
    logind.close()


def connection_to(address: str) -> DBusConnection:
    return open_dbus_connection(bus=address, enable_fds=True)


def test_sleep_waits_until_the_lights_are_back(logind: Logind, address: str) -> None:
    calls: queue.Queue[str] = queue.Queue()
    may_sleep = threading.Event()

    def asleep() -> None:
        calls.put("asleep")
        may_sleep.wait(60)

    watch = SleepWatch(asleep, lambda: calls.put("awake"), lambda: connection_to(address))
    watch.start()
    wait_until(lambda: logind.is_held_up)
    assert logind.asked == [("sleep", "Thock", "sets the lights of the keyboard back", "delay")]
    for _ in range(2):
        logind.prepare(True)
        assert calls.get(timeout=60) == "asleep"
        assert logind.is_held_up
        may_sleep.set()
        wait_until(lambda: not logind.is_held_up)
        may_sleep.clear()
        logind.prepare(False)
        assert calls.get(timeout=60) == "awake"
        wait_until(lambda: logind.is_held_up)
    watch.stop()
    watch.stop()
    assert not logind.is_held_up


@pytest.mark.expected_log("before or after sleep: ZeroDivisionError")
def test_a_fault_holds_no_sleep_up(logind: Logind, address: str) -> None:
    watch = SleepWatch(lambda: 1 // 0, lambda: None, lambda: connection_to(address))
    watch.start()
    wait_until(lambda: logind.is_held_up)
    logind.prepare(True)
    wait_until(lambda: not logind.is_held_up)
    watch.stop()


def test_where_nobody_tells_nothing_happens() -> None:
    def nobody() -> DBusConnection:
        raise NoSleepSignalsError("none")

    watch = SleepWatch(lambda: None, lambda: None, nobody)
    watch.stop()
    watch.start()
    watch.stop()


def test_no_system_bus_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus")
    with pytest.raises(NoSleepSignalsError):
        system_bus()


@pytest.mark.expected_log("nobody tells any more")
def test_a_logind_that_is_not_there_ends_the_watch(address: str) -> None:
    watch = SleepWatch(lambda: None, lambda: None, lambda: connection_to(address))
    watch.start()
    watch._thread.join(10)
    assert not watch._thread.is_alive()
    watch.stop()
