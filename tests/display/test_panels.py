# SPDX-License-Identifier: Apache-2.0
"""A picture lies in the panel bit for bit as it was drawn: in every rotation, on both halves of a board."""

from __future__ import annotations

import numpy as np
import pytest

from app.companion.messages import SetMode
from app.i18n import Language
from app.settings import ModeName, Settings
from engine.messages import Chat, ReplyGrew
from firmware_bridge.display.diff import bitmap_runs
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.messages import Status
from tests.helpers.board_desk import BoardDesk
from tests.helpers.golden import pixels
from tests.helpers.qmk_board import FakeBoard
from tests.helpers.qmk_build import OLED, SPLIT, VIA

CHINESE = Settings(language=Language.ZH_CN, mode=ModeName.CHAT)
PANELS = [(128, 32), (128, 64), (64, 128), (64, 48), (128, 128)]
REPLY = "天空是蓝色的，因为阳光里的蓝光被空气 (Rayleigh) 散射得最多。"


def answered(board: BoardConfig) -> BoardDesk:
    """A Chinese reply stands on the display, and the firmware has nothing to add to it."""
    desk = BoardDesk(CHINESE, board)
    desk.type("why\n", gap_s=0.01)
    desk.post(ReplyGrew(request=desk.asked(Chat), text=REPLY))
    desk.advance(0.5)
    assert isinstance(desk.state.frame, BitmapFrame)
    return desk


def without_status(picture: np.ndarray) -> np.ndarray:
    """`picture` as a person sees it, dark where the firmware draws the status glyph."""
    dark = picture.copy()
    end = picture.shape[1] // 6 * 6
    dark[:8, end - 6 : end] = False
    return dark


@pytest.mark.parametrize("rotation", range(4))
@pytest.mark.parametrize("extent", PANELS)
def test_a_chinese_reply_lies_in_the_panel_bit_for_bit(
    extent: tuple[int, int], rotation: int
) -> None:
    desk = answered(BoardConfig(panel_width=extent[0], panel_height=extent[1], rotation=rotation))
    assert desk.status is Status.STREAMING
    panel = pixels(desk.lab.core.panel())
    assert panel.shape == (extent[1], extent[0])
    # The host's picture was turned clockwise to become the panel's.
    seen = without_status(np.rot90(panel, rotation))
    assert isinstance(desk.state.frame, BitmapFrame)
    assert np.array_equal(seen, pixels(desk.state.frame))


def test_both_halves_of_a_split_board_show_the_picture() -> None:
    """The module gives the other half every frame; both draw with the same core."""
    frame = answered(BoardConfig()).state.frame
    assert isinstance(frame, BitmapFrame)
    options = OLED + SPLIT + VIA
    with FakeBoard(options) as master, FakeBoard(options) as other:
        other.do("set master 0")
        for half in (master, other):
            half.start()
        master.subscribe()
        runs = bitmap_runs(None, frame, 22)
        for number, run in enumerate(runs):
            first, last = number == 0, number == len(runs) - 1
            master.ack(run.type, run.pack(), first=first, last=last)
            for passed in master.rpc:
                other.do(f"rpc {passed}")
                other.turn()
            master.rpc.clear()
        for half in (master, other):
            half.turn(50, times=30)
            assert half.panel() == frame.pages


def test_text_and_pictures_take_turns_without_a_trace_of_each_other() -> None:
    desk = BoardDesk(Settings(), BoardConfig())
    for _ in range(3):
        desk.post(SetMode(ModeName.CHAT))
        desk.type("why\n", gap_s=0.01)
        desk.post(ReplyGrew(request=desk.asked(Chat), text=REPLY))
        desk.advance(0.5)
        assert isinstance(desk.state.frame, BitmapFrame)
        assert np.array_equal(without_status(pixels(desk.panel)), pixels(desk.state.frame))
        desk.post(SetMode(ModeName.SUGGEST))
        desk.advance(3)
        desk.type("plain", gap_s=0.01)
        desk.advance(0.5)
        fresh = BoardDesk(Settings(), BoardConfig())
        fresh.type("plain", gap_s=0.01)
        fresh.advance(0.5)
        assert desk.panel == fresh.panel
        desk.type("\b" * 5, gap_s=0.01)
