# SPDX-License-Identifier: Apache-2.0
"""Key events -> text events: modifiers, Caps Lock, shortcuts, and the way back for scripts."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.events import EventsDropped, KeyPressed, KeyReleased, LinkLost
from firmware_bridge.keys.layout import Layout, load_layout, parse_layout
from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Delete,
    Direction,
    Enter,
    Escape,
    KeyText,
    Shortcut,
    Tab,
    TextEvent,
    TextTyped,
)
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.keys.usage import Modifiers, Usage

US = load_layout("us")
PRINTABLE = [chr(c) for c in range(0x20, 0x7F)]
WITH_ALTGR = parse_layout('name = "t"\n[keys]\nA = ["a", "A", "æ", "Æ"]\nE = ["e", "E", "€"]\n')


class Typist:
    """Presses keys into a KeyText, one position for each usage."""

    def __init__(self, layout: Layout = US) -> None:
        self.key_text = KeyText(layout)

    def key(self, keycode: int, pressed: bool) -> TextEvent | None:
        kind = KeyPressed if pressed else KeyReleased
        return self.key_text.feed(kind(keycode, keycode >> 8, keycode & 0xFF, 0, 0.0))

    def tap(self, keycode: int, *modifiers: int) -> TextEvent | None:
        for modifier in modifiers:
            assert self.key(modifier, True) is None
        event = self.key(keycode, True)
        assert self.key(keycode, False) is None
        for modifier in modifiers:
            assert self.key(modifier, False) is None
        return event

    def type(self, text: str, layout: Layout = US) -> list[TextEvent]:
        actions = [action for stroke in keys_for(text, layout) for action in stroke.actions()]
        events = [self.key(usage, pressed) for usage, pressed in actions]
        return [event for event in events if event is not None]


@given(st.text(st.sampled_from(PRINTABLE), max_size=60))
def test_what_keys_for_presses_is_what_key_text_reads(text: str) -> None:
    events = Typist().type(text)
    assert events == [TextTyped(character) for character in text]


def test_every_printable_character_round_trips() -> None:
    assert Typist().type("".join(PRINTABLE)) == [TextTyped(c) for c in PRINTABLE]


def test_control_characters_are_keys() -> None:
    assert Typist().type("\n\t\b\x1b") == [Enter(), Tab(), Backspace(), Escape()]


def test_altgr_levels_round_trip() -> None:
    typist = Typist(WITH_ALTGR)
    assert typist.type("aAæÆ€", WITH_ALTGR) == [TextTyped(c) for c in "aAæÆ€"]


def test_caps_lock_toggles_on_press() -> None:
    typist = Typist()
    assert typist.tap(Usage.CAPS_LOCK) is None
    assert typist.tap(Usage.A) == TextTyped("A")
    assert typist.tap(Usage.A, Usage.LEFT_SHIFT) == TextTyped("a")
    assert typist.tap(Usage.DIGIT_1) == TextTyped("1")
    typist.tap(Usage.CAPS_LOCK)
    assert typist.tap(Usage.A) == TextTyped("a")


def test_either_shift_counts_until_both_are_up() -> None:
    typist = Typist()
    typist.key(Usage.LEFT_SHIFT, True)
    typist.key(Usage.RIGHT_SHIFT, True)
    typist.key(Usage.LEFT_SHIFT, False)
    assert typist.tap(Usage.B) == TextTyped("B")
    typist.key(Usage.RIGHT_SHIFT, False)
    assert typist.tap(Usage.B) == TextTyped("b")


@pytest.mark.parametrize(
    ("usage", "modifiers", "event"),
    [
        (Usage.BACKSPACE, [], Backspace()),
        (Usage.BACKSPACE, [Usage.LEFT_CONTROL], Backspace(word=True)),
        (Usage.BACKSPACE, [Usage.LEFT_ALT], Backspace(word=True)),
        (Usage.BACKSPACE, [Usage.LEFT_SHIFT], Backspace()),
        (Usage.DELETE, [], Delete()),
        (Usage.DELETE, [Usage.RIGHT_CONTROL], Delete(word=True)),
        (Usage.ENTER, [], Enter()),
        (Usage.ENTER, [Usage.LEFT_SHIFT], Enter(shift=True)),
        (Usage.KEYPAD_ENTER, [], Enter()),
        (Usage.TAB, [Usage.RIGHT_SHIFT], Tab(shift=True)),
        (Usage.ESCAPE, [], Escape()),
        (Usage.LEFT, [], CursorMoved(Direction.LEFT)),
        (Usage.RIGHT, [Usage.LEFT_CONTROL], CursorMoved(Direction.RIGHT, word=True)),
        (Usage.END, [Usage.LEFT_SHIFT], CursorMoved(Direction.END, selecting=True)),
        (Usage.C, [Usage.LEFT_CONTROL], Shortcut(Usage.C, Modifiers.LEFT_CONTROL)),
        (Usage.TAB, [Usage.LEFT_ALT], Shortcut(Usage.TAB, Modifiers.LEFT_ALT)),
        (Usage.E, [Usage.RIGHT_ALT], Shortcut(Usage.E, Modifiers.RIGHT_ALT)),
        (Usage.LEFT, [Usage.LEFT_GUI], Shortcut(Usage.LEFT, Modifiers.LEFT_GUI)),
        (0x3A, [], None),  # F1
        (0x4104, [], None),  # QMK LT(1, KC_A): the host cannot tell a tap from a hold
        (0x021E, [], TextTyped("!")),  # QMK S(KC_1)
        (0x0106, [], Shortcut(Usage.C, Modifiers.LEFT_CONTROL)),  # QMK LCTL(KC_C)
    ],
)
def test_keys_that_are_no_text(usage: int, modifiers: list[int], event: TextEvent | None) -> None:
    assert Typist().tap(usage, *modifiers) == event


def test_the_right_alt_chooses_a_level_only_where_the_layout_has_one() -> None:
    typist = Typist(WITH_ALTGR)
    assert typist.tap(Usage.E, Usage.RIGHT_ALT) == TextTyped("€")
    assert typist.tap(Usage.E, Usage.LEFT_ALT) == Shortcut(Usage.E, Modifiers.LEFT_ALT)
    control = Usage.LEFT_CONTROL
    assert isinstance(typist.tap(Usage.E, Usage.RIGHT_ALT, control), Shortcut)


def test_the_keypad_types_digits_while_num_lock_is_on() -> None:
    typist = Typist()
    digits = [typist.tap(Usage.KEYPAD_1 + i) for i in range(11)]
    assert digits == [TextTyped(c) for c in "1234567890."]
    assert typist.tap(Usage.KEYPAD_PLUS) == TextTyped("+")
    typist.tap(Usage.NUM_LOCK)
    assert typist.tap(Usage.KEYPAD_7) == CursorMoved(Direction.HOME)
    assert typist.tap(Usage.KEYPAD_PERIOD) == Delete()
    assert typist.tap(Usage.KEYPAD_5) is None
    assert typist.tap(Usage.KEYPAD_PLUS) == TextTyped("+")


@pytest.mark.parametrize("lost", [EventsDropped(3), LinkLost("gone")])
def test_no_modifier_stays_down_after_lost_events(lost: EventsDropped | LinkLost) -> None:
    typist = Typist()
    typist.key(Usage.LEFT_CONTROL, True)
    assert typist.key_text.feed(lost) is None
    assert typist.tap(Usage.A) == TextTyped("a")


def test_modifier_combinations_of_qmk_count_as_held() -> None:
    typist = Typist()
    typist.key(0x0200, True)  # LSFT(KC_NO)
    assert typist.tap(Usage.A) == TextTyped("A")
    typist.key(0x0200, False)
    assert typist.tap(Usage.A) == TextTyped("a")


def test_a_character_that_the_layout_lacks_is_not_shown() -> None:
    with pytest.raises(ValueError, match="character 3") as caught:
        keys_for("abéd", US)
    assert "é" not in str(caught.value)


def test_content_stays_out_of_repr_and_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    events = Typist().type("secret")
    shown = repr(events) + repr(keys_for("secret", US)) + repr(Shortcut(Usage.S, Modifiers(1)))
    assert "secret" not in shown
    assert "'s'" not in shown
    assert str(int(Usage.S)) not in shown
    assert caplog.text == ""
