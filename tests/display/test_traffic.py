# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire for the display: 20 texts or 10 pictures a second at most, the newest wins.

The companion, the link's session and the firmware core are real; time is made up.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.companion.messages import CancelReply, Pause, Resume, SetMode
from app.i18n import Language
from app.settings import ModeName, Settings
from engine.messages import Chat, ReplyGrew
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.frames import FrameType
from tests.helpers.board_desk import BoardDesk
from tests.helpers.golden import pixels

PICTURES = (FrameType.TEXT, FrameType.BITMAP)


class Watch:
    """Notes when an update begins: its first frame goes out."""

    def __init__(self, desk: BoardDesk) -> None:
        self.desk = desk
        self.begun: list[tuple[float, FrameType]] = []
        self._open = False
        carry = desk.lab.to_keyboard

        def watch(report: bytes) -> list[bytes]:
            frame = desk.lab.sent[-1]
            if frame.type in PICTURES:
                if not self._open:
                    self.begun.append((desk.lab.now, frame.type))
                self._open = not frame.last
            return carry(report)

        desk.lab.to_keyboard = watch

    def most_in_a_second(self, kind: FrameType) -> int:
        times = [at for at, begun in self.begun if begun is kind]
        return max((sum(at <= t < at + 0.999 for t in times) for at in times), default=0)


def reply_to(desk: BoardDesk, text: str) -> None:
    """A piece of the reply to the last question; nobody waits for it if there was none."""
    desk.post(ReplyGrew(request=desk.asked(Chat), text=text))


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("mode", ModeName)
def test_an_idle_keyboard_gets_only_keepalives(mode: ModeName, language: Language) -> None:
    desk = BoardDesk(Settings(mode=mode, language=language))
    desk.type("a line\n", gap_s=0.05)
    desk.advance(3)
    desk.post(CancelReply())
    desk.advance(1)
    desk.take()
    desk.advance(60, step_s=0.05)
    assert desk.take() == {FrameType.SUBSCRIBE: 60}
    desk.advance(600, step_s=0.5)
    later = desk.take()
    assert later.pop(FrameType.SUBSCRIBE) == 600
    assert later.keys() <= {FrameType.RELEASE}, "the display goes dark once"


def test_a_reply_that_pours_in_is_shown_ten_times_a_second_at_most() -> None:
    board = BoardConfig(panel_width=128, panel_height=128)  # one that it does not fill at once
    desk = BoardDesk(Settings(mode=ModeName.CHAT), board)
    desk.type("why\n", gap_s=0.01)
    watch = Watch(desk)
    for _ in range(300):
        reply_to(desk, "蓝")
        desk.advance(0.01)
    assert {kind for _, kind in watch.begun} == {FrameType.BITMAP}
    assert 8 <= watch.most_in_a_second(FrameType.BITMAP) <= 10


def test_fast_typing_is_shown_twenty_times_a_second_at_most() -> None:
    desk = BoardDesk(Settings(mode=ModeName.CHAT))
    watch = Watch(desk)
    desk.type("the quick brown fox jumps over the lazy dog " * 4, gap_s=0.01)
    assert 18 <= watch.most_in_a_second(FrameType.TEXT) <= 20


def test_the_newest_picture_wins_and_none_waits() -> None:
    """While one is under way a hundred more are wanted: the last of them follows, and nothing after it."""
    desk = BoardDesk(Settings(mode=ModeName.CHAT))
    desk.type("why\n", gap_s=0.01)
    watch = Watch(desk)
    for number in range(100):
        reply_to(desk, f"第{number}句。")
    newest = desk.state.frame
    desk.advance(0.3)
    assert len(watch.begun) <= 2
    assert isinstance(newest, BitmapFrame)
    shown = pixels(desk.panel)
    shown[:8, 120:126] = False
    assert (shown == pixels(newest)).all()
    desk.take()
    desk.advance(0.8)
    assert not desk.take().keys() & set(PICTURES)


ACTIONS: list[Callable[[BoardDesk], None]] = [
    lambda desk: desk.type("ab c", gap_s=0.01),
    lambda desk: desk.type("why\n", gap_s=0.02),
    lambda desk: desk.post(SetMode(ModeName.CHAT)),
    lambda desk: desk.post(SetMode(ModeName.SUGGEST)),
    lambda desk: desk.post(SetMode(ModeName.REACT)),
    lambda desk: desk.post(Pause()),
    lambda desk: desk.post(Resume()),
    lambda desk: reply_to(desk, "天空 is blue. "),
    lambda desk: reply_to(desk, "plain words "),
    lambda desk: desk.advance(0.03),
    lambda desk: desk.advance(0.4),
]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(ACTIONS), max_size=40), st.sampled_from(Language))
def test_whatever_happens_the_limits_hold_and_the_panel_ends_as_wanted(
    actions: list[Callable[[BoardDesk], None]], language: Language
) -> None:
    desk = BoardDesk(Settings(language=language))
    watch = Watch(desk)
    for action in actions:
        action(desk)
    assert watch.most_in_a_second(FrameType.BITMAP) <= 10
    assert watch.most_in_a_second(FrameType.TEXT) <= 20
    desk.advance(3)
    if isinstance(desk.state.frame, BitmapFrame):
        shown = pixels(desk.panel)
        shown[:8, 114:126] = False
        assert (shown == pixels(desk.state.frame)).all()
