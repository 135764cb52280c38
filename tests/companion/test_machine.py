# SPDX-License-Identifier: Apache-2.0
"""What holds in every mode: pause, wipes, the macro keys, lost keys, reconnects, the engine's life."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from app.companion.messages import Ask, Forget, Pause, Resume, SetMode, Stop
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import (
    Cancel,
    Chat,
    ModelLoaded,
    ReplyGrew,
    Suggest,
)
from engine.messages import Forget as EngineForget
from firmware_bridge.events import EventsDropped, LinkLost, LinkReady
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk, board, suggestions


def picture(*rows: str) -> str:
    return "\n".join(f"|{row:<21}|" for row in rows)


PAUSED = picture("paused", "", "No keys are read.", "")


def test_pause_while_thinking_wipes_here_and_in_the_engine() -> None:
    desk = Desk()
    desk.type("secret")
    desk.advance(1)
    desk.take()
    desk.post(Pause())
    told = ["cancel 6", "forget 7", "status paused", PAUSED, "lights off"]
    assert desk.take() == ["allow capture False typing False", *told]
    desk.suggest(("s", 0.9), request=6)
    desk.type("more secrets")
    assert desk.take() == []
    desk.post(Resume())
    told = ["status listening", picture("_", "", "", "")]
    assert desk.take() == ["allow capture True typing False", *told]


def test_nothing_typed_in_a_pause_is_known_afterwards() -> None:
    desk = Desk()
    desk.press_macro(2)
    desk.type("hidden")
    desk.press_macro(2)
    desk.type("x")
    assert desk.picture == picture("x_", "", "", "")
    assert [c.text for c in desk.engine.commands if isinstance(c, Suggest)] == ["x"]


def test_shift_held_over_a_pause_is_still_held() -> None:
    desk = Desk()
    desk.press_macro(2)
    desk.down(Usage.LEFT_SHIFT)
    desk.press_macro(2)
    desk.press(Usage.A)
    assert desk.picture.startswith("|A_")


def test_in_a_pause_only_the_pause_key_does_anything() -> None:
    desk = Desk()
    desk.post(Pause())
    desk.take()
    for number in (0, 1, 3, 7):
        desk.press_macro(number)
    desk.post(Pause())
    desk.advance(10)
    assert desk.state.mode is ModeName.SUGGEST
    assert [line for line in desk.take() if "forget" not in line] == []


def test_a_question_is_not_asked_in_a_pause() -> None:
    desk = Desk()
    desk.post(Pause())
    desk.post(Ask("What?"))
    assert not any(isinstance(c, Chat) for c in desk.engine.commands)
    assert desk.picture.endswith(picture("paused: not asked"))


def test_changing_the_mode_in_a_pause_takes_effect_at_its_end() -> None:
    desk = Desk()
    desk.post(Pause())
    desk.post(SetMode(ModeName.CHAT))
    desk.advance(5)
    assert desk.picture == PAUSED
    desk.post(Resume())
    assert desk.picture.startswith("|chat ")


def test_forget_wipes_everything_in_every_mode() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("one\n")
    desk.post(ReplyGrew(request=1, text="reply"))
    desk.type("draft")
    desk.post(Forget())
    assert isinstance(desk.engine.commands[-1], EngineForget)
    assert Cancel(request=1) in desk.engine.commands
    assert desk.picture == picture("chat", "Type a question.", "Enter asks,", "forgotten")
    desk.type("two\n")
    assert [t.content for t in desk.engine.commands[-1].turns[1:]] == ["two"]


@pytest.mark.expected_log("unexpected RuntimeError")
def test_a_pause_holds_even_if_the_wipe_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError

    desk = Desk()
    monkeypatch.setattr("app.companion.modes.chat.ChatMode.wipe", fails)
    desk.post(Pause())
    desk.type("hidden")
    assert desk.state.is_paused
    assert not any(isinstance(c, Suggest) for c in desk.engine.commands)


def test_the_mode_key_goes_round() -> None:
    desk = Desk()
    seen = []
    for _ in range(3):
        desk.press_macro(0)
        seen.append(desk.state.mode)
    assert seen == [ModeName.CHAT, ModeName.REACT, ModeName.SUGGEST]


def test_the_new_mode_is_named_for_two_seconds() -> None:
    desk = Desk()
    desk.press_macro(0)
    assert desk.picture.endswith(picture("mode: chat"))
    desk.advance(1.9)
    assert desk.picture.endswith(picture("mode: chat"))
    desk.advance(0.2)
    assert desk.picture.endswith(picture("Esc cancels."))


def test_the_ask_key_sends_a_question_and_the_cancel_key_stops_it() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("Hi")
    desk.press_macro(1)
    assert isinstance(desk.engine.commands[-1], Chat)
    desk.press_macro(3)
    assert desk.engine.commands[-1] == Cancel(request=1)


def test_lost_keys_are_counted_shown_and_end_the_text() -> None:
    desk = Desk()
    desk.type("hel")
    desk.post(EventsDropped(3))
    assert desk.picture == picture("_", "", "", "3 keys lost")
    desk.post(EventsDropped(2))
    assert desk.state.dropped == 5
    desk.advance(2)
    assert desk.picture == picture("_", "", "", "")


def test_lost_keys_leave_a_question_that_the_person_can_see_and_mend() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.type("What i")
    desk.post(EventsDropped(1))
    assert desk.picture == picture("> What i_", "", "", "1 key lost")


def test_a_shift_that_was_held_when_keys_were_lost_counts_as_up() -> None:
    desk = Desk()
    desk.down(Usage.LEFT_SHIFT)
    desk.post(EventsDropped(1))
    desk.press(Usage.A)
    assert desk.picture.startswith("|a_ ")


def test_a_keyboard_that_comes_back_with_another_display_gets_the_view_for_its_size() -> None:
    desk = Desk()
    desk.type("hel")
    desk.post(LinkLost("unplugged"))
    assert desk.state.keyboard is None
    assert desk.picture.startswith("|_ "), "keys may have been typed meanwhile"
    desk.post(LinkReady(board(rows=8)))
    assert desk.state.keyboard == board(rows=8)
    assert desk.picture.splitlines()[2] == "|" + "-" * 21 + "|"
    assert len(desk.picture.splitlines()) == 8


@pytest.mark.parametrize(("columns", "rows"), [(5, 16), (1, 1), (2, 1), (10, 2), (21, 3)])
@pytest.mark.parametrize("mode", list(ModeName))
def test_any_display_size_gets_a_picture_that_fits(columns: int, rows: int, mode: ModeName) -> None:
    desk = Desk(Settings(mode=mode), columns=columns, rows=rows)
    desk.type("hello world\nand more")
    desk.post(EventsDropped(1))
    desk.engine_is(EngineState.RESTARTING, "why")
    desk.engine_is(EngineState.FAILED, "a long reason that goes over several lines")
    desk.post(Pause())
    for line in desk.take():
        if line.startswith("|"):
            assert len(line.splitlines()) == rows
            assert all(len(row) == columns + 2 for row in line.splitlines())


def test_a_keyboard_without_a_display_changes_nothing_for_the_view() -> None:
    desk = Desk()
    desk.post(LinkReady(board(columns=0, rows=0)))
    desk.type("hel")
    assert desk.picture.startswith("|hel_ ")


@pytest.mark.parametrize("mode", list(ModeName))
def test_the_last_column_of_the_first_row_is_left_to_the_status_glyph(mode: ModeName) -> None:
    desk = Desk(Settings(mode=mode))
    desk.type("x" * 60 + "\n" + "x" * 60)
    for message in (
        ReplyGrew(request=desk.request, text="y" * 100),
        suggestions(desk.request, ("y" * 40, 1.0)),
    ):
        desk.post(message)
        assert desk.picture.splitlines()[0][21] == " "


def test_the_engine_says_what_it_does_and_keys_are_kept_meanwhile() -> None:
    desk = Desk(is_ready=False)
    assert desk.picture == picture("no engine", "", "", "")
    desk.engine_is(EngineState.STARTING)
    desk.type("hel")
    assert desk.picture == picture("loading model", "", "", "hel_")
    assert desk.state.engine is EngineState.STARTING
    desk.engine_is(EngineState.READY)
    desk.post(
        ModelLoaded(
            request=0, name="tiny", parameters=1, context_length=64, backend="cpu", seconds=1
        )
    )
    assert desk.state.model == "tiny"
    desk.suggest(("lo", 0.9))
    assert desk.picture.startswith(picture("hel_") + "\n|hello")


def test_a_failed_engine_says_why_until_it_is_started_again() -> None:
    desk = Desk()
    desk.type("hel")
    desk.engine_is(EngineState.FAILED, "the engine died 4 times within 10 minutes\nlog line")
    assert desk.picture == picture(
        "engine failed: the", "engine died 4 times", "within 10 minutes", "hel_"
    )
    desk.advance(1)
    assert desk.take()[-1] == "lights 107,47,0 solid"
    desk.engine_is(EngineState.STARTING)
    desk.engine_is(EngineState.READY)
    assert isinstance(desk.engine.commands[-1], Suggest)


def test_a_failed_engine_names_the_model_without_its_folder() -> None:
    model = Path("models", "tiny.gguf")
    desk = Desk(Settings(model=model))
    desk.engine_is(EngineState.FAILED, f"{model.absolute()}: magic: not a GGUF file")
    assert desk.picture == picture("engine failed:", "tiny.gguf: magic:", "not a GGUF file", "")
    assert desk.state.engine_detail == "tiny.gguf: magic: not a GGUF file"


def test_a_command_to_an_engine_that_just_died_is_sent_when_it_is_back() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.engine.is_dead = True
    desk.type("Hi\n")
    assert desk.engine.commands == []
    desk.engine_is(EngineState.RESTARTING)
    desk.engine_is(EngineState.READY)
    assert [type(c) for c in desk.engine.commands] == [Chat]


def test_stop_wipes_and_gives_the_keyboard_back() -> None:
    desk = Desk()
    desk.type("hel")
    desk.take()
    desk.post(Stop())
    assert desk.take() == ["cancel 3", "forget 4", "release"]
    desk.advance(400)
    assert desk.take() == []


def test_lights_never_flash_more_than_once_a_second() -> None:
    desk = Desk(Settings(mode=ModeName.CHAT))
    for _ in range(20):
        desk.type("a\n", gap_s=0.01)
        desk.post(ReplyGrew(request=desk.request, text="b"))
        desk.press(Usage.ESCAPE)
        desk.advance(0.2)
    desk.advance(5)
    changes = [line for line in desk.take() if line.startswith("lights")]
    lit = [
        at
        for line, at in zip(changes, desk.keyboard.light_times, strict=True)
        if line != "lights off"
    ]
    assert len(lit) >= 3
    assert min(b - a for a, b in itertools.pairwise(lit)) >= 1 - 1e-9


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="no layout 'nowhere'"):
        Desk(Settings(layout="nowhere"))


def test_what_the_engine_refused_to_forget_is_forgotten_as_soon_as_it_listens_again() -> None:
    desk = Desk()
    desk.type("he")
    asked = desk.request
    desk.engine.is_dead = True  # refuses, as a client does with too many open requests
    desk.post(Pause())
    assert not any(isinstance(c, EngineForget) for c in desk.engine.commands)
    desk.engine.is_dead = False
    desk.post(suggestions(asked, cancelled=True))
    assert isinstance(desk.engine.commands[-1], EngineForget)


def test_a_new_engine_child_has_nothing_to_forget() -> None:
    desk = Desk()
    desk.type("he")
    desk.engine.is_dead = True
    desk.post(Pause())
    desk.engine_is(EngineState.RESTARTING)
    desk.engine_is(EngineState.READY)
    assert not any(isinstance(c, EngineForget) for c in desk.engine.commands)
