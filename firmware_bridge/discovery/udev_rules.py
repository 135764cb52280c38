# SPDX-License-Identifier: Apache-2.0
"""The udev rules file that opens the raw HID interfaces of chosen keyboards, and nothing else of them.

udev cannot match a HID usage, so the rules name each keyboard by its USB ids and interface number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

FILE_NAME = "70-thock.rules"


@dataclass(frozen=True, slots=True, order=True)
class RawInterface:
    """Where the raw HID interface of one kind of keyboard is. `interface` counts from 0 (QMK: 1)."""

    vendor_id: int
    product_id: int
    interface: int
    name: str = ""


def render_udev_rules(devices: Iterable[RawInterface]) -> str:
    """The content of /etc/udev/rules.d/70-thock.rules for these keyboards.

    Raises:
        ValueError: no keyboard, or a number that is no USB id or interface number. A rule without one of
            them would open more than it should.
    """
    blocks = []
    for device in sorted(set(devices)):
        numbers = (device.vendor_id, device.product_id)
        if not all(0 < number <= 0xFFFF for number in numbers) or not 0 <= device.interface <= 0xFF:
            raise ValueError("a rule needs vendor, product and interface number of a USB device")
        blocks.append(_block(device))
    if not blocks:
        raise ValueError("rules need at least one keyboard")
    template = resources.files("assets").joinpath(f"udev/{FILE_NAME}").read_text(encoding="utf-8")
    return template.replace("@DEVICES@\n", "".join(blocks))


def _block(device: RawInterface) -> str:
    # A name is what the device says of itself: it must not get out of its comment.
    name = (
        "".join(c if c.isprintable() and c != "\\" else "?" for c in device.name).strip()
        or "keyboard"
    )
    vendor, product = f"{device.vendor_id:04x}", f"{device.product_id:04x}"  # sysfs: lower case
    mark = f"THOCK_{vendor}_{product}"
    return (
        f"\n# {name}\n"
        f'ATTRS{{idVendor}}=="{vendor}", ATTRS{{idProduct}}=="{product}", ENV{{{mark}}}="1"\n'
        f'ENV{{{mark}}}=="1", ATTRS{{bInterfaceNumber}}=="{device.interface:02x}", TAG+="uaccess"\n'
    )
