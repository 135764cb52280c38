# SPDX-License-Identifier: Apache-2.0
"""Every key of every layout, at every level and with Caps Lock, against libxkbcommon."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from firmware_bridge.keys.dead_keys import DeadKey, System, compose
from firmware_bridge.keys.layout import (
    KEYPAD_DIGITS,
    KEYPAD_SIGNS,
    CapsLockKey,
    Layout,
    layout_names,
    load_layout,
)
from firmware_bridge.keys.usage import Usage
from firmware_bridge.keys.xkbcommon import XkbKeymap
from tests.layouts.reference import NAMES, Compose, keymap

FOUR_LEVELS = [(shift, altgr) for altgr in (False, True) for shift in (False, True)]
KEYPAD = {*KEYPAD_DIGITS, *KEYPAD_SIGNS}
# Of these the system's layout says nothing that is text.
NO_TEXT = {
    *range(Usage.ENTER, Usage.SPACE),
    *range(Usage.CAPS_LOCK, Usage.NUM_LOCK + 1),
    Usage.KEYPAD_ENTER,
    Usage.INTERNATIONAL_2,
    *range(Usage.INTERNATIONAL_4, Usage.RIGHT_GUI + 1),
}
TEXT_KEYS = [usage for usage in Usage if usage not in KEYPAD | NO_TEXT]
# Where we differ from the source on purpose, all with Caps Lock and on keys that hold one of these signs.
DELIBERATE = {
    "µ": "libxkbcommon makes a capital of it that it cannot print; elsewhere it stays as it is",
    "ſ": "a long s has no capital of its own",
}


@pytest.fixture(params=sorted(NAMES))
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Layout, XkbKeymap]]:
    with keymap(request.param) as source:
        yield load_layout(request.param, System.LINUX), source


def test_every_layout_has_its_source() -> None:
    assert sorted(NAMES) == layout_names()


def test_every_key_agrees(pair: tuple[Layout, XkbKeymap]) -> None:
    layout, source = pair
    assert len(TEXT_KEYS) == 52
    differences = []
    for usage, caps_lock in itertools.product(TEXT_KEYS, (False, True)):
        for shift, altgr in FOUR_LEVELS:
            if altgr and not layout.has_altgr:
                continue
            if caps_lock and DELIBERATE.keys() & set(layout.levels.get(usage, ())):
                continue
            held = {"shift": shift, "altgr": altgr, "caps_lock": caps_lock}
            ours, theirs = layout.sign(usage, **held), source.sign(usage, **held)
            if ours != theirs:
                differences.append((usage.name, held, ours, theirs))
    assert differences == []


def test_every_deliberate_difference_is_one() -> None:
    with keymap("de") as source:
        layout = load_layout("de", System.LINUX)
        for sign in DELIBERATE:
            usage, level = next(
                (usage, signs.index(sign))
                for usage, signs in layout.levels.items()
                if sign in signs
            )
            held = {"shift": bool(level & 1), "altgr": bool(level & 2), "caps_lock": True}
            assert layout.sign(usage, **held) != source.sign(usage, **held)


def test_the_keypad_agrees(pair: tuple[Layout, XkbKeymap]) -> None:
    layout, source = pair
    signs = {**KEYPAD_DIGITS, **KEYPAD_SIGNS}
    signs |= {usage: layout.sign(usage) for usage in KEYPAD if layout.sign(usage)}
    assert signs == {usage: source.sign(usage, num_lock=True) for usage in signs}


def test_altgr_and_caps_lock_are_where_the_source_has_them(
    pair: tuple[Layout, XkbKeymap],
) -> None:
    layout, source = pair
    assert layout.has_altgr == (source.key_name(Usage.RIGHT_ALT) == "ISO_Level3_Shift")
    alone = source.key_name(Usage.CAPS_LOCK)
    with_shift = source.key_name(Usage.CAPS_LOCK, shift=True)
    expected = {
        CapsLockKey.LOCK: ("Caps_Lock", "Caps_Lock"),
        CapsLockKey.LOCK_WITH_SHIFT: ("Eisu_toggle", "Caps_Lock"),
        CapsLockKey.BACKSPACE: ("BackSpace", "BackSpace"),
    }
    assert (alone, with_shift) == expected[layout.caps_lock_key]


def test_keys_of_the_input_method_type_nothing(pair: tuple[Layout, XkbKeymap]) -> None:
    layout, source = pair
    for usage in layout.input_method_keys:
        assert layout.sign(usage) == "" == source.sign(usage)


def test_every_accent_agrees_on_every_sign() -> None:
    source = Compose()
    signs = {
        sign
        for name in layout_names()
        for signs in load_layout(name, System.LINUX).levels.values()
        for sign in signs
    }
    characters = sorted(sign for sign in signs if isinstance(sign, str) and sign)
    accents = {sign for sign in signs if isinstance(sign, DeadKey)}
    assert len(characters) > 200
    assert len(accents) > 15
    made: set[str] = set()
    for dead, character in itertools.product(accents, characters):
        ours = compose(dead, character, System.LINUX)
        if ours:
            assert ours == source(dead, character), (dead, character)
            made.add(ours)
    # No accented letter of Latin-1 is missing.
    theirs = {source(dead, character) for dead in accents for character in characters}
    latin_1 = {text for text in theirs if len(text) == 1 and text.isalpha() and ord(text) < 0x100}
    assert latin_1 - made - set(characters) == set()
    assert len(latin_1 & made) >= 53
