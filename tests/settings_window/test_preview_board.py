# SPDX-License-Identifier: Apache-2.0
"""The preview's panel holds the bits that a keyboard holds after the same output."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.settings_window.ports import BoardShape, Preview
from app.settings_window.preview_board import PreviewBoard
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame, TextFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport

SHAPE = BoardShape(128, 32, 16)

rows = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=21)
text_frames = st.lists(rows, max_size=4).map(lambda lines: TextFrame(tuple(lines)))
bitmaps = st.binary(min_size=512, max_size=512).map(lambda pages: BitmapFrame(128, 32, pages))
colours = st.builds(Rgb, st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
overlays = st.builds(
    LightOverlay,
    st.none() | colours,
    st.just(LightEffect.SOLID),
    st.dictionaries(st.integers(0, 15), colours, max_size=16),
)
previews = st.builds(
    Preview, st.just(SHAPE), st.none() | text_frames | bitmaps, st.sampled_from(Status), overlays
)


@settings(max_examples=25)
@given(st.lists(previews, min_size=1, max_size=4))
def test_the_panel_holds_what_a_keyboard_holds(steps: list[Preview]) -> None:
    """The same steps go to a virtual keyboard through a real link, thread and all."""
    keyboard = VirtualKeyboard(BoardConfig(led_count=SHAPE.led_count))
    link = Link(lambda: VirtualTransport(keyboard), lambda _: None)
    board = PreviewBoard(SHAPE)
    link.start()
    try:
        for step in steps:
            _hand_over(link, step)
            board.show(step)
        assert _settles(lambda: keyboard.panel() == board.picture() and _same_leds(keyboard, board))
    finally:
        link.stop()


def _hand_over(link: Link, step: Preview) -> None:
    if step.display is None:
        link.release()
    else:
        link.show(step.display)
    link.set_status(step.status)
    link.set_lights(step.lights)


def _same_leds(keyboard: VirtualKeyboard, board: PreviewBoard) -> bool:
    return keyboard.leds() == board.leds(0)


def _settles(holds: object, limit_s: float = 60.0) -> bool:
    assert callable(holds)
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("effect", LightEffect)
def test_moving_lights_are_those_of_the_firmware_at_the_same_time(effect: LightEffect) -> None:
    at = 12.345
    keyboard = VirtualKeyboard(BoardConfig(led_count=16), clock=lambda: at)
    overlay = LightOverlay(Rgb(10, 200, 30), effect)
    link = Link(lambda: VirtualTransport(keyboard), lambda _: None)
    board = PreviewBoard(SHAPE)
    board.show(Preview(SHAPE, None, Status.IDLE, overlay))
    link.start()
    try:
        link.set_lights(overlay)
        assert _settles(lambda: keyboard.leds() == board.leds(int(at * 1000)))
    finally:
        link.stop()


def test_other_panels_and_boards_without_one() -> None:
    tall = BoardShape(128, 64, 0)
    board = PreviewBoard(tall)
    board.show(Preview(tall, TextFrame(("a",) * 8)))
    assert (board.picture().height, board.leds(0)) == (64, ())
    lamp = BoardShape(0, 0, 3)
    lamps = PreviewBoard(lamp)
    lamps.show(Preview(lamp, TextFrame(("a",)), lights=LightOverlay(Rgb(1, 2, 3))))
    assert lamps.leds(0) == (Rgb(1, 2, 3),) * 3


def test_a_bitmap_of_another_size_is_not_shown_and_not_fatal() -> None:
    board = PreviewBoard(SHAPE)
    frame: DisplayFrame = BitmapFrame(64, 32, bytes(256))
    with pytest.raises(ValueError, match="another shape"):
        board.show(Preview(BoardShape(64, 32, 0), frame))


def test_the_content_is_not_in_the_repr() -> None:
    assert "secret" not in repr(Preview(SHAPE, TextFrame(("secret",))))
