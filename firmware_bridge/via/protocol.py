# SPDX-License-Identifier: Apache-2.0
"""The requests of VIA, Vial and Viable that Thock may send, and the check that every request passes.

Sources: qmk_firmware quantum/via.h (VIA 11 to 13), vial-qmk quantum/vial.h and vialrgb.h (VIA 9),
viable-kb/qmk modules/viable-kb/core/docs/CLIENT_ID_PROTOCOL.md.
"""

from __future__ import annotations

import enum

from firmware_bridge.errors import BridgeError

VIA_VERSIONS = range(9, 14)  # 9: Vial and old VIA; 11: QMK 2022-11; 12: 2023-02; 13: 2026-05
CHANNELS_SINCE = 11  # before it a lighting value has an id, but no channel
UNHANDLED = 0xFF  # VIA returns a request that it does not know with this in its first byte


class Command(enum.IntEnum):
    """First byte of a request."""

    GET_VERSION = 0x01
    SET_VALUE = 0x07
    GET_VALUE = 0x08
    CLIENT = 0xDD  # Viable: the rest is of one client
    VIAL = 0xFE


class VialQuestion(enum.IntEnum):
    """Second byte after FE. Neither of them changes anything."""

    KEYBOARD_ID = 0x00
    UNLOCK_STATUS = 0x05


class VialRgb(enum.IntEnum):
    """Second byte after 07 and 08 on boards with VialRGB."""

    INFO = 0x40
    MODE = 0x41
    SUPPORTED = 0x42  # get
    FASTSET = 0x42  # set
    LED_COUNT = 0x43


THOCK_CHANNEL = 0x4C  # of VIA's custom values, on boards whose firmware has our module behind it
VIABLE_BOOTSTRAP = bytes((Command.CLIENT, 0, 0, 0, 0))  # instead of a client id: give me one
VIABLE_HEAD = 6  # bytes before VIA's request: DD, client id, protocol
VIABLE_VIA = 0xFE  # protocol: VIA
VIABLE_ERROR = 0xFF

# Second byte of 07: VIA 11 channels backlight, rgblight, rgb_matrix, led_matrix and ours; VIA 9 value ids of
# backlight and rgblight; VialRGB mode and LEDs. None of them writes to the EEPROM.
_SETTABLE = frozenset((1, 2, 3, 5, THOCK_CHANNEL, 0x09, 0x0A, 0x80, 0x81, 0x82, 0x83, 0x41, 0x42))
_GETTABLE = _SETTABLE | {VialRgb.INFO, VialRgb.LED_COUNT}


class ForbiddenRequestError(BridgeError):
    """A request that Thock never sends was about to be written: a fault in Thock."""

    def __init__(self, report: bytes) -> None:
        super().__init__(f"the request {report[:2].hex(' ')} is not one that Thock may send")


def check_request(report: bytes) -> None:
    """Let through what is known to change nothing but lights, and these in RAM only.

    All else is refused, above all 05 set keycode, 06 keymap reset, 09 save, 0A EEPROM reset, 0B bootloader,
    0F set macros, 10 macro reset, FE 06 unlock, and what vendors put elsewhere (Keychron: AA update).

    Raises:
        ForbiddenRequestError: not one of these.
    """
    if not _is_allowed(report):
        raise ForbiddenRequestError(report)


def _is_allowed(report: bytes) -> bool:
    if len(report) < 2:
        return False
    match report[0]:
        case Command.GET_VERSION:
            return True
        case Command.SET_VALUE:
            return report[1] in _SETTABLE
        case Command.GET_VALUE:
            return report[1] in _GETTABLE
        case Command.VIAL:
            return report[1] in (VialQuestion.KEYBOARD_ID, VialQuestion.UNLOCK_STATUS)
        case Command.CLIENT:
            if report.startswith(VIABLE_BOOTSTRAP):
                return True
            inner = report[VIABLE_HEAD:]
            is_via = len(report) > VIABLE_HEAD and report[VIABLE_HEAD - 1] == VIABLE_VIA
            return is_via and inner[:1] != bytes((Command.CLIENT,)) and _is_allowed(inner)
    return False
