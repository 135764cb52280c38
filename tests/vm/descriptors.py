# SPDX-License-Identifier: Apache-2.0
"""Report descriptors of a QMK keyboard (tmk_core/protocol/usb_descriptor.c writes the same items)."""

from __future__ import annotations

# 8 bytes in (modifiers, reserved, six usages), 1 byte out (lamps), no report id.
BOOT_KEYBOARD = bytes.fromhex(
    "05010906a101050719e029e7150025017501950881029501750881039505750105081901290591029501750391039506"
    "75081500256505071900296581 00c0".replace(" ", "")
)


def raw_hid(length: int = 32) -> bytes:
    """Usage page FF60, usage 61, `length` bytes each way, no report id."""
    count = bytes((0x95, length))
    return (
        bytes.fromhex("0660ff0961a1010962150026ff00") + count + bytes.fromhex("75088102")
        + bytes.fromhex("0963150026ff00") + count + bytes.fromhex("75089102c0")
    )  # fmt: skip
