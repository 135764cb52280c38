# SPDX-License-Identifier: Apache-2.0
"""Reports over a serial port (pyserial), for boards without raw HID: CircuitPython, KMK.

A report travels in an escaped frame with a checksum (firmware_bridge/protocol/serial_framing.py). What
else comes out of the port, boot messages or the output of an interpreter, is skipped.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque

import serial

from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.protocol.serial_framing import FrameReader, encode_report
from firmware_bridge.texts import Text
from firmware_bridge.transport.base import DeviceIdentity

try:
    import termios
except ImportError:  # Windows
    _OPEN_ERRORS: tuple[type[Exception], ...] = (OSError,)
else:
    # pyserial lets it through when a board goes away while its port is set up; it is no OSError.
    _OPEN_ERRORS = (OSError, termios.error)

_log = logging.getLogger(__name__)

_WRITE_LIMIT_S = 1.0  # a board that does not take 70 bytes in that time is gone
_CLOSE_LIMIT_S = 1.0
_BAUD = 115_200  # without meaning over USB
REPORT_LENGTH = 32

_UDEV_ADVICE = "Add this user to the group of the port (often dialout), then log in again."


class SerialTransport:
    """One open serial port. It can be woken where pyserial can end a read (POSIX)."""

    def __init__(
        self, path: str, identity: DeviceIdentity, report_length: int = REPORT_LENGTH
    ) -> None:
        self._path = path
        self._identity = identity
        self._report_length = report_length
        self._gate = threading.Lock()  # between `wake` and what makes or ends the port
        self._port: serial.Serial | None = None
        self._reader = FrameReader(report_length)
        self._reports: deque[bytes] = deque()

    @property
    def identity(self) -> DeviceIdentity:
        return self._identity

    @property
    def report_length(self) -> int:
        return self._report_length

    @property
    def wakeable(self) -> bool:
        return os.name == "posix"

    def wake(self) -> None:
        with self._gate:
            if self._port is not None and self.wakeable:
                self._port.cancel_read()

    def open(self) -> None:
        """See `Transport.open`. Raises DTR, without which CircuitPython drops what it is told to send."""
        if self._port is not None:
            return
        try:
            port = serial.Serial(
                self._path, _BAUD, timeout=0, write_timeout=_WRITE_LIMIT_S, exclusive=True
            )
        except _OPEN_ERRORS as error:  # SerialException is an OSError
            raise _why_not_open(self._path, error) from None
        with self._gate:
            self._port = port
            self._reader = FrameReader(self._report_length)
            self._reports.clear()

    def read(self, timeout_s: float) -> bytes | None:
        port = self._opened()
        deadline = time.monotonic() + timeout_s
        woken = False
        while not self._reports:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or woken:
                return None
            try:
                port.timeout = left_s
                data = port.read(1)
                if not data:
                    return None  # time is up, or woken
                waiting = port.in_waiting
                rest = port.read(waiting)
            except (
                OSError,
                TypeError,
            ) as error:  # TypeError: pyserial, when the port is half closed
                raise self._gone(
                    Text("The port went away ({error_name}).", error_name=type(error).__name__)
                ) from None
            woken = len(rest) < waiting
            self._reports.extend(self._reader.feed(data + rest))
        return self._reports.popleft()

    def write(self, report: bytes) -> None:
        length = self._report_length
        if not 0 < len(report) <= length:
            raise ValueError(f"a report has 1 to {length} bytes")
        frame = encode_report(report.ljust(length, b"\0"))
        try:
            written = self._opened().write(frame)
        except (OSError, TypeError) as error:
            raise self._gone(
                Text("A report did not go out ({error_name}).", error_name=type(error).__name__)
            ) from None
        if written != len(frame):
            raise self._gone(
                Text("{sent} of {count} bytes went out.", sent=written, count=len(frame))
            )

    def close(self) -> None:
        with self._gate:
            port, self._port = self._port, None
        if port is not None:
            _close(port)

    def _opened(self) -> serial.Serial:
        if self._port is None:
            raise DeviceGoneError("The port is not open.")
        return self._port

    def _gone(self, reason: str) -> DeviceGoneError:
        self.close()
        return DeviceGoneError(reason)


def _close(port: serial.Serial) -> None:
    """Close in a thread of its own: some drivers wait for output that nobody takes any more."""
    closer = threading.Thread(target=_close_quietly, args=(port,), name="thock-close", daemon=True)
    closer.start()
    closer.join(_CLOSE_LIMIT_S)
    if closer.is_alive():
        _log.warning("the driver does not close %s; it is left behind", port.name)


def _close_quietly(port: serial.Serial) -> None:
    try:
        port.close()
    except (OSError, TypeError) as error:  # the device is gone, which closes it too
        _log.debug("closing a serial port: %s", type(error).__name__)


def _why_not_open(path: str, error: Exception) -> TransportError:
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EACCES, errno.EPERM) and os.name == "posix":
        return DevicePermissionError(
            Text("This user may not open {path}.", path=path), _UDEV_ADVICE
        )
    taken = (errno.EBUSY, errno.EAGAIN, errno.EACCES)  # EAGAIN: flock; EACCES: Windows
    if number in taken or "PermissionError" in str(error):
        return DeviceBusyError(
            Text("Another program holds {path}.", path=path),
            "Close serial monitors and editors that use the port.",
        )
    return DeviceGoneError(Text("{path} cannot be opened.", path=path))
