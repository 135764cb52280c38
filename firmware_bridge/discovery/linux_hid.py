# SPDX-License-Identifier: Apache-2.0
"""What Linux knows of a hidraw node beyond hidapi (sysfs; Documentation/hid/hidraw.rst)."""

from __future__ import annotations

import os
from pathlib import Path

from firmware_bridge.transport.hid_descriptor import (
    Collection,
    DescriptorError,
    parse_report_descriptor,
)

SYSFS = Path("/sys")


def read_collections(node: str, sysfs: Path = SYSFS) -> list[Collection]:
    """The top-level collections of `/dev/hidrawN`; none if it is gone or its descriptor is damaged."""
    path = _device(node, sysfs) / "report_descriptor"
    try:
        return parse_report_descriptor(path.read_bytes())
    except (OSError, DescriptorError):
        return []


def list_folder(sysfs: Path = SYSFS) -> Path:
    """The list of HID nodes, which hidapi and browsers read through libudev before they open one."""
    return sysfs / "class/hidraw"


def read_location(node: str, sysfs: Path = SYSFS) -> str:
    """Where the device is plugged in, the same after replug and reboot: `usb-0000:00:14.0-1.2`; may be empty.

    The kernel makes it of the USB controller's address and the ports on the way (usb_make_path).
    """
    try:
        lines = (_device(node, sysfs) / "uevent").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        if line.startswith("HID_PHYS="):
            return line.removeprefix("HID_PHYS=").rsplit("/input", 1)[0]
    return ""


def is_claimed(vendor: int, product: int, sysfs: Path = SYSFS) -> bool:
    """Whether a program took an interface of such a USB device from the kernel (libusb does).

    Its hidraw node is then gone, and the device seems to have no raw HID interface.
    """
    for file in (sysfs / "bus/usb/drivers/usbfs").glob("*/../idVendor"):
        try:
            ids = [int(file.with_name(name).read_text(), 16) for name in ("idVendor", "idProduct")]
        except (OSError, ValueError):
            continue
        if ids == [vendor, product]:
            return True
    return False


def device_names(sysfs: Path = SYSFS) -> frozenset[str]:
    """Names of all HID and serial nodes: costs 0.1 ms, and differs whenever one comes or goes."""
    names: set[str] = set()
    for kind, prefix in (("hidraw", "hidraw"), ("tty", "ttyACM")):
        try:
            entries = os.listdir(sysfs / "class" / kind)
        except OSError:
            continue
        names.update(name for name in entries if name.startswith(prefix))
    return frozenset(names)


def _device(node: str, sysfs: Path) -> Path:
    return list_folder(sysfs) / Path(node).name / "device"
