# SPDX-License-Identifier: Apache-2.0
"""Drawing: every pixel where it was put, and the frame the same picture in pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.typefaces import Typefaces
from firmware_bridge.display.canvas import Canvas, PixelArt, parse_art
from firmware_bridge.display.image import pixel_rows

FACES = Typefaces()
ART = st.integers(1, 40).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0, 255]), min_size=width, max_size=width).map(bytes),
        min_size=1,
        max_size=40,
    )
)


@given(ART, st.integers(-9, 40), st.integers(-9, 40), st.integers(1, 3))
def test_art_stands_where_it_was_put_pixel_by_pixel(
    rows: list[bytes], left: int, top: int, scale: int
) -> None:
    canvas = Canvas(48, 32)
    canvas.art(left, top, PixelArt(tuple(rows)), scale)
    picture = pixel_rows(canvas.frame())
    for y in range(32):
        for x in range(48):
            row, column = (y - top) // scale, (x - left) // scale
            inside = 0 <= row < len(rows) and 0 <= column < len(rows[0])
            assert picture[y][x] == (inside and rows[row][column] == 255)


def test_text_stands_in_its_cells_and_tells_where_it_ends() -> None:
    canvas = Canvas(128, 32)
    assert canvas.text(1, 3, "a天", FACES.large) == 1 + 6 + 12
    picture = pixel_rows(canvas.frame())
    for left, character in ((1, "a"), (7, "天")):
        glyph = FACES.large.glyph(character)
        assert glyph is not None
        for y in range(12):
            for x in range(glyph.width):
                assert picture[3 + y][left + x] == bool(glyph.getpixel((x, y)))
    assert sum(map(sum, picture)) == sum(
        bool(FACES.large.glyph(c).getpixel((x, y)))
        for c, width in (("a", 6), ("天", 12))
        for x in range(width)
        for y in range(12)
    )


def test_a_line_is_as_long_as_it_was_asked_to_be() -> None:
    canvas = Canvas(16, 8)
    canvas.line(2, 5, 9)
    picture = pixel_rows(canvas.frame())
    assert [(x, y) for y in range(8) for x in range(16) if picture[y][x]] == [
        (x, 5) for x in range(2, 11)
    ]


def test_half_blocks_are_two_pixels_each() -> None:
    art = parse_art("▀▄\n█\n")
    assert art.rows == (b"\xff\0", b"\0\xff", b"\xff\0", b"\xff\0")
    assert (art.width, art.height) == (2, 4)


@pytest.mark.parametrize("text", ["", "\n", "▀#", "abc"])
def test_what_is_no_art_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pixel"):
        parse_art(text)


def test_empty_lines_are_rows_too() -> None:
    assert parse_art("\n█\n\n").height == 6


def test_repr_shows_no_picture() -> None:
    assert "255" not in repr(parse_art("█"))
    assert "ff" not in repr(parse_art("█"))
