# SPDX-License-Identifier: Apache-2.0
"""When nobody types: the display goes dark, later all is wiped; what brings the display back."""

from __future__ import annotations

from app.companion.messages import Pause
from app.settings import DisplaySettings, ModeName, Settings
from engine.client import EngineState
from engine.messages import Forget as EngineForget
from engine.messages import (
    Forgotten,
    ReplyFinished,
    ReplyGrew,
)
from firmware_bridge.events import LinkReady
from firmware_bridge.keys.usage import Usage
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import Desk, board


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


PAUSED = picture("paused", "", "No keys are read.", "")


def test_after_two_minutes_without_a_key_the_keyboard_is_given_back_and_after_five_all_is_wiped() -> (
    None
):
    desk = Desk()
    desk.type("hel")
    desk.suggest(("lo", 0.9))
    desk.advance(1)
    desk.suggest(("lo", 0.9))  # no phrase is better
    desk.advance(118.8)
    assert desk.picture.startswith("|hel_ ")
    desk.take()
    desk.advance(0.2)
    assert desk.take() == ["release"]
    assert desk.state.reply == "lo"
    desk.advance(179.7)
    assert desk.take() == []
    desk.advance(0.3)
    assert isinstance(desk.engine.commands[-1], EngineForget)
    assert desk.state.reply == ""
    desk.post(Forgotten(request=desk.request))
    desk.take()
    desk.advance(3600)
    assert desk.take() == []
    assert desk.state.frame.rows == ()
    assert desk.state.status is Status.IDLE


def test_the_first_key_after_a_long_rest_brings_the_display_back() -> None:
    desk = Desk()
    desk.type("hel")
    desk.advance(400)
    desk.take()
    desk.type("x")
    assert desk.take() == ["suggest 5 'x'", "status thinking", picture("x_", "", "", "")]


def test_a_key_brings_a_dark_display_back_with_what_was_typed_before() -> None:
    desk = Desk()
    desk.type("hel")
    desk.suggest(("lo", 0.9))
    desk.advance(130)
    desk.take()
    desk.type("p")
    assert desk.picture.startswith("|help_ ")


def test_what_moves_on_the_display_does_not_keep_it_lit() -> None:
    """Pages that turn, moods that change: only a person, or an answer that is still coming, does."""
    desk = Desk(Settings(mode=ModeName.CHAT, display=DisplaySettings(off_s=20)))
    desk.type("one\n", gap_s=0.01)
    for second in range(60):
        desk.post(ReplyGrew(request=1, text=f"word{second} "))
        desk.advance(1)
    assert "release" not in desk.take()
    desk.post(
        ReplyFinished(request=1, reason="stop", tokens=60, first_token_ms=40, milliseconds=60_000)
    )
    desk.advance(21)
    assert desk.take()[-1] == "release"
    desk.advance(20)
    assert desk.take() == []


def test_an_answer_that_never_comes_does_not_keep_the_display_lit_for_ever() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("one\n")
    desk.advance(301)
    assert desk.take()[-1] == "release"


def test_news_of_the_devices_do_not_keep_what_was_typed() -> None:
    """A link or an engine that comes and goes all the time must not put the wipe off for ever."""
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("draft")
    for _ in range(31):
        desk.advance(10)
        desk.post(LinkReady(board()))
        desk.engine_is(EngineState.RESTARTING)
        desk.engine_is(EngineState.READY)
    assert desk.picture == picture("chat", "Type a question.", "Enter asks,", "Esc cancels.")


def test_a_keyboard_on_which_nobody_types_gets_its_display_back_too() -> None:
    desk = Desk()
    desk.advance(301)
    assert "release" in desk.take()
    desk.post(LinkReady(board()))
    assert desk.picture == picture("_", "", "", "")
    desk.advance(301)
    assert "release" in desk.take()


def test_a_pause_that_lasts_gives_the_display_back_and_a_key_shows_that_it_lasts() -> None:
    desk = Desk()
    desk.post(Pause())
    desk.advance(301)
    assert "release" in desk.take()
    desk.press(Usage.A)
    assert desk.take() == ["status paused", PAUSED]


def test_a_light_that_waits_does_not_come_after_the_keyboard_was_given_back() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT, idle_wipe_s=10))
    desk.type("Hi\n", gap_s=0)
    desk.advance(9.9)
    desk.post(ReplyGrew(request=1, text="Hello"))
    desk.advance(20)
    assert desk.take()[-1] == "release"


def test_every_key_puts_the_idle_wipe_off_even_a_bare_shift() -> None:
    desk = Desk()
    desk.type("hel")
    desk.advance(290)
    desk.press(Usage.LEFT_SHIFT)
    desk.advance(290)
    assert desk.picture.startswith("|hel_ ")
