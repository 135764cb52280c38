# SPDX-License-Identifier: Apache-2.0
"""A transport carries whole reports, unchanged and in order. It knows nothing of frames.

Only the I/O thread that opened a transport may call it, `wake` excepted. Every implementation
(virtual, replay, hid, serial) passes tests/contract/test_transport_contract.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """Who a device is, independent of the path under which the system lists it today.

    `location` is the USB topology or a transport's own stable name; two boards of one kind differ
    in `serial` or, where that is empty, in `location`.
    """

    transport: str
    vendor_id: int = 0
    product_id: int = 0
    serial: str = ""
    location: str = ""
    product: str = ""


class Transport(Protocol):
    """Reports of `report_length` bytes in both directions, without any report-id prefix."""

    @property
    def identity(self) -> DeviceIdentity: ...

    @property
    def report_length(self) -> int:
        """Bytes of one report, known before `open` and constant afterwards (32 on QMK)."""
        ...

    @property
    def wakeable(self) -> bool:
        """Whether `wake` ends a read. Where it cannot (hidapi waits in C), the reader has to poll."""
        ...

    def wake(self) -> None:
        """Let the read in progress, or else the next one, return at once.

        Any thread may call this at any time, also before `open` and after `close`.
        """
        ...

    def open(self) -> None:
        """Open the device; nothing happens if it is open.

        Raises:
            DeviceGoneError, DeviceBusyError, DevicePermissionError: told apart, with advice.
        """
        ...

    def read(self, timeout_s: float) -> bytes | None:
        """The next report, or None after `timeout_s` (> 0) without one, or sooner after `wake`.

        Raises:
            DeviceGoneError: the device went away; every later call raises it too.
        """
        ...

    def write(self, report: bytes) -> None:
        """Send one report; shorter ones are padded with zeros to `report_length`.

        Raises:
            ValueError: longer than `report_length`, or empty.
            DeviceGoneError: it did not go out whole.
        """
        ...

    def close(self) -> None:
        """Release the device. Safe to call twice, and after DeviceGoneError. Never blocks for long."""
        ...
