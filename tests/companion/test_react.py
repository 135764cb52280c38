# SPDX-License-Identifier: Apache-2.0
"""React mode: what makes it choose, how often a mood may change, what the model is told."""

from __future__ import annotations

import itertools

import pytest

from app.companion.messages import CancelReply
from app.companion.modes.moods import load_moods, parse_moods
from app.companion.modes.rhythm import Rhythm
from app.companion.prompts import load_react_prompt
from app.i18n import Language
from app.settings import ModeName, ReactSettings, Settings
from engine.client import EngineState
from engine.messages import Cancel, Choose, LabelChosen
from firmware_bridge.events import EventsDropped
from firmware_bridge.keys.usage import Usage
from firmware_bridge.protocol.capabilities import Feature
from tests.helpers.companion import Desk

WORDS = load_react_prompt("en").rhythm


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


HAPPY = picture("    .--------.", "   |  ^    ^  |", "   |   \\__/   |", "    '--------'")


TEXT_ONLY = Feature(63) & ~Feature.BITMAP


def reacting(rows: int = 4, features: Feature = TEXT_ONLY, *, is_ready: bool = True) -> Desk:
    return Desk(Settings(mode=ModeName.REACT), rows=rows, features=features, is_ready=is_ready)


def choose(desk: Desk, label: str, request: int | None = None, *, cancelled: bool = False) -> None:
    desk.post(
        LabelChosen(
            request=desk.request if request is None else request,
            label=label,
            probability=0.75,
            milliseconds=3,
            cancelled=cancelled,
        )
    )


def asked(desk: Desk) -> list[str]:
    """The user turn of every Choose."""
    return [c.turns[-1].content for c in desk.engine.commands if isinstance(c, Choose)]


def test_a_line_brings_a_mood_with_its_face_and_light() -> None:
    desk = reacting()
    desk.take()
    desk.type("it works!\n", gap_s=0.2)
    assert asked(desk) == ["it works! (steady)"]
    (command,) = desk.engine.commands
    assert isinstance(command, Choose)
    assert command.labels == list(load_moods())
    assert [turn.role for turn in command.turns[:3]] == ["system", "user", "assistant"]
    desk.take()
    choose(desk, "happy")
    assert desk.take() == ["status listening", HAPPY, "lights 102,95,28 solid"]
    assert desk.state.reply == "happy"
    assert desk.state.latency is not None
    assert desk.state.latency.milliseconds == pytest.approx(200)


def test_a_tall_display_names_the_mood() -> None:
    desk = reacting(rows=8)
    desk.type("x\n")
    choose(desk, "happy")
    assert desk.picture == "\n".join((picture("react"), HAPPY, picture("", "happy 75%", "")))


def test_a_pause_a_macro_key_and_the_ask_key_are_causes_too() -> None:
    desk = reacting()
    desk.type("hm")
    desk.advance(0.8)
    assert asked(desk) == []
    desk.advance(0.2)
    assert asked(desk) == ["hm (fast)"]
    choose(desk, "calm")
    desk.advance(2)
    desk.press_macro(7)
    assert asked(desk)[-1] == "hm (fast, macro key 7 pressed)"
    choose(desk, "calm")
    desk.advance(2)
    desk.press_macro(1)
    assert asked(desk)[-1] == "hm (fast)"
    assert len(asked(desk)) == 3


def test_the_mood_changes_at_most_once_a_second() -> None:
    """Causes come every 50 ms and the engine answers at once, each time with another mood."""
    desk = reacting()
    labels = list(load_moods())
    changes = []
    for _i in range(100):
        desk.press_macro(9)
        before = desk.state.reply
        if desk.engine.commands and desk.request not in [n for n, _ in changes]:
            choose(desk, labels[len(changes) % len(labels)])
            if desk.state.reply != before:
                changes.append((desk.request, desk.clock.now))
        desk.advance(0.05)
    times = [at for _, at in changes]
    assert 4 <= len(times) <= 6, "5 s hold 5 changes, one each second"
    assert min(b - a for a, b in itertools.pairwise(times)) >= 1.0


def test_one_request_at_a_time_and_the_newest_cause_is_kept() -> None:
    desk = reacting()
    desk.press_macro(5)
    desk.press_macro(6)
    desk.press_macro(7)
    assert len(asked(desk)) == 1
    choose(desk, "calm")
    assert len(asked(desk)) == 1
    desk.advance(0.9)
    assert len(asked(desk)) == 1
    desk.advance(0.2)
    assert "macro key 7" in asked(desk)[-1]
    assert len(asked(desk)) == 2


@pytest.mark.parametrize("cancelled", [False, True])
def test_answers_that_are_not_waited_for_change_nothing(cancelled: bool) -> None:
    desk = reacting()
    desk.press_macro(5)
    choose(desk, "sad", request=desk.request + (not cancelled), cancelled=cancelled)
    assert desk.state.reply == ""


def test_cancel_puts_the_face_away() -> None:
    desk = reacting()
    desk.press_macro(5)
    choose(desk, "happy")
    desk.advance(2)
    desk.press_macro(5)
    desk.take()
    desk.post(CancelReply())
    assert desk.take()[0] == "cancel 2"
    assert isinstance(desk.engine.commands[-1], Cancel)
    assert desk.picture == picture("react", "Type a line or", "press a macro key.", "")


def test_a_cause_before_the_engine_came_is_kept() -> None:
    desk = reacting(is_ready=False)
    desk.press_macro(5)
    desk.advance(3)
    assert asked(desk) == []
    desk.engine_is(EngineState.READY)
    assert len(asked(desk)) == 1


def test_only_the_end_of_a_long_line_goes_to_the_model() -> None:
    desk = reacting()
    desk.type("a" * 100 + "z" * 80 + "\n", gap_s=0.01)
    assert asked(desk)[-1] == "z" * 80 + " (fast)"


def test_a_line_with_braces_is_only_text() -> None:
    desk = reacting()
    desk.type("{labels} {0} %s\n")
    assert asked(desk)[-1] == "{labels} {0} %s (fast)"


@pytest.mark.parametrize(("gap_s", "words"), [(0.4, "slow"), (0.2, "steady"), (0.1, "fast")])
def test_rhythm_is_named_by_its_speed(gap_s: float, words: str) -> None:
    rhythm = Rhythm()
    for i in range(20):
        rhythm.add(i * gap_s, is_correction=False)
    assert rhythm.describe(WORDS, 19 * gap_s) == words


def test_rhythm_names_corrections_and_silence() -> None:
    rhythm = Rhythm()
    assert rhythm.describe(WORDS, 0) == "not typing"
    for i in range(20):
        rhythm.add(i * 0.2, is_correction=i % 4 == 0)
    assert rhythm.describe(WORDS, 3.8) == "steady, with many corrections"
    assert rhythm.describe(WORDS, 30) == "not typing"
    rhythm.wipe()
    assert rhythm.keys_per_second(3.8) == 0


def test_backspaces_count_as_corrections() -> None:
    desk = reacting()
    desk.type("ab\bab\b\n")
    assert asked(desk)[-1] == "aa (fast, with many corrections)"


def test_the_examples_name_moods_that_exist_and_leave_none_out() -> None:
    assert {label for _, _, label in load_react_prompt("en").examples} == set(load_moods())


def test_a_macro_of_the_keymap_is_called_by_its_name_and_ends_the_text() -> None:
    desk = Desk(Settings(mode=ModeName.REACT, macros=("build", "deploy")))
    desk.type("secret")
    desk.press_macro(17)
    assert asked(desk)[-1].startswith("[deploy] (")
    assert asked(desk)[-1].endswith("macro key deploy pressed)")
    assert "secret" not in asked(desk)[-1]


def test_a_macro_key_without_any_text_is_told_as_silence() -> None:
    desk = reacting()
    desk.press_macro(5)
    assert asked(desk) == ["... (not typing, macro key 5 pressed)"]


def test_the_moods_fit_the_display_and_begin_differently() -> None:
    moods = load_moods()
    assert len(moods) >= 6
    assert len({label[:3] for label in moods}) == len(moods)
    assert len({mood.face for mood in moods.values()}) == len(moods)
    for mood in moods.values():
        assert len(mood.face) == 4
        assert (mood.art.width, mood.art.height) <= (32, 24)
        assert mood.lights.fill is not None


@pytest.mark.parametrize(
    ("face", "reason"),
    [("x" * 21, "larger"), ("\\n".join("abcde"), "larger"), ("\u263a", "ASCII")],
)
def test_a_face_that_does_not_fit_is_refused(face: str, reason: str) -> None:
    source = f'[odd]\nart = "█"\nface = "{face}"\ncolour = [1, 2, 3]\neffect = "solid"\n'
    with pytest.raises(ValueError, match=reason):
        parse_moods(source)


@pytest.mark.parametrize(
    ("art", "reason"),
    [("█" * 33, "larger"), ("\\n".join("█" * 13), "larger"), (":-)", "half blocks|made of")],
)
def test_art_that_does_not_fit_is_refused(art: str, reason: str) -> None:
    source = f'[odd]\nart = "{art}"\nface = "x"\ncolour = [1, 2, 3]\neffect = "solid"\n'
    with pytest.raises(ValueError, match=reason):
        parse_moods(source)


def test_a_display_with_pixels_gets_the_face_as_a_picture_and_its_name() -> None:
    desk = reacting(features=Feature(63))
    desk.type("it works!\n", gap_s=0.2)
    desk.take()
    choose(desk, "happy")
    assert "picture 126x32" in desk.take()
    assert desk.state.lines == ("happy", "75%")


def test_moods_have_names_in_the_persons_language_and_labels_for_the_model() -> None:
    names = {mood.name for mood in load_moods(Language.ZH_CN).values()}
    assert len(names) == len(load_moods())
    assert all(not name.isascii() for name in names)
    assert load_moods(Language.ZH_CN).keys() == load_moods().keys()
    assert all(mood.name == label for label, mood in load_moods().items())


def test_escape_and_arrows_are_no_lines() -> None:
    desk = reacting()
    desk.press(Usage.ESCAPE)
    desk.press(Usage.UP)
    assert asked(desk) == []


def test_lost_keys_are_no_cause() -> None:
    desk = reacting()
    desk.post(EventsDropped(2))
    desk.advance(5)
    assert asked(desk) == []


def test_the_pause_that_counts_can_be_set() -> None:
    desk = Desk(Settings(mode=ModeName.REACT, react=ReactSettings(pause_s=3)))
    desk.type("hm")
    desk.advance(2.5)
    assert asked(desk) == []
    desk.advance(1)
    assert len(asked(desk)) == 1
