# SPDX-License-Identifier: Apache-2.0
"""Reports of a real keyboard through hidapi (hidraw on Linux)."""

from __future__ import annotations

import errno
import math
import os
import sys
import time
from dataclasses import dataclass

from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.texts import Text
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.hid_library import HidDevice, HidLibrary

_NO_REPORT_ID = b"\0"  # every write begins with the report id, 0 where there are none

# hidraw reports a wait that a signal handler ended exactly like a lost device. A lost one fails again at
# once, every time; one that is there only if the next signal falls into the same millisecond.
_PROBES = 3
_PROBE_MS = 1

_UDEV_ADVICE = (
    "Allow it with a udev rule (thock doctor --install-udev),"
    " then unplug the keyboard and plug it in again."
)


@dataclass(frozen=True, slots=True)
class HidInterface:
    """The raw HID interface of one keyboard, as the system lists it now."""

    path: bytes
    identity: DeviceIdentity
    report_length: int


class HidTransport:
    """One open handle of a raw HID interface. It cannot be woken: hidapi waits in C."""

    def __init__(self, library: HidLibrary, interface: HidInterface) -> None:
        self._library = library
        self._interface = interface
        self._device: HidDevice | None = None

    @property
    def identity(self) -> DeviceIdentity:
        return self._interface.identity

    @property
    def report_length(self) -> int:
        return self._interface.report_length

    @property
    def wakeable(self) -> bool:
        return False

    def wake(self) -> None:
        """See `Transport.wake`; does nothing here."""

    def open(self) -> None:
        if self._device is not None:
            return
        try:
            self._device = self._library.open(self._interface.path)
        except OSError:
            raise diagnose_failed_open(self._library, self._interface.path) from None

    def read(self, timeout_s: float) -> bytes | None:
        deadline = time.monotonic() + timeout_s
        errors = 0
        while True:
            left_ms = math.ceil((deadline - time.monotonic()) * 1e3)
            if errors:
                left_ms = _PROBE_MS
            try:
                # a timeout of 0 would wait for ever
                data = self._opened().read(self.report_length, max(left_ms, 1))
            except OSError:
                errors += 1
                if errors > _PROBES:
                    raise self._gone("The keyboard was unplugged.") from None
                continue
            if data:
                # A report that came short is no frame: padded, it fails its checksum.
                return bytes(data).ljust(self.report_length, b"\0")
            if errors == 0 or time.monotonic() >= deadline:
                return None
            errors = 0

    def write(self, report: bytes) -> None:
        length = self.report_length
        if not 0 < len(report) <= length:
            raise ValueError(f"a report has 1 to {length} bytes")
        written = self._opened().write(_NO_REPORT_ID + report.ljust(length, b"\0"))
        if written != 1 + length:
            raise self._gone(
                Text("{sent} of {count} bytes went out.", sent=max(written, 0), count=1 + length)
            )

    def close(self) -> None:
        device, self._device = self._device, None
        if device is not None:
            self._library.close(device)

    def _opened(self) -> HidDevice:
        if self._device is None:
            raise DeviceGoneError("The keyboard is not open.")
        return self._device

    def _gone(self, reason: str) -> DeviceGoneError:
        self.close()
        return DeviceGoneError(reason)


def diagnose_failed_open(library: HidLibrary, path: bytes) -> TransportError:
    """Why `path` could not be opened: hidapi says "open failed" to everything."""
    if sys.platform.startswith("linux"):
        return _diagnose_node(path)
    if any(entry["path"] == path for entry in library.enumerate()):
        return DeviceBusyError(
            "Another program holds the keyboard.",
            "Close VIA, Vial or whatever else configures keyboards.",
        )
    return DeviceGoneError("The keyboard is no longer there.")


def _diagnose_node(path: bytes) -> TransportError:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError:
        return DevicePermissionError(
            Text("This user may not open {path}.", path=os.fsdecode(path)), _UDEV_ADVICE
        )
    except OSError as error:
        if error.errno == errno.EBUSY:
            return DeviceBusyError(
                "Another program holds the keyboard.",
                "Close VIA, Vial or whatever else configures keyboards.",
            )
    return DeviceGoneError("The keyboard is no longer there.")
