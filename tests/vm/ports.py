# SPDX-License-Identifier: Apache-2.0
"""The device side of a keyboard's USB plug: a HID device of the kernel's uhid, and a real composite USB gadget.

Both give descriptors to poll, reports that the host wrote, and a way to answer. Runs as root, in the
test machine only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import time
import tty
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.vm.descriptors import BOOT_KEYBOARD, raw_hid


@dataclass(frozen=True, slots=True)
class UsbNames:
    """How a board presents itself."""

    vendor: int = 0xFEED
    product: int = 0x6061
    serial: str = "vm0001"
    name: str = "Thock test board"


class Port(Protocol):
    """`receive` and `send` carry whole raw HID reports; `serial` is the descriptor of a CDC port or -1."""

    serial: int

    def descriptors(self) -> list[int]: ...

    def receive(self, ready: int) -> Iterator[bytes]: ...

    def send(self, report: bytes) -> bool: ...

    def type(self, report: bytes) -> None:
        """A boot keyboard report, as the key interface of any keyboard sends it."""
        ...

    def unplug(self) -> None: ...


# linux/uhid.h
_CREATE2, _DESTROY, _INPUT2 = 11, 1, 12
_START, _OUTPUT, _GET_REPORT, _GET_REPLY, _SET_REPORT, _SET_REPLY = 2, 6, 9, 10, 13, 14
_BUS_USB = 3
_EVENT_BYTES = 4 + 4372  # u32 type and the largest member
_CREATE2_REQ = struct.Struct("=128s64s64sHHIIII4096s")


class _UhidDevice:
    """One HID interface."""

    def __init__(self, names: UsbNames, descriptor: bytes, location: str) -> None:
        self.fd = os.open("/dev/uhid", os.O_RDWR | os.O_NONBLOCK)
        request = _CREATE2_REQ.pack(
            names.name.encode(), location.encode(), names.serial.encode(), len(descriptor),
            _BUS_USB, names.vendor, names.product, 0x0111, 0, descriptor,
        )  # fmt: skip
        os.write(self.fd, struct.pack("=I", _CREATE2) + request)

    def outputs(self) -> Iterator[bytes]:
        """What the host wrote since the last call, each with its leading report id."""
        while True:
            try:
                event = os.read(self.fd, _EVENT_BYTES)
            except BlockingIOError:
                return
            kind = struct.unpack_from("=I", event)[0]
            if kind == _OUTPUT:
                size = struct.unpack_from("=H", event, 4 + 4096)[0]
                yield event[4 : 4 + size]
            elif kind == _GET_REPORT:  # an unanswered request blocks its caller for 5 s
                number = struct.unpack_from("=I", event, 4)[0]
                os.write(self.fd, struct.pack("=IIHH", _GET_REPLY, number, errno.EIO, 0))
            elif kind == _SET_REPORT:
                number = struct.unpack_from("=I", event, 4)[0]
                os.write(self.fd, struct.pack("=IIH", _SET_REPLY, number, errno.EIO))

    def input(self, report: bytes) -> None:
        os.write(self.fd, struct.pack("=IH", _INPUT2, len(report)) + report)

    def destroy(self) -> None:
        os.write(self.fd, struct.pack("=I", _DESTROY))
        os.close(self.fd)


class UhidPort:
    """Two HID interfaces without a USB device below them: quick to plug, and visible to hidraw only."""

    serial = -1

    def __init__(self, names: UsbNames, place: str, report_length: int = 32) -> None:
        self._length = report_length
        self._keys = _UhidDevice(names, BOOT_KEYBOARD, f"{place}/input0")
        self._raw = _UhidDevice(names, raw_hid(report_length), f"{place}/input1")

    def descriptors(self) -> list[int]:
        return [self._raw.fd, self._keys.fd]

    def receive(self, ready: int) -> Iterator[bytes]:
        if ready == self._raw.fd:
            for output in self._raw.outputs():
                yield output[1:]  # uhid, unlike USB, passes the report id on
        else:
            for _ in self._keys.outputs():
                pass  # lamps

    def send(self, report: bytes) -> bool:
        self._raw.input(report)
        return True

    def type(self, report: bytes) -> None:
        self._keys.input(report)

    def unplug(self) -> None:
        self._raw.destroy()
        self._keys.destroy()


_GADGETS = Path("/sys/kernel/config/usb_gadget")


class GadgetPort:
    """A composite USB device, made by configfs and plugged into a USB host port by dummy_hcd.

    Boot keyboard, raw HID and CDC-ACM serial; the host side is usbcore, usbhid and cdc_acm as with
    hardware. `udc` picks the USB port.
    """

    def __init__(self, names: UsbNames, udc: int, report_length: int = 32) -> None:
        self._folder = _GADGETS / f"board{udc}"
        self._functions: list[str] = []
        self._folder.mkdir()
        self._describe(names)
        self._function(
            "hid.keys", protocol=1, subclass=1, report_length=8, report_desc=BOOT_KEYBOARD
        )
        # report_length is the endpoints' packet size. 64, because f_hid ends a report that fills a
        # packet with an empty packet, which libusb takes for an empty report.
        self._function(
            "hid.raw", protocol=0, subclass=0, report_length=64, report_desc=raw_hid(report_length)
        )
        self._function("acm.port")
        self.connected_at = time.monotonic()
        self._put("UDC", f"dummy_udc.{udc}")
        self._raw = os.open(self._node("hid.raw"), os.O_RDWR | os.O_NONBLOCK)
        self._keys = os.open(self._node("hid.keys"), os.O_RDWR | os.O_NONBLOCK)
        number = (self._folder / "functions/acm.port/port_num").read_text().strip()
        self.serial = os.open(f"/dev/ttyGS{number}", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self.serial)

    def descriptors(self) -> list[int]:
        return [self._raw, self._keys, self.serial]

    def receive(self, ready: int) -> Iterator[bytes]:
        while True:
            try:
                report = os.read(ready, 512)
            except OSError:  # nothing more, or the host is gone
                return
            if ready == self._raw:
                yield report

    def send(self, report: bytes) -> bool:
        try:
            return os.write(self._raw, report) == len(report)
        except OSError:  # the report before was not fetched yet, or the host is gone
            return False

    def type(self, report: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._keys, report)

    def unplug(self) -> None:
        self._put("UDC", "\n")
        for descriptor in self.descriptors():
            os.close(descriptor)
        for name in self._functions:
            (self._folder / "configs/c.1" / name).unlink()
            (self._folder / "functions" / name).rmdir()
        for name in ("configs/c.1/strings/0x409", "configs/c.1", "strings/0x409", ""):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / name).rmdir()

    def _describe(self, names: UsbNames) -> None:
        numbers = {"idVendor": names.vendor, "idProduct": names.product, "bcdUSB": 0x0200}
        # an interface association descriptor, which CDC in a composite device needs
        numbers |= {"bDeviceClass": 0xEF, "bDeviceSubClass": 2, "bDeviceProtocol": 1}
        for name, value in numbers.items():
            self._put(name, str(value))
        self._put("max_speed", "full-speed")
        (self._folder / "strings/0x409").mkdir()
        for name, text in (("product", names.name), ("serialnumber", names.serial)):
            self._put(f"strings/0x409/{name}", text)
        (self._folder / "configs/c.1").mkdir()

    def _function(self, name: str, **attributes: int | bytes) -> None:
        """Interfaces are numbered in the order in which functions are linked."""
        folder = self._folder / "functions" / name
        folder.mkdir()
        for attribute, value in attributes.items():
            self._put(f"functions/{name}/{attribute}", value)
        (self._folder / "configs/c.1" / name).symlink_to(folder)
        self._functions.append(name)

    def _put(self, name: str, value: str | int | bytes) -> None:
        content = value if isinstance(value, bytes) else str(value).encode()
        with (self._folder / name).open("wb", buffering=0) as file:
            file.write(content)

    def _node(self, function: str) -> str:
        device = (self._folder / "functions" / function / "dev").read_text().strip()
        return f"/dev/{Path(f'/sys/dev/char/{device}').resolve().name}"
