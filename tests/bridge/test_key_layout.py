# SPDX-License-Identifier: Apache-2.0
"""Layout tables: which key gives which text, and refusal of broken ones."""

from __future__ import annotations

import string

import pytest

from firmware_bridge.keys.dead_keys import DeadKey, System
from firmware_bridge.keys.layout import Layout, layout_names, load_layout, parse_layout
from firmware_bridge.keys.usage import Modifiers, Usage, modifier_of, split_keycode

GERMAN_KEYS = """
name = "test"
[keys]
Q = ["q", "Q", "@"]
SEMICOLON = ["ö", "Ö"]
MINUS = ["ß", "?", "\\\\", "ẞ"]
"""


def test_us_is_there_and_types_all_of_ascii() -> None:
    assert "us" in layout_names()
    us = load_layout("us")
    texts = {text for level in us.levels.values() for text in level}
    assert texts == {chr(c) for c in range(0x20, 0x7F)}
    assert not us.has_altgr


@pytest.mark.parametrize("name", layout_names())
def test_every_shipped_layout_is_whole(name: str) -> None:
    layout = load_layout(name)
    assert layout.name == name
    for texts in layout.levels.values():
        assert all(isinstance(text, DeadKey) or len(text) <= 1 for text in texts)
        assert texts[-1] != "", "a level that ends in nothing"


@pytest.mark.parametrize(
    ("usage", "shift", "text"),
    [
        (Usage.A, False, "a"),
        (Usage.A, True, "A"),
        (Usage.DIGIT_2, True, "@"),
        (Usage.QUOTE, True, '"'),
        (Usage.SPACE, True, " "),
        (Usage.ENTER, False, ""),
        (0x3A, False, ""),  # F1
    ],
)
def test_us_keys(usage: int, shift: bool, text: str) -> None:
    assert load_layout("us").sign(usage, shift=shift) == text


def test_caps_lock_turns_letters_only() -> None:
    us = load_layout("us")
    for i, letter in enumerate(string.ascii_lowercase):
        assert us.sign(Usage.A + i, caps_lock=True) == letter.upper()
        assert us.sign(Usage.A + i, shift=True, caps_lock=True) == letter
    assert us.sign(Usage.DIGIT_1, caps_lock=True) == "1"


def test_levels_with_altgr() -> None:
    layout = parse_layout(GERMAN_KEYS)
    assert layout.has_altgr
    assert layout.sign(Usage.Q, altgr=True) == "@"
    assert layout.sign(Usage.Q, shift=True, altgr=True) == ""
    assert layout.sign(Usage.MINUS, shift=True, altgr=True) == "ẞ"
    assert layout.sign(Usage.SEMICOLON, caps_lock=True) == "Ö"
    assert layout.sign(Usage.MINUS, caps_lock=True) == "ẞ"
    on_windows = parse_layout(GERMAN_KEYS, System.WINDOWS)
    assert on_windows.sign(Usage.MINUS, caps_lock=True) == "ß"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[keys]", "name"),
        ('name = "x"', "keys"),
        ('name = "x"\n[keys]\nNOKEY = ["a"]', "NOKEY"),
        ('name = "x"\n[keys]\nA = []', "A needs"),
        ('name = "x"\n[keys]\nA = ["1", "2", "3", "4", "5"]', "A needs"),
        ('name = "x"\n[keys]\nA = ["dead cat"]', "A: 'cat'"),
        ('name = "x"\n[keys]\nA = ["ab"]', "A: a sign is"),
        ('name = "x"\ncolour = 1\n[keys]\nA = ["a"]', "colour is no property"),
        ('name = "x"\ncaps_lock = "no"\n[keys]\nA = ["a"]', "'no' is not a valid CapsLock"),
        ('name = "x"\n[keys]\nA = [1]', "A needs"),
        ('name = "x"\n[keys]\nA = "a"', "A needs"),
        ("name = ", "Invalid value"),
    ],
)
def test_broken_tables_are_refused_by_name(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_layout(source)


def test_an_unknown_layout_names_those_that_exist() -> None:
    with pytest.raises(ValueError, match="us"):
        load_layout("klingon")


def test_layouts_are_plain_data() -> None:
    assert Layout("x", {}).sign(Usage.A) == ""


@pytest.mark.parametrize(
    ("keycode", "usage", "modifiers"),
    [
        (0x04, 0x04, Modifiers(0)),
        (0x021E, 0x1E, Modifiers.LEFT_SHIFT),  # QMK S(KC_1)
        (0x1404, 0x04, Modifiers.RIGHT_ALT),  # QMK RALT(KC_A)
        (0x0106, 0x06, Modifiers.LEFT_CONTROL),
        (0x4104, 0, Modifiers(0)),  # QMK LT(1, KC_A)
        (0x7E00, 0, Modifiers(0)),
    ],
)
def test_qmk_keycodes(keycode: int, usage: int, modifiers: Modifiers) -> None:
    assert split_keycode(keycode) == (usage, modifiers)


def test_modifiers_have_the_bits_of_a_boot_report() -> None:
    for bit, usage in enumerate(range(0xE0, 0xE8)):
        assert modifier_of(usage) == 1 << bit
    assert not any(modifier_of(usage) for usage in (*range(0xE0), *range(0xE8, 0x100)))
