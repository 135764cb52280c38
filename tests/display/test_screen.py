# SPDX-License-Identifier: Apache-2.0
"""Frames for every display: what decides between text and pixels, that nothing is clipped, and burn-in care."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageFont

from app.companion.lights import DARK
from app.companion.modes.base import View
from app.companion.picture import Size, clipped, filled, tail, wrapped
from app.companion.screen import Screen
from app.companion.status_bar import Privacy, Situation
from app.settings import ModeName, TextSize
from engine.client import EngineState
from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import EVERYTHING, board
from tests.helpers.golden import pixels

EXTENTS = [(128, 32), (128, 64), (64, 128), (64, 48), (32, 128), (48, 64), (128, 128)]
SITUATION = Situation(Privacy.READING, ModeName.CHAT, EngineState.READY)
MIXED = st.text(st.sampled_from("天空为什么是蓝色的，。“”（）ab yg,.\n镕éÄ👍—"), max_size=200)


def screen_of(
    extent: tuple[int, int], features: Feature = EVERYTHING, text_size: TextSize = TextSize.AUTO
) -> Screen:
    screen = Screen(text_size)
    screen.connect(board(features=features, extent=extent))
    return screen


def bitmap(screen: Screen, view: View, size: Size, now: float = 0.0) -> BitmapFrame:
    frame = screen.frame(view, SITUATION, size, now)
    assert isinstance(frame, BitmapFrame)
    return frame


def ink(frame: BitmapFrame) -> int:
    return int(pixels(frame).sum())


def view_of(*lines: str, title: str = "") -> View:
    return View(lines, Status.LISTENING, DARK, title=title)


def test_the_firmwares_font_is_used_where_it_can_show_all_and_pixels_where_it_cannot() -> None:
    screen = screen_of((128, 32))
    assert screen.size(needs_pixels=False) == Size(21, 4)
    assert isinstance(screen.frame(view_of("hi"), SITUATION, Size(21, 4), 0), TextFrame)
    pixel = screen.size(needs_pixels=True)
    assert (pixel.columns, pixel.rows) == (21, 2)
    assert ink(bitmap(screen, view_of("天"), pixel)) > 20


def test_a_board_without_pixels_gets_text_and_one_without_text_pixels() -> None:
    without_pixels = screen_of((128, 32), EVERYTHING & ~Feature.BITMAP)
    assert without_pixels.size(needs_pixels=True) == Size(21, 4)
    frame = without_pixels.frame(view_of("a天é"), SITUATION, Size(21, 4), 0)
    assert frame == TextFrame(("a?e", "", "", ""))
    assert screen_of((128, 32), EVERYTHING & ~Feature.TEXT).size(needs_pixels=False).has_pixels


def test_before_a_board_is_known_hanzi_wait_for_one() -> None:
    screen = Screen(TextSize.AUTO)
    size = screen.size(needs_pixels=True)
    assert screen.frame(view_of("hi"), SITUATION, size, 0) == TextFrame(("hi", "", "", ""))
    assert screen.frame(view_of("天"), SITUATION, size, 0) == TextFrame(())


@pytest.mark.parametrize(
    ("text_size", "extent", "expected"),
    [
        (TextSize.AUTO, (128, 32), (21, 2)),
        (TextSize.AUTO, (128, 64), (21, 4)),
        (TextSize.AUTO, (64, 48), (12, 4)),
        (TextSize.LARGE, (64, 48), (10, 3)),
        (TextSize.SMALL, (128, 64), (25, 5)),
        (TextSize.AUTO, (32, 128), (6, 12)),
    ],
)
def test_letters_are_as_large_as_the_person_wants(
    text_size: TextSize, extent: tuple[int, int], expected: tuple[int, int]
) -> None:
    size = screen_of(extent, text_size=text_size).size(needs_pixels=True)
    assert (size.columns, size.rows) == expected


@given(
    st.sampled_from(EXTENTS), MIXED, st.sampled_from(["", "> 为什么？ why jgy"]), st.integers(0, 5)
)
def test_no_pixel_of_a_line_is_lost_on_any_display_in_any_minute(
    extent: tuple[int, int], text: str, title: str, minute: int
) -> None:
    screen = screen_of(extent)
    size = screen.size(needs_pixels=True)
    font = size.font
    assert font is not None
    lines = tuple(wrapped(text, size)[: size.rows])
    assert all(size.width(line) <= size.columns for line in lines)
    bar = bitmap(screen, view_of(title=title), size, 60.0 * minute)
    whole = bitmap(screen, view_of(*lines, title=title), size, 60.0 * minute)
    glyphs = [font.glyph(character) for line in lines for character in line]
    expected = sum(
        bool(glyph.getpixel((x, y)))
        for glyph in glyphs
        if glyph is not None
        for x in range(glyph.width)
        for y in range(glyph.height)
    )
    assert ink(whole) == ink(bar) + expected


def test_a_picture_moves_a_little_every_minute_and_only_then() -> None:
    screen = screen_of((128, 64))
    size = screen.size(needs_pixels=True)
    view = view_of("天空", "蓝色")
    frames = [bitmap(screen, view, size, 60.0 * minute) for minute in range(7)]
    assert len(set(frames[:6])) == 6
    assert frames[6] == frames[0]
    assert bitmap(screen, view, size, 59.9) == frames[0]
    assert len({ink(frame) for frame in frames}) == 1


def test_the_cells_of_the_firmwares_own_signs_stay_free() -> None:
    for extent in EXTENTS:
        screen = screen_of(extent)
        size = screen.size(needs_pixels=True)
        for minute in range(6):
            frame = bitmap(screen, view_of(title="很长的标题" * 9), size, 60.0 * minute)
            cells = extent[0] // 6
            assert not pixels(frame)[:8, (cells - 2) * 6 : cells * 6].any()


def test_the_bar_tells_what_becomes_of_the_keys_and_of_the_engine() -> None:
    screen = screen_of((128, 32))
    size = screen.size(needs_pixels=True)
    situations = [
        Situation(privacy, mode, engine)
        for privacy in Privacy
        for mode in ModeName
        for engine in (EngineState.READY, EngineState.LOADING, EngineState.FAILED)
    ]
    frames = [screen.frame(view_of(), situation, size, 0) for situation in situations]
    assert len(set(frames)) == len(situations)


@given(MIXED, st.sampled_from(EXTENTS), st.integers(1, 40))
def test_helpers_keep_to_the_columns(text: str, extent: tuple[int, int], columns: int) -> None:
    size = screen_of(extent).size(needs_pixels=True)
    assert size.width(clipped(text, columns, size)) <= columns
    assert all(size.width(line) <= size.columns for line in tail(text, size, size.rows))
    (line,) = tail(text, size, 1)
    assert line.endswith("_")
    assert size.width(line) <= size.columns
    short = clipped(text, columns, size)
    assert size.width(filled(short, columns, size)) == columns


@pytest.mark.expected_log("no pixel fonts")
def test_without_readable_fonts_texts_are_spelled_in_plain_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("unknown file format")

    monkeypatch.setattr(ImageFont, "truetype", fails)
    screen = screen_of((128, 32))
    for _ in range(2):
        size = screen.size(needs_pixels=True)
        assert size == Size(21, 4)
    frame = screen.frame(view_of("天 sky"), SITUATION, size, 0)
    assert frame == TextFrame(("? sky", "", "", ""))


def test_what_was_drawn_can_be_forgotten() -> None:
    screen = screen_of((128, 32))
    size = screen.size(needs_pixels=True)
    bitmap(screen, view_of("秘密"), size)
    screen.forget()
    assert not screen._drawn
    assert not size.font._glyphs
