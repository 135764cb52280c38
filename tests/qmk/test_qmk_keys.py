# SPDX-License-Identifier: Apache-2.0
"""What the host is told of each keycode, and what reaches the computer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.qmk_board import COMBO_EVENT, KEYS, MACROS, FakeBoard
from tests.helpers.qmk_build import OLED, VIA

LCTL, LSFT, LALT, LGUI, RSFT, RALT = 0xE0, 0xE1, 0xE2, 0xE3, 0xE5, 0xE6
A, ONE = 0x04, 0x1E
MACRO = 0x7700
DM_REC1, DM_PLY2 = 0x7C53, 0x7C57
FIRST_COMPANION_KEY = 0x77C0
MO_1 = 0x5221


@pytest.fixture
def keyboard() -> Iterator[FakeBoard]:
    with FakeBoard(OLED + VIA) as board:
        board.start()
        board.subscribe()
        yield board


def told(keyboard: FakeBoard) -> list[tuple[int, bool]]:
    events = keyboard.events()
    assert all(event.kind == 0 and not event.captured for event in events)
    return [(event.keycode, event.pressed) for event in events]


def test_position_keycode_and_order(keyboard: FakeBoard) -> None:
    keyboard.key(3, 5, A, True)
    keyboard.key(0, 2, ONE, True)
    keyboard.key(3, 5, A, False)
    found = [(e.row, e.column, e.keycode, e.pressed) for e in keyboard.events()]
    assert found == [(3, 5, A, True), (0, 2, ONE, True), (3, 5, A, False)]
    assert keyboard.typed == [(A, True), (ONE, True), (A, False)]


@pytest.mark.parametrize("keycode", [0, 1, 2, 3, 0xA5, 0xA8, 0xB0, 0xCD, 0xDF, 0xE8, 0xFF])
def test_basic_codes_that_are_no_usages_are_not_told(keyboard: FakeBoard, keycode: int) -> None:
    """QMK's media and mouse codes lie where HID page 7 has other keys."""
    keyboard.tap(0, 0, keycode)
    assert told(keyboard) == []
    assert keyboard.typed == [(keycode, True), (keycode, False)]


@pytest.mark.parametrize("keycode", [4, 0x28, 0xA4, 0xE0, 0xE7])
def test_usages_are_told_as_they_are(keyboard: FakeBoard, keycode: int) -> None:
    keyboard.tap(0, 0, keycode)
    assert told(keyboard) == [(keycode, True), (keycode, False)]


@pytest.mark.parametrize(
    ("mods", "usages"),
    [
        (0x02, [LSFT]),
        (0x12, [RSFT]),
        (0x14, [RALT]),
        (0x0F, [LCTL, LSFT, LALT, LGUI]),
    ],
)
def test_a_key_with_modifiers_is_told_as_it_is_typed(
    keyboard: FakeBoard, mods: int, usages: list[int]
) -> None:
    keyboard.key(0, 0, mods << 8 | ONE, True)
    assert told(keyboard) == [
        *((usage, True) for usage in usages),
        (ONE, True),
        *((usage, False) for usage in usages),
    ]
    keyboard.key(0, 0, mods << 8 | ONE, False)
    assert told(keyboard) == [(ONE, False)]


def test_a_mod_tap_is_its_key_when_tapped_and_its_modifiers_when_held(keyboard: FakeBoard) -> None:
    mod_tap = 0x2000 | 0x03 << 8 | A
    keyboard.tap(0, 0, mod_tap, taps=1)
    assert told(keyboard) == [(A, True), (A, False)]
    keyboard.key(0, 0, mod_tap, True)
    assert told(keyboard) == [(LCTL, True), (LSFT, True)]
    keyboard.key(0, 0, mod_tap, False)
    assert told(keyboard) == [(LCTL, False), (LSFT, False)]


def test_a_layer_tap_is_its_key_when_tapped_and_a_qmk_code_when_held(keyboard: FakeBoard) -> None:
    layer_tap = 0x4000 | 1 << 8 | A
    keyboard.tap(0, 0, layer_tap, taps=1)
    assert told(keyboard) == [(A, True), (A, False)]
    keyboard.tap(0, 0, layer_tap)
    assert told(keyboard) == [(layer_tap, True), (layer_tap, False)]


@pytest.mark.parametrize("keycode", [MO_1, 0x52A2, 0x5700, 0x7800, 0x7C00, 0x7E40, 0xC001])
def test_other_keys_are_told_as_qmk_codes(keyboard: FakeBoard, keycode: int) -> None:
    keyboard.tap(0, 0, keycode)
    assert told(keyboard) == [(keycode, True), (keycode, False)]


def test_a_one_shot_modifier_goes_with_the_next_key(keyboard: FakeBoard) -> None:
    keyboard.do(f"set oneshot {0x02}")
    keyboard.key(0, 0, A, True)
    assert told(keyboard) == [(LSFT, True), (A, True), (LSFT, False)]
    keyboard.key(0, 1, LCTL, True)
    assert told(keyboard) == [(LCTL, True)]


def test_macro_keys_are_told_by_number_and_still_type(keyboard: FakeBoard) -> None:
    keyboard.tap(1, 1, MACRO)
    keyboard.tap(1, 2, MACRO + 127)
    events = [(e.kind, e.row, e.column, e.keycode, e.pressed) for e in keyboard.events()]
    assert events == [
        (1, 16, 0, 0, True),
        (1, 16, 0, 0, False),
        (1, 143, 0, 0, True),
        (1, 143, 0, 0, False),
    ]
    assert [keycode for keycode, _ in keyboard.typed] == [MACRO, MACRO, MACRO + 127, MACRO + 127]


@pytest.mark.parametrize(("keycode", "number"), [(DM_REC1, 144), (DM_PLY2, 148)])
def test_dynamic_macro_keys_are_told_by_number(
    keyboard: FakeBoard, keycode: int, number: int
) -> None:
    keyboard.key(1, 1, keycode, True)
    kinds = [(event.kind, event.row) for event in keyboard.events() if event.kind == 1]
    assert kinds == [(1, number)]


@pytest.mark.parametrize("number", range(5))
def test_companion_keys_are_macros_0_to_4_and_type_nothing(
    keyboard: FakeBoard, number: int
) -> None:
    keyboard.tap(2, 2, FIRST_COMPANION_KEY + number)
    assert [(e.kind, e.row, e.pressed) for e in keyboard.events()] == [
        (1, number, True),
        (1, number, False),
    ]
    assert keyboard.typed == []


def test_only_the_kinds_that_the_host_wants_are_told(keyboard: FakeBoard) -> None:
    keyboard.subscribe(MACROS)
    keyboard.tap(0, 0, A)
    assert keyboard.events() == []
    keyboard.subscribe(KEYS)
    keyboard.tap(0, 0, MACRO)
    assert keyboard.events() == []


def test_combos_are_told_too(keyboard: FakeBoard) -> None:
    keyboard.key(0, 0, A, True, kind=COMBO_EVENT)
    assert told(keyboard) == [(A, True)]


def test_more_keys_than_the_ring_holds_are_counted(keyboard: FakeBoard) -> None:
    for number in range(40):
        keyboard.do(f"key 0 0 4 {number % 2} 0 1")
    keyboard.turn()
    frames = []
    for _ in range(12):
        frames += keyboard.taken()
        keyboard.turn()
    assert frames[0].payload[2] == 8
    assert sum((len(frame.payload) - 3) // 7 for frame in frames) == 32
