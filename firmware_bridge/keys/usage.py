# SPDX-License-Identifier: Apache-2.0
"""Names of keyboard usages: USB HID Usage Tables 1.5, section 10, "Keyboard/Keypad Page (0x07)".

A usage names the place of a key on a US keyboard, not what is printed on it.
"""

from __future__ import annotations

import enum


class Usage(enum.IntEnum):
    """The keys that mean something for text. Letters and digits carry the name of their US key."""

    A = 0x04
    B = 0x05
    C = 0x06
    D = 0x07
    E = 0x08
    F = 0x09
    G = 0x0A
    H = 0x0B
    I = 0x0C  # noqa: E741 - the name of the key
    J = 0x0D
    K = 0x0E
    L = 0x0F
    M = 0x10
    N = 0x11
    O = 0x12  # noqa: E741
    P = 0x13
    Q = 0x14
    R = 0x15
    S = 0x16
    T = 0x17
    U = 0x18
    V = 0x19
    W = 0x1A
    X = 0x1B
    Y = 0x1C
    Z = 0x1D
    DIGIT_1 = 0x1E
    DIGIT_2 = 0x1F
    DIGIT_3 = 0x20
    DIGIT_4 = 0x21
    DIGIT_5 = 0x22
    DIGIT_6 = 0x23
    DIGIT_7 = 0x24
    DIGIT_8 = 0x25
    DIGIT_9 = 0x26
    DIGIT_0 = 0x27
    ENTER = 0x28
    ESCAPE = 0x29
    BACKSPACE = 0x2A
    TAB = 0x2B
    SPACE = 0x2C
    MINUS = 0x2D
    EQUAL = 0x2E
    LEFT_BRACKET = 0x2F
    RIGHT_BRACKET = 0x30
    BACKSLASH = 0x31
    NON_US_HASH = 0x32
    SEMICOLON = 0x33
    QUOTE = 0x34
    GRAVE = 0x35
    COMMA = 0x36
    PERIOD = 0x37
    SLASH = 0x38
    CAPS_LOCK = 0x39
    HOME = 0x4A
    PAGE_UP = 0x4B
    DELETE = 0x4C
    END = 0x4D
    PAGE_DOWN = 0x4E
    RIGHT = 0x4F
    LEFT = 0x50
    DOWN = 0x51
    UP = 0x52
    NUM_LOCK = 0x53
    KEYPAD_SLASH = 0x54
    KEYPAD_ASTERISK = 0x55
    KEYPAD_MINUS = 0x56
    KEYPAD_PLUS = 0x57
    KEYPAD_ENTER = 0x58
    KEYPAD_1 = 0x59
    KEYPAD_2 = 0x5A
    KEYPAD_3 = 0x5B
    KEYPAD_4 = 0x5C
    KEYPAD_5 = 0x5D
    KEYPAD_6 = 0x5E
    KEYPAD_7 = 0x5F
    KEYPAD_8 = 0x60
    KEYPAD_9 = 0x61
    KEYPAD_0 = 0x62
    KEYPAD_PERIOD = 0x63
    NON_US_BACKSLASH = 0x64
    KEYPAD_EQUAL = 0x67
    KEYPAD_COMMA = 0x85  # the keypad's second separator on Brazilian keyboards
    INTERNATIONAL_1 = 0x87  # left of the right shift on Brazilian and Japanese keyboards
    INTERNATIONAL_2 = 0x88  # kana
    INTERNATIONAL_3 = 0x89  # yen
    INTERNATIONAL_4 = 0x8A  # henkan
    INTERNATIONAL_5 = 0x8B  # muhenkan
    LANG_1 = 0x90
    LANG_2 = 0x91
    LANG_3 = 0x92
    LANG_4 = 0x93
    LANG_5 = 0x94
    LEFT_CONTROL = 0xE0
    LEFT_SHIFT = 0xE1
    LEFT_ALT = 0xE2
    LEFT_GUI = 0xE3
    RIGHT_CONTROL = 0xE4
    RIGHT_SHIFT = 0xE5
    RIGHT_ALT = 0xE6
    RIGHT_GUI = 0xE7


class Modifiers(enum.IntFlag):
    """Modifier keys, bit n for usage E0 + n (the same order as in a HID boot report)."""

    LEFT_CONTROL = 1
    LEFT_SHIFT = 2
    LEFT_ALT = 4
    LEFT_GUI = 8
    RIGHT_CONTROL = 16
    RIGHT_SHIFT = 32
    RIGHT_ALT = 64
    RIGHT_GUI = 128

    CONTROL = LEFT_CONTROL | RIGHT_CONTROL
    SHIFT = LEFT_SHIFT | RIGHT_SHIFT
    ALT = LEFT_ALT | RIGHT_ALT
    GUI = LEFT_GUI | RIGHT_GUI


def modifier_of(usage: int) -> Modifiers:
    """The modifier that a usage stands for; no modifier for all other keys."""
    if Usage.LEFT_CONTROL <= usage <= Usage.RIGHT_GUI:
        return Modifiers(1 << (usage - Usage.LEFT_CONTROL))
    return Modifiers(0)


def split_keycode(keycode: int) -> tuple[int, Modifiers]:
    """A keycode of the firmware as usage and the modifiers it brings along.

    QMK packs "modifiers + key" into 0100..1FFF (`QK_MODS`): bits 0..7 the usage, bits 8..11 control,
    shift, alt, gui, bit 12 their right-hand variants (qmk_firmware, quantum/keycodes.h and
    docs/mod_tap.md). Other keycodes above FF (layers, tap dances ...) have no usage: 0.
    """
    if keycode <= 0xFF:
        return keycode, Modifiers(0)
    if keycode <= 0x1FFF:
        bits = keycode >> 8 & 0x0F
        return keycode & 0xFF, Modifiers(bits << 4 if keycode & 0x1000 else bits)
    return 0, Modifiers(0)
