# SPDX-License-Identifier: Apache-2.0
"""The ask key in suggest mode: the best candidate and what comes after it, ready or streamed."""

from __future__ import annotations

from app.companion.messages import Pause
from app.settings import ReadySettings, Settings
from engine.client import EngineState
from engine.messages import (
    Cancel,
    Complete,
    Prepare,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
    Suggest,
    SuggestionsReady,
)
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk

ASK, CANCEL = 1, 3


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in [*rows, "", "", ""][:4])


def suggested(desk: Desk, word: str = "lo") -> None:
    desk.type("hel")
    request = next(c.request for c in reversed(desk.engine.commands) if isinstance(c, Suggest))
    desk.suggest((word, 0.9), ("p", 0.05), request=request)


def prepared(desk: Desk) -> Prepare:
    command = desk.engine.commands[-1]
    assert isinstance(command, Prepare)
    return command


def ready(desk: Desk, text: str, tokens: list[int], is_whole: bool = False) -> None:
    command = prepared(desk)
    desk.post(
        ReplyReady(
            request=command.request,
            context=command.context,
            text=text,
            tokens=tokens,
            is_whole=is_whole,
        )
    )


def test_what_follows_the_best_candidate_is_computed_ahead() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    ask = prepared(desk).ask
    assert isinstance(ask, Complete)
    assert ask.text == "hello"


def test_a_ready_continuation_is_shown_at_once_and_goes_on() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    ready(desk, " there, how", [4, 5])
    asked = len(desk.engine.commands)
    desk.press_macro(ASK)
    assert desk.picture == picture("hel_", "hello there, how")
    since = desk.engine.commands[asked:]
    assert not [c for c in since if not isinstance(c, Cancel)], "the engine is told later"
    assert desk.state.latency is not None
    assert desk.state.latency.is_ready
    desk.advance(0.01)
    complete = desk.engine.commands[-1]
    assert isinstance(complete, Complete)
    assert (complete.text, complete.begun) == ("hello", [4, 5])
    desk.post(ReplyGrew(request=complete.request, text=" are you?"))
    assert desk.picture == picture("hel_", "hello there, how are", "you?")
    desk.post(
        ReplyFinished(
            request=complete.request, reason="length", tokens=3, first_token_ms=1, milliseconds=1
        )
    )
    assert desk.picture == picture("hel_", "hello there, how are", "you? ...")
    assert desk.state.reply == "lo there, how are you? ..."


def test_the_candidate_alone_is_a_beginning() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    desk.press_macro(ASK)
    assert desk.picture == picture("hel_", "hello")
    assert (desk.state.ready.hits, desk.state.ready.misses) == (1, 0)


def test_a_whole_continuation_needs_no_engine() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    ready(desk, " there.", [4], is_whole=True)
    asked = len(desk.engine.commands)
    desk.press_macro(ASK)
    desk.advance(1)
    assert not any(isinstance(c, Complete) for c in desk.engine.commands[asked:])
    assert desk.picture == picture("hel_", "hello there.")


def test_typing_and_escape_bring_the_candidates_back() -> None:
    for usage in (Usage.L, Usage.ESCAPE, None):
        desk = Desk(ahead=True)
        suggested(desk)
        desk.press_macro(ASK)
        desk.advance(0.01)
        complete = desk.engine.commands[-1]
        if usage is None:
            desk.press_macro(CANCEL)
        else:
            desk.press(usage)
        assert Cancel(request=complete.request) in desk.engine.commands
        assert desk.picture.startswith("|hell_" if usage == Usage.L else "|hel_ ")
        shown = desk.picture
        desk.post(ReplyGrew(request=complete.request, text=" late"))
        assert desk.picture == shown


def test_the_ask_key_turns_its_pages() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    ready(desk, " one two three four five six seven eight nine ten eleven twelve " * 2, [1, 2, 3])
    desk.press_macro(ASK)
    first = desk.picture
    desk.press_macro(ASK)
    assert desk.picture != first
    assert desk.picture.startswith("|hel_")


def test_without_a_candidate_the_ask_key_asks_again() -> None:
    desk = Desk(ahead=True)
    desk.type("hel")
    asked = [c for c in desk.engine.commands if isinstance(c, Suggest)]
    desk.press_macro(ASK)
    desk.advance(0.1)
    assert len([c for c in desk.engine.commands if isinstance(c, Suggest)]) == len(asked) + 1


def test_without_replies_ahead_it_is_asked_for_on_the_key() -> None:
    desk = Desk(Settings(ready=ReadySettings(enabled=False)))
    suggested(desk)
    assert not any(isinstance(c, Prepare) for c in desk.engine.commands)
    desk.press_macro(ASK)
    desk.advance(0.01)
    assert isinstance(desk.engine.commands[-1], Complete)
    assert desk.picture == picture("hel_", "hello")


def test_a_pause_and_the_death_of_the_engine_take_it_away() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    ready(desk, " there", [1])
    desk.press_macro(ASK)
    desk.engine_is(EngineState.RESTARTING)
    desk.engine_is(EngineState.READY)
    assert "there" not in desk.picture
    suggested(desk)
    ready(desk, " there", [1])
    desk.press_macro(ASK)
    assert "there" in desk.picture
    desk.post(Pause())
    assert "there" not in desk.picture
    assert desk.state.reply == ""


def test_an_answer_for_phrases_does_not_come_over_it() -> None:
    desk = Desk(ahead=True)
    suggested(desk)
    desk.press_macro(ASK)
    shown = desk.picture
    number = next(c.request for c in reversed(desk.engine.commands) if isinstance(c, Suggest))
    desk.post(
        SuggestionsReady(
            request=number, candidates=[], reused=0, computed=0, milliseconds=1, cancelled=False
        )
    )
    desk.advance(1)
    assert desk.picture == shown
