# SPDX-License-Identifier: Apache-2.0
"""Typing on every layout: what the keys say is what the system types, accents and Caps Lock included."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.events import KeyPressed, KeyReleased
from firmware_bridge.keys.dead_keys import DeadKey, System
from firmware_bridge.keys.layout import Layout, layout_names, load_layout
from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Direction,
    Enter,
    Escape,
    KeyText,
    Shortcut,
    TextEvent,
    TextTyped,
    Unclear,
)
from firmware_bridge.keys.typist import KeyStroke, keys_for
from firmware_bridge.keys.usage import Modifiers, Usage
from tests.layouts.reference import NAMES, Compose, keymap

SAMPLES = {
    "us": "Hello, {world}! ~50% #1 `a` \\ |",
    "uk": '£5 or €6? "Yes", he said: #1 @home ~ \\ |',
    "de": "Größe, Übermaß, Öl, Ärger: 5 €, a@b.de, {x[0]} \\ ~ |, á è ô `",
    "fr": "Où était l'hôtel ? À Noël, ça coûte 5 €, naïve, {x[0]} @ # | \\ ` ~",
    "es": "¿Qué pasó, señor? ¡Adiós! Pingüino, ç, 5 €, @ # [x] {y} \\ |",
    "it": "Perché è così? Già, più là: 5 €, @ # [x] {y}",
    "pt-br": "Não é à toa: você, pingüim, ação, ° § @ # [x] {y} / ? \\ |",
    "se": "Å, ä, ö: Åsa åt smörgås på café à 5 €, @ $ { [ ] } \\ ~ |",
    "no": "Ærlig, ø, å: Åse spiser brød på kafé, @ $ { [ ] } \\ ~ |",
    "dk": "Æbler, øl og ål: Århus, én kop på café, @ $ { [ ] } | \\",
    "fi": "Ääni, öljy, Åbo: 5 €, @ $ { [ ] } | \\ ~ š ž",
    "jis": "konnichiwa! \"a\" & 'b' (c) = d ~ ^ | ` @ { [ + ; * : ] } _ \\",
    "dvorak": "Hello, world! 'quoted' \"twice\" /?[]{}=+-_",
    "colemak": "Hello, world! ñ á ü € – — ¿ ß ð ô",
}


class Hands:
    """Presses keys of one layout, each usage at a place of its own."""

    def __init__(self, layout: Layout) -> None:
        self.key_text = KeyText(layout)

    def key(self, usage: int, pressed: bool) -> TextEvent | None:
        kind = KeyPressed if pressed else KeyReleased
        return self.key_text.feed(kind(usage, usage >> 4, usage & 15, 0, 0.0))

    def stroke(self, stroke: KeyStroke) -> list[TextEvent]:
        events = [self.key(usage, pressed) for usage, pressed in stroke.actions()]
        return [event for event in events if event is not None]

    def tap(self, usage: int, *held: int) -> list[TextEvent]:
        events = [self.key(key, True) for key in (*held, usage)]
        events += [self.key(key, False) for key in (usage, *reversed(held))]
        return [event for event in events if event is not None]

    def type(self, text: str, layout: Layout) -> list[TextEvent]:
        return [event for stroke in keys_for(text, layout) for event in self.stroke(stroke)]


def on(name: str, system: System = System.LINUX) -> tuple[Layout, Hands]:
    layout = load_layout(name, system)
    return layout, Hands(layout)


@pytest.mark.parametrize("name", layout_names())
def test_a_sample_in_the_language_goes_there_and_back(name: str) -> None:
    layout, hands = on(name)
    assert hands.type(SAMPLES[name], layout) == [TextTyped(c) for c in SAMPLES[name]]


@functools.cache
def compose_table() -> Compose:
    return Compose()


def typed_by_x11(name: str, strokes: list[KeyStroke], compose: Compose) -> list[str]:
    """What the system types, one text a key or a pair of accent and key; "" where it types nothing."""
    texts: list[str] = []
    dead: DeadKey | None = None
    with keymap(name) as source:
        for stroke in strokes:
            sign = source.sign(stroke.usage, shift=stroke.shift, altgr=stroke.altgr)
            if isinstance(sign, DeadKey) and dead is None:
                dead = sign
            elif dead is not None and sign:
                texts.append("" if isinstance(sign, DeadKey) else compose(dead, sign))
                dead = None
            elif isinstance(sign, str) and sign:
                texts.append(sign)
    return texts


@settings(deadline=None, max_examples=150)
@given(data=st.data(), name=st.sampled_from(sorted(NAMES)))
def test_any_strokes_type_what_x11_types_or_are_unclear(data: st.DataObject, name: str) -> None:
    layout, hands = on(name)
    keys = [usage for usage in layout.levels if usage != Usage.KEYPAD_PERIOD]
    strokes = data.draw(
        st.lists(
            st.builds(
                KeyStroke,
                st.sampled_from(keys),
                st.booleans(),
                st.booleans() if layout.has_altgr else st.just(False),
            ),
            max_size=12,
        )
    )
    events = [event for stroke in strokes for event in hands.stroke(stroke)]
    theirs = typed_by_x11(name, strokes, compose_table())
    assert len(events) == len(theirs)
    for event, text in zip(events, theirs, strict=True):
        assert event == Unclear() or event == TextTyped(text)
    accents = sum(isinstance(sign, DeadKey) for sign in signs_of(layout, strokes))
    assert events.count(Unclear()) <= accents


def signs_of(layout: Layout, strokes: list[KeyStroke]) -> list[str | DeadKey]:
    return [layout.sign(s.usage, shift=s.shift, altgr=s.altgr) for s in strokes]


# ------------------------------------------------------------------------------------ dead keys


def test_an_accent_waits_for_its_letter() -> None:
    _, hands = on("de")
    assert hands.tap(Usage.EQUAL) == []
    assert hands.tap(Usage.E) == [TextTyped("é")]
    assert hands.tap(Usage.E) == [TextTyped("e")]


def test_shift_and_other_modifiers_do_not_end_the_waiting() -> None:
    _, hands = on("de")
    assert hands.tap(Usage.EQUAL, Usage.LEFT_SHIFT) == []
    assert hands.tap(Usage.A, Usage.RIGHT_SHIFT) == [TextTyped("À")]


@pytest.mark.parametrize(
    ("system", "alone"), [(System.LINUX, "'"), (System.WINDOWS, "´"), (System.MACOS, "´")]
)
def test_an_accent_and_a_space_make_the_accent_alone(system: System, alone: str) -> None:
    _, hands = on("de", system)
    assert hands.tap(Usage.EQUAL) + hands.tap(Usage.SPACE) == [TextTyped(alone)]


def test_a_backspace_drops_the_accent_and_nothing_else() -> None:
    _, hands = on("de")
    hands.tap(Usage.EQUAL)
    assert hands.tap(Usage.BACKSPACE) == []
    assert hands.tap(Usage.BACKSPACE) == [Backspace()]


@pytest.mark.parametrize(
    "usage", [Usage.ENTER, Usage.ESCAPE, Usage.LEFT, Usage.EQUAL, Usage.X, Usage.DIGIT_1]
)
def test_what_an_accent_does_elsewhere_is_unclear(usage: int) -> None:
    _, hands = on("de")
    hands.tap(Usage.EQUAL)
    assert hands.tap(usage) == [Unclear()]
    assert hands.tap(Usage.E) == [TextTyped("e")]


def test_windows_composes_letters_of_latin_1_only() -> None:
    for system, event in ((System.LINUX, TextTyped("ć")), (System.WINDOWS, Unclear())):
        _, hands = on("de", system)
        assert hands.tap(Usage.EQUAL) + hands.tap(Usage.C) == [event]


# --------------------------------------------------------------------- what differs by system


def test_windows_has_accents_where_linux_has_signs() -> None:
    # Unicode CLDR 42, keyboards/windows/fr-t-k0-windows.xml and es-t-k0-windows.xml
    for name, usage, letter, linux, windows in (
        ("fr", Usage.DIGIT_2, Usage.N, "~n", "ñ"),
        ("fr", Usage.DIGIT_7, Usage.E, "`e", "è"),
        ("es", Usage.DIGIT_4, Usage.O, "~o", "õ"),
    ):
        for system, text in ((System.LINUX, linux), (System.WINDOWS, windows)):
            _, hands = on(name, system)
            events = hands.tap(usage, Usage.RIGHT_ALT) + hands.tap(letter)
            assert events == [TextTyped(character) for character in text]


def test_caps_lock_on_a_french_keyboard() -> None:
    expected = {System.LINUX: "É&A", System.WINDOWS: "21A", System.MACOS: "É&A"}
    for system, text in expected.items():
        _, hands = on("fr", system)
        hands.tap(Usage.CAPS_LOCK)
        events = [hands.tap(usage) for usage in (Usage.DIGIT_2, Usage.DIGIT_1, Usage.Q)]
        assert events == [[TextTyped(character)] for character in text]


def test_shift_and_caps_lock_together() -> None:
    for system, text in {System.LINUX: "a", System.WINDOWS: "a", System.MACOS: "A"}.items():
        _, hands = on("us", system)
        hands.tap(Usage.CAPS_LOCK)
        assert hands.tap(Usage.A, Usage.LEFT_SHIFT) == [TextTyped(text)]


def test_the_option_keys_of_a_mac_are_not_altgr() -> None:
    _, hands = on("de", System.MACOS)
    assert hands.tap(Usage.Q, Usage.RIGHT_ALT) == [Shortcut(Usage.Q, Modifiers.RIGHT_ALT)]


def test_the_key_beside_the_left_shift_of_a_us_keyboard() -> None:
    for system, text in {System.LINUX: "<", System.WINDOWS: "\\", System.MACOS: "§"}.items():
        _, hands = on("us", system)
        assert hands.tap(Usage.NON_US_BACKSLASH) == [TextTyped(text)]


# ------------------------------------------------------------------------------ special keys


def test_colemak_deletes_with_caps_lock() -> None:
    _, hands = on("colemak")
    assert hands.tap(Usage.CAPS_LOCK) == [Backspace()]
    assert hands.tap(Usage.CAPS_LOCK, Usage.LEFT_CONTROL) == [Backspace(word=True)]


def test_a_japanese_caps_lock_needs_shift() -> None:
    _, hands = on("jis")
    assert hands.tap(Usage.CAPS_LOCK) == [Unclear()]
    assert hands.tap(Usage.A) == [TextTyped("a")]
    assert hands.tap(Usage.CAPS_LOCK, Usage.LEFT_SHIFT) == []
    assert hands.tap(Usage.A) == [TextTyped("A")]


def test_keys_of_the_input_method_make_the_text_unclear() -> None:
    layout, hands = on("jis")
    assert Usage.INTERNATIONAL_4 in layout.input_method_keys
    for usage in layout.input_method_keys:
        assert hands.tap(usage) == [Unclear()]


def test_the_keypad_follows_num_lock_shift_and_the_layout() -> None:
    _, hands = on("de")
    assert hands.tap(Usage.KEYPAD_PERIOD) == [TextTyped(",")]
    assert hands.tap(Usage.KEYPAD_7, Usage.LEFT_SHIFT) == [CursorMoved(Direction.HOME)]
    hands.tap(Usage.NUM_LOCK)
    assert hands.tap(Usage.KEYPAD_7) == [CursorMoved(Direction.HOME)]
    assert hands.tap(Usage.KEYPAD_7, Usage.LEFT_SHIFT) == [Unclear()]
    assert hands.tap(Usage.KEYPAD_ENTER) == [Enter()]
    _, mac = on("de", System.MACOS)
    mac.tap(Usage.NUM_LOCK)
    assert mac.tap(Usage.KEYPAD_7) == [TextTyped("7")]


def test_brazilian_keys_that_others_lack() -> None:
    _, hands = on("pt-br")
    assert hands.tap(Usage.INTERNATIONAL_1) == [TextTyped("/")]
    assert hands.tap(Usage.KEYPAD_COMMA) == [TextTyped(".")]
    assert hands.tap(Usage.ESCAPE) == [Escape()]
