# SPDX-License-Identifier: Apache-2.0
"""What was seen on the system's buses, and why each of it may or may not be a keyboard for us."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from firmware_bridge.transport.base import DeviceIdentity

HID = "hid"
SERIAL = "serial"


class Caution(enum.Enum):
    """How much we may send to a device of the caution list."""

    NONE = "none"
    NO_HELLO = "no hello"  # ask for VIA only, unless the person chose this device
    NEVER = "never"  # not opened at all


@dataclass(frozen=True, slots=True)
class Candidate:
    """One interface of one device. `reason` says in words for the person why it does or does not match.

    `path` is what the system opens it by today, `report_length` is in bytes (0 where it does not match).
    """

    path: str
    identity: DeviceIdentity
    matches: bool
    reason: str
    interface: int = -1
    report_length: int = 0
    caution: Caution = Caution.NONE


# Serial numbers that many boards share. Vial: vial-qmk, builddefs/build_vial.mk; the others are what
# firmware sends that has none of its own.
_VIAL_SERIAL = "vial:f64c2b3c"
_SHARED_SERIALS = frozenset({"", "0", "1", "123456", "000000000000"})


def is_vial(identity: DeviceIdentity) -> bool:
    """Whether the serial number says that the firmware is Vial."""
    return _VIAL_SERIAL in identity.serial


def has_own_serial(identity: DeviceIdentity) -> bool:
    """Whether the serial number looks as if no other board had it."""
    return identity.serial not in _SHARED_SERIALS and not is_vial(identity)


def is_same_board(one: DeviceIdentity, other: DeviceIdentity) -> bool:
    """Whether both are one board: by serial number, or by the USB place where boards share one."""
    kinds = [(i.transport, i.vendor_id, i.product_id, i.serial) for i in (one, other)]
    if kinds[0] != kinds[1]:
        return False
    return has_own_serial(one) or one.location == other.location


def find_board(wanted: DeviceIdentity, present: list[DeviceIdentity]) -> DeviceIdentity | None:
    """Which of `present` is `wanted`; where two boards came with the same serial number, the place decides."""
    same = [identity for identity in present if is_same_board(wanted, identity)]
    if len(same) > 1:
        same = [identity for identity in same if identity.location == wanted.location]
    return same[0] if same else None
