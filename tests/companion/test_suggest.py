# SPDX-License-Identifier: Apache-2.0
"""Suggest mode, told as the whole list of what goes out."""

from __future__ import annotations

import pytest

from app.companion.messages import CancelReply, Forget, SetMode
from app.settings import ModeName, Settings, SuggestSettings
from engine.client import EngineState
from engine.messages import Cancel, Failed, Suggest
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk, suggestions

READY = "lights 0,79,57 solid"
THINKING = "lights 0,57,89 breathe"


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


def test_typing_asks_for_each_text_and_shows_the_answer_to_the_newest() -> None:
    desk = Desk()
    desk.type("hel")
    assert desk.take() == [
        "suggest 1 'h'",
        "status thinking",
        picture("h_", "", "", ""),
        "suggest 2 'he'",
        picture("he_", "", "", ""),
        "suggest 3 'hel'",
        picture("hel_", "", "", ""),
    ]
    desk.suggest(("lo", 0.61), ("p", 0.2), ("sinki", 0.05))
    assert desk.take() == [
        "status listening",
        picture(
            "hel_",
            "hello      ===    61%",
            "help       =      20%",
            "helsinki           5%",
        ),
        READY,
    ]


def test_a_stale_answer_is_not_shown() -> None:
    desk = Desk()
    desk.type("he")
    desk.take()
    desk.suggest(("llo", 0.9), request=1)
    assert desk.take() == []
    desk.suggest(("llo", 0.9), request=2)
    assert "|hello" in desk.picture


def test_an_answer_to_an_earlier_text_is_narrowed_by_what_was_typed_since() -> None:
    desk = Desk()
    desk.type("he")
    desk.take()
    desk.suggest(("ello", 0.5), ("i", 0.3), ("ey", 0.2), request=1)
    assert desk.take() == [picture("he_", "hello", "hey", "")]
    desk.suggest(("llo", 0.9), request=2)
    assert "|hello      ====   90%|" in desk.picture


def test_an_answer_to_a_text_that_is_no_more_is_not_shown() -> None:
    desk = Desk()
    desk.type("hex\b")
    desk.take()
    desk.suggest(("tra", 0.5), request=3)
    assert desk.take() == []


def test_an_answer_to_a_text_that_was_wiped_is_not_shown_when_it_is_typed_again() -> None:
    desk = Desk()
    desk.type("he")
    desk.post(Forget())
    desk.type("he")
    before = desk.picture
    desk.suggest(("llo", 0.5), request=2)
    assert desk.picture == before


def test_an_answer_that_was_cancelled_is_not_shown() -> None:
    desk = Desk()
    desk.type("he")
    desk.take()
    desk.post(suggestions(2, ("llo", 0.9), cancelled=True))
    assert desk.take() == ["status listening"]
    assert desk.picture == picture("he_", "", "", "")


def test_typing_on_narrows_the_candidates_until_the_next_answer() -> None:
    desk = Desk()
    desk.type("h")
    desk.suggest(("ello", 0.5), ("i", 0.3), ("ey", 0.2))
    desk.take()
    desk.type("e")
    assert desk.take()[-1] == picture("he_", "hello", "hey", "")
    desk.type("y")
    assert desk.take()[-1] == picture("hey_", "", "", "")


def test_deleting_takes_the_candidates_away() -> None:
    desk = Desk()
    desk.type("he")
    desk.suggest(("llo", 0.5))
    desk.type("\b")
    assert desk.picture == picture("h_", "", "", "")


def test_a_candidate_that_begins_with_a_space_is_a_new_word() -> None:
    desk = Desk()
    desk.type("good")
    desk.suggest((" morning", 0.5), ("ness", 0.25))
    assert desk.picture == picture("good_", "morning    ==     50%", "goodness   =      25%", "")


def test_long_words_take_the_place_of_the_bars() -> None:
    desk = Desk()
    desk.type("in")
    desk.suggest(("ternational", 0.5), ("comprehensibilities", 0.25))
    assert desk.picture == picture("in_", "international     50%", "incomprehensibi~  25%", "")


def test_the_end_of_a_long_line_is_shown() -> None:
    desk = Desk()
    desk.type("a long line of words that goes on")
    assert desk.picture.startswith("| words that goes on_ |")


def test_keys_that_come_closer_than_the_interval_share_a_request() -> None:
    desk = Desk(Settings(suggest=SuggestSettings(interval_s=0.04)))
    desk.type("abcdef", gap_s=0.015)
    desk.advance(1)
    asked = [c.text for c in desk.engine.commands if isinstance(c, Suggest)]
    assert asked == ["a", "abc", "abcdef"]


def test_the_first_key_after_a_break_is_asked_for_at_once() -> None:
    desk = Desk()
    desk.type("a")
    desk.advance(1)
    desk.type("b", gap_s=0)
    assert [c.request for c in desk.engine.commands] == [1, 2]


def test_text_that_becomes_unknown_cancels_the_request() -> None:
    desk = Desk()
    desk.type("hel")
    desk.press(Usage.UP)
    assert desk.engine.commands[-1] == Cancel(request=3)
    assert desk.picture == picture("_", "", "", "")
    desk.suggest(("lo", 0.9), request=3)
    assert desk.picture == picture("_", "", "", "")


def test_a_shortcut_never_becomes_text() -> None:
    desk = Desk()
    desk.type("pass")
    desk.down(Usage.LEFT_CONTROL)
    desk.press(Usage.V)
    desk.up(Usage.LEFT_CONTROL)
    desk.type("x")
    assert desk.picture == picture("x_", "", "", "")
    assert [c.text for c in desk.engine.commands if isinstance(c, Suggest)][-1] == "x"


@pytest.mark.parametrize(("hold_s", "text"), [(0.2, "ab_"), (0.6, "_")])
def test_a_key_held_until_the_system_repeats_it_makes_the_text_unknown(
    hold_s: float, text: str
) -> None:
    desk = Desk()
    desk.type("a")
    desk.press(Usage.B, hold_s=hold_s)
    assert desk.picture == picture(text, "", "", "")


def test_another_key_ends_the_repeating_of_a_held_one() -> None:
    desk = Desk()
    desk.down(Usage.A)
    desk.advance(0.1)
    desk.down(Usage.B)
    desk.advance(0.1)
    desk.up(Usage.B)
    desk.advance(0.5)
    desk.up(Usage.A)
    assert desk.picture == picture("ab_", "", "", "")


def test_the_light_says_thinking_only_when_an_answer_takes_long() -> None:
    desk = Desk()
    desk.type("h", gap_s=0.4)
    assert THINKING not in desk.take()
    desk.advance(0.2)
    assert desk.take() == [THINKING]


def test_a_display_of_eight_rows_has_room_for_two_lines_and_figures() -> None:
    desk = Desk(rows=8)
    desk.type("a long line of words that goes on hel", gap_s=0.005)
    desk.advance(0.1)
    desk.suggest(("lo", 0.61), ("p", 0.2))
    assert desk.picture == picture(
        "a long line of words",
        "that goes on hel_",
        "-" * 21,
        "hello      ===    61%",
        "help       =      20%",
        "",
        "",
        "12 ms 1/8 tokens",
    )


def test_the_latency_runs_from_the_key_to_the_answer() -> None:
    desk = Desk()
    desk.type("h", gap_s=0.025)
    desk.suggest(("i", 0.9))
    assert desk.state.latency is not None
    assert desk.state.latency.milliseconds == pytest.approx(25)
    assert desk.state.latency.request == 1
    assert desk.state.reply == "i"


def test_cancel_takes_the_suggestions_away_and_the_ask_key_brings_them_back() -> None:
    desk = Desk()
    desk.type("h")
    desk.suggest(("i", 0.9))
    desk.post(CancelReply())
    assert desk.picture == picture("h_", "", "", "")
    desk.press_macro(1)
    desk.suggest(("i", 0.9))
    assert "|hi " in desk.picture


@pytest.mark.expected_log("could not answer: context-overflow")
def test_a_failed_request_says_why_in_the_last_line() -> None:
    desk = Desk()
    desk.type("h")
    desk.post(Failed(request=1, code="context-overflow", message="too long"))
    assert desk.picture == picture("h_", "", "", "too long for model")
    assert desk.state.error == "too long"
    desk.advance(2)
    assert desk.picture == picture("h_", "", "", "")
    desk.type("i")
    desk.suggest((" there", 0.5))
    assert desk.state.error == ""


def test_the_text_typed_before_the_engine_came_is_asked_for_when_it_comes() -> None:
    desk = Desk(is_ready=False)
    desk.type("hel")
    assert desk.engine.commands == []
    desk.engine_is(EngineState.READY)
    assert [c.text for c in desk.engine.commands if isinstance(c, Suggest)] == ["hel"]


def test_a_stuck_engine_is_not_flooded_and_gets_the_newest_text_when_it_answers() -> None:
    desk = Desk()
    desk.type("abcdefghijkl")
    asked = [c.text for c in desk.engine.commands if isinstance(c, Suggest)]
    assert asked[-1] == "abcdefgh"
    assert len(asked) == 8
    desk.post(suggestions(1, cancelled=True))
    desk.advance(0)
    assert desk.engine.commands[-1] == Suggest(request=9, text="abcdefghijkl")
    desk.suggest(("m", 0.9), request=9)
    assert "|abcdefghijklm" in desk.picture


def test_leaving_the_mode_cancels_and_coming_back_asks_again() -> None:
    desk = Desk()
    desk.type("hel")
    desk.post(SetMode(ModeName.REACT))
    assert desk.engine.commands[-1] == Cancel(request=3)
    desk.post(SetMode(ModeName.SUGGEST))
    assert isinstance(desk.engine.commands[-1], Suggest)
