# SPDX-License-Identifier: Apache-2.0
"""When the companion lets the keyboard show a ready reply by itself, and with which keys."""

from __future__ import annotations

from collections import Counter

from app.companion.messages import Pause, Resume
from app.settings import ModeName, ReadySettings, Settings
from engine.client import EngineState
from engine.messages import Chat, Failed, Prepare, ReplyGrew, ReplyReady
from firmware_bridge.events import CaptureEnded, CaptureStarted, KeyPressed
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.frames import FrameType
from tests.helpers.board_desk import BoardDesk
from tests.helpers.companion import Desk

ENTER_KEYS = {Usage.ENTER, Usage.KEYPAD_ENTER}


def question(desk: Desk, text: str = "why", captured: bool = False) -> None:
    for letter in text:
        usage = Usage.A + ord(letter) - ord("a")
        now = desk.clock.now
        desk.post(KeyPressed(usage, usage >> 4, usage & 15, 0, now, captured))
        desk.up(usage)
        desk.advance(0.1)


def ready(desk: Desk, text: str = "Because.") -> None:
    prepare = [c for c in desk.engine.commands if isinstance(c, Prepare)][-1]
    desk.post(ReplyReady(request=prepare.request, context=prepare.context, text=text, tokens=[1]))


def reflex(desk: Desk) -> Reflex:
    assert desk.keyboard.reflex is not None
    return desk.keyboard.reflex


def with_ready_reply() -> Desk:
    desk = Desk(Settings(mode=ModeName.CHAT), ahead=True)
    question(desk)
    ready(desk)
    return desk


def test_enter_and_the_ask_key_show_it() -> None:
    desk = with_ready_reply()
    assert set(reflex(desk).keys) == ENTER_KEYS
    assert reflex(desk).macros == {1}


def test_it_is_made_anew_after_each_event() -> None:
    desk = with_ready_reply()
    before = reflex(desk)
    desk.up(Usage.Y)
    assert reflex(desk).after is not before.after
    assert reflex(desk).frame == before.frame


def test_with_a_modifier_down_enter_may_mean_something_else() -> None:
    desk = with_ready_reply()
    desk.down(Usage.LEFT_CONTROL)
    assert not reflex(desk).keys
    assert reflex(desk).macros
    desk.up(Usage.LEFT_CONTROL)
    assert set(reflex(desk).keys) == ENTER_KEYS


def test_there_is_none_without_a_ready_reply_an_engine_or_while_paused() -> None:
    desk = with_ready_reply()
    desk.type("b")
    assert desk.keyboard.reflex is None
    ready(desk)
    assert desk.keyboard.reflex is not None
    desk.engine_is(EngineState.RESTARTING)
    assert desk.keyboard.reflex is None
    desk.engine_is(EngineState.READY)
    desk.post(Pause())
    desk.post(Resume())
    assert desk.keyboard.reflex is None


def test_a_longer_reply_replaces_it() -> None:
    desk = with_ready_reply()
    before = reflex(desk).frame
    prepare = [c for c in desk.engine.commands if isinstance(c, Prepare)][-1]
    desk.post(
        ReplyReady(
            request=prepare.request, context=prepare.context, text="Because it is.", tokens=[1, 2]
        )
    )
    assert reflex(desk).frame != before


def test_enter_is_not_for_a_guest_whose_capture_is_over() -> None:
    """The keys go to the person's window then, and the draft waits for another capture."""
    desk = Desk(Settings(mode=ModeName.SUGGEST), ahead=True)
    desk.post(CaptureStarted(0, desk.clock.now))
    question(desk, "a", captured=True)
    now = desk.clock.now
    desk.post(KeyPressed(Usage.ENTER, 2, 8, 0, now, True))
    desk.up(Usage.ENTER)
    chat = [c for c in desk.engine.commands if isinstance(c, Chat)][-1]
    desk.post(ReplyGrew(request=chat.request, text="The reply"))
    question(desk, "b", captured=True)
    ready(desk, "Another")
    assert set(reflex(desk).keys) == ENTER_KEYS
    desk.post(CaptureEnded(0, desk.clock.now))
    assert not reflex(desk).keys
    shown = desk.picture
    desk.press(Usage.ENTER)
    assert desk.picture == shown


def test_it_is_overruled_too_if_it_was_taken_away_before_its_key_was_told() -> None:
    """The keyboard may have shown it already, and the companion hears of the key only afterwards."""
    desk = with_ready_reply()
    desk.take()
    shown = desk.picture
    prepare = [c for c in desk.engine.commands if isinstance(c, Prepare)][-1]
    desk.companion._machine._sight.out.foresee(None)
    desk.post(Failed(request=prepare.request, code="out-of-memory", message="none"))
    assert shown in desk.take()


def typed_with(enabled: bool) -> Counter[FrameType]:
    """Frames to the keyboard while a question is typed and each time its reply is ready."""
    desk = BoardDesk(Settings(mode=ModeName.CHAT, ready=ReadySettings(enabled=enabled)))
    desk.take()
    for letter in QUESTION:
        desk.type(letter, gap_s=0.05)
        prepares = [c for c in desk.engine.commands if isinstance(c, Prepare)]
        assert bool(prepares) is enabled
        for words in ("Because", "Because it", "Because it is") if enabled else ():
            context, request = prepares[-1].context, prepares[-1].request
            desk.post(ReplyReady(request=request, context=context, text=words, tokens=[1]))
        desk.advance(0.1)
    return desk.take()


QUESTION = "why is the sky so blue"


def test_ready_replies_cost_no_frame_while_a_question_is_typed() -> None:
    """Though the companion says again after each event what shall be shown."""
    counted = typed_with(enabled=True)
    without = typed_with(enabled=False)
    assert counted == without
    assert counted[FrameType.BITMAP] == 0


def test_what_stands_there_is_sent_again_after_an_event_that_may_have_set_it_off() -> None:
    """Whatever a keyboard showed by itself, the last word is the companion's."""
    desk = with_ready_reply()
    desk.take()
    desk.up(Usage.Y)
    assert desk.take() == [desk.picture]
    desk.engine_is(EngineState.READY)
    assert desk.take() == []
