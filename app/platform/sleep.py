# SPDX-License-Identifier: Apache-2.0
"""Tells when the computer is about to sleep and when it is awake again.

Linux: systemd-logind, which waits with the sleep until we let go of a "delay" lock, 5 s at most
(org.freedesktop.login1(5), "Inhibit" and "PrepareForSleep"). Elsewhere nobody tells beforehand.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

_log = logging.getLogger(__name__)

_NAME = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_INTERFACE = "org.freedesktop.login1.Manager"


class NoSleepSignalsError(Exception):
    """This system does not tell."""


def system_bus() -> DBusConnection:
    """A connection to the system bus that can carry files.

    Raises:
        NoSleepSignalsError: there is none.
    """
    if not sys.platform.startswith("linux"):
        raise NoSleepSignalsError("only Linux tells")
    try:
        from jeepney.io.blocking import open_dbus_connection
    except ImportError as error:
        raise NoSleepSignalsError("jeepney is not installed") from error
    try:
        return open_dbus_connection(bus="SYSTEM", enable_fds=True)
    except (OSError, ValueError, KeyError) as error:
        raise NoSleepSignalsError(f"no system bus: {error}") from error


class SleepWatch:
    """`asleep` is called before the computer sleeps, which waits for it; `awake` after it. On a thread."""

    def __init__(
        self,
        asleep: Callable[[], object],
        awake: Callable[[], object],
        connect: Callable[[], DBusConnection] = system_bus,
    ) -> None:
        self._asleep = asleep
        self._awake = awake
        self._connect = connect
        self._connection: DBusConnection | None = None
        self._lock = -1  # what holds the sleep up, while open
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="thock-sleep", daemon=True)

    def start(self) -> None:
        """Begin to listen; does nothing on a system that does not tell."""
        try:
            self._connection = self._connect()
        except NoSleepSignalsError as error:
            _log.info("nobody tells when the computer sleeps: %s", error)
            return
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Safe to call twice, and without `start`."""
        self._is_stopping = True
        connection = self._connection
        if connection is None:
            return
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)  # ends the read in the thread
        self._thread.join()
        connection.close()
        self._connection = None

    def _run(self) -> None:
        assert self._connection is not None
        try:
            self._listen(self._connection)
        except Exception as error:  # noqa: BLE001 - the thread's top: the bus may go away at any time
            if not self._is_stopping:
                _log.warning(
                    "nobody tells any more when the computer sleeps: %s", type(error).__name__
                )
        finally:
            self._let_go()

    def _listen(self, connection: DBusConnection) -> None:
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import Proxy

        signal = {
            "type": "signal", "interface": _INTERFACE, "member": "PrepareForSleep", "path": _PATH,
        }  # fmt: skip
        Proxy(message_bus, connection).AddMatch(MatchRule(sender=_NAME, **signal))
        # what comes names its sender by number
        with connection.filter(MatchRule(**signal)) as signals:
            self._hold_up(connection)
            while not self._is_stopping:
                [is_about_to] = connection.recv_until_filtered(signals).body
                if is_about_to:
                    self._tell(self._asleep)
                    self._let_go()
                else:
                    self._hold_up(connection)
                    self._tell(self._awake)

    def _hold_up(self, connection: DBusConnection) -> None:
        from jeepney import DBusAddress, MessageType, new_method_call

        manager = DBusAddress(_PATH, bus_name=_NAME, interface=_INTERFACE)
        arguments = ("sleep", "Thock", "sets the lights of the keyboard back", "delay")
        reply = connection.send_and_get_reply(
            new_method_call(manager, "Inhibit", "ssss", arguments), timeout=5
        )
        if reply.header.message_type is MessageType.error:
            raise NoSleepSignalsError("logind refused")
        self._let_go()
        descriptor: Any = reply.body[0]
        self._lock = descriptor.to_raw_fd()

    def _let_go(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _tell(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the sleep must not fail with it
            _log.error("before or after sleep: %s", type(error).__name__)
