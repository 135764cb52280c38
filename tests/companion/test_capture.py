# SPDX-License-Identifier: Apache-2.0
"""Captured questions: typed from any mode, answered on the display, and back to what was going on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.companion.asked import ReplyEnd
from app.companion.messages import (
    Ask,
    CancelReply,
    Configure,
    FocusChanged,
    Forget,
    Pause,
    SetMode,
)
from app.settings import ChatSettings, ModeName, Settings
from engine.client import EngineState
from engine.messages import Chat, Failed, ReplyFinished, ReplyGrew, Suggest
from firmware_bridge.events import CaptureEnded, CaptureStarted
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk


def reply(desk: Desk, text: str) -> None:
    desk.post(ReplyGrew(request=desk.request, text=text))
    desk.post(
        ReplyFinished(
            request=desk.request, reason="stop", tokens=3, first_token_ms=1, milliseconds=2
        )
    )


def test_a_captured_question_is_asked_in_chat_and_the_next_word_leads_back() -> None:
    desk = Desk()
    desk.type("go ")
    desk.capture("hi\n")
    assert desk.state.mode is ModeName.CHAT
    assert isinstance(desk.engine.commands[-1], Chat)
    assert [turn.content for turn in desk.engine.commands[-1].turns][1:] == ["hi"]
    reply(desk, "Hello!")
    assert desk.picture.startswith("|Hello!")
    desk.advance(20)
    assert desk.state.mode is ModeName.CHAT  # it stays until it is read
    desk.type("on")
    assert desk.state.mode is ModeName.SUGGEST
    last = desk.engine.commands[-1]
    assert isinstance(last, Suggest)
    assert last.text == "go on"  # what was captured did not come between


def test_typing_goes_on_in_the_persons_window_while_the_answer_comes() -> None:
    desk = Desk()
    desk.type("one ")
    desk.capture("hi\n")
    desk.type("two ")
    assert desk.state.mode is ModeName.CHAT
    assert len([c for c in desk.engine.commands if isinstance(c, Chat)]) == 1
    reply(desk, "Hello!")
    desk.type("x")
    last = desk.engine.commands[-1]
    assert isinstance(last, Suggest)
    assert last.text == "one two x"


@pytest.mark.parametrize("mode", [ModeName.SUGGEST, ModeName.REACT])
def test_a_question_from_outside_is_a_guest_too(mode: ModeName) -> None:
    desk = Desk(Settings(mode=mode))
    desk.type("one ")
    desk.post(Ask("why?", 7))
    assert (desk.state.mode, desk.state.chosen) == (ModeName.CHAT, mode)
    reply(desk, "Hello!")
    assert desk.picture.startswith("|Hello!")
    assert (desk.state.asked.number, desk.state.asked.end) == (7, ReplyEnd.WHOLE)
    assert desk.state.asked.text == "Hello!"
    desk.type("two")
    assert (desk.state.mode, desk.state.chosen) == (mode, mode)
    assert desk.state.reply != "Hello!"


@pytest.mark.parametrize(
    "end",
    [
        lambda desk: desk.post(CancelReply()),
        lambda desk: desk.press_macro(3),
        lambda desk: desk.engine_is(EngineState.RESTARTING),
        lambda desk: desk.post(Failed(request=desk.request, code="engine-died", message="")),
        lambda desk: desk.post(Pause()),
        lambda desk: desk.post(Forget()),
        lambda desk: desk.post(SetMode(ModeName.REACT)),
        lambda desk: desk.post(Configure(desk.settings.model_copy(update={"context_chars": 400}))),
    ],
)
@pytest.mark.parametrize("is_asked_outside", [True, False])
def test_a_guest_without_a_reply_leaves(
    end: Callable[[Desk], None], is_asked_outside: bool
) -> None:
    desk = Desk(Settings(mode=ModeName.REACT))
    if is_asked_outside:
        desk.post(Ask("why?", 7))
    else:
        desk.capture("why?\n")
    desk.post(ReplyGrew(request=desk.request, text="Beca"))
    end(desk)
    assert desk.state.mode is ModeName.REACT
    if is_asked_outside:
        assert desk.state.asked.end not in (None, ReplyEnd.WHOLE)


def test_what_was_answered_is_forgotten_with_everything_else() -> None:
    desk = Desk()
    desk.post(Ask("why?", 7))
    reply(desk, "Hello!")
    desk.post(Forget())
    assert desk.state.asked.text == ""
    assert desk.state.asked.end is ReplyEnd.WHOLE


@pytest.mark.parametrize("typed", ["", "hi"])
def test_a_capture_without_a_question_leaves_nothing_behind(typed: str) -> None:
    desk = Desk(Settings(mode=ModeName.REACT))
    desk.post(CaptureStarted(0, desk.clock.now))
    desk.type(typed, captured=True)
    assert desk.state.mode is ModeName.CHAT
    desk.post(CaptureEnded(0, desk.clock.now))
    assert desk.state.mode is ModeName.REACT
    assert not any(isinstance(c, Chat) for c in desk.engine.commands)
    desk.capture("a\n")
    assert [turn.content for turn in desk.engine.commands[-1].turns][1:] == ["a"]  # type: ignore[union-attr]


def test_escape_gives_up_the_question() -> None:
    desk = Desk()
    desk.post(CaptureStarted(0, desk.clock.now))
    desk.type("hi", captured=True)
    desk.down(Usage.ESCAPE, captured=True)
    desk.up(Usage.ESCAPE, captured=True)
    desk.post(CaptureEnded(0, desk.clock.now))
    assert desk.state.mode is ModeName.SUGGEST
    assert not any(isinstance(c, Chat) for c in desk.engine.commands)


def test_chat_that_was_on_already_stays() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.capture("hi\n")
    reply(desk, "Hello!")
    desk.type("x")
    assert desk.state.mode is ModeName.CHAT


def test_a_mode_that_the_person_chooses_meanwhile_is_the_one_that_stays() -> None:
    desk = Desk()
    desk.capture("hi\n")
    desk.post(SetMode(ModeName.CHAT))
    reply(desk, "Hello!")
    desk.type("x")
    assert desk.state.mode is ModeName.CHAT


def test_the_mode_key_goes_on_from_the_mode_that_was_on() -> None:
    desk = Desk(Settings(mode=ModeName.REACT))
    desk.capture("hi\n")
    desk.press_macro(0)
    assert desk.state.mode is ModeName.SUGGEST


def test_other_settings_and_another_program_do_not_make_the_guest_stay() -> None:
    desk = Desk()
    desk.type("secret")
    desk.capture("hi\n")
    desk.post(FocusChanged())
    reply(desk, "Hello!")
    desk.type("a")
    last = desk.engine.commands[-1]
    assert isinstance(last, Suggest)
    assert last.text == "a"
    desk.capture("hi\n")
    desk.post(Configure(desk.settings.model_copy(update={"context_chars": 400})))
    assert desk.state.mode is ModeName.SUGGEST


def test_nothing_is_captured_in_a_pause_nor_where_the_person_does_not_want_it() -> None:
    desk = Desk()
    desk.take()
    desk.post(Pause())
    assert desk.take()[0] == "allow capture False typing False"
    desk.post(CaptureStarted(0, 0.0))  # it was on its way
    desk.type("hi\n", captured=True)
    assert desk.state.mode is ModeName.SUGGEST
    assert not any(isinstance(c, Chat) for c in desk.engine.commands)
    unwanted = Desk(Settings(chat=ChatSettings(capture=False)), is_ready=False)
    assert "allow capture False typing False" in unwanted.take()


def test_up_and_down_turn_the_pages() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("hi\n")
    reply(desk, " ".join(f"word{n}" for n in range(30)))
    first = desk.picture
    desk.press(Usage.DOWN)
    second = desk.picture
    assert second != first
    desk.press(Usage.UP)
    assert desk.picture == first
    desk.press(Usage.UP)
    assert desk.picture == first
