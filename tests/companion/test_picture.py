# SPDX-License-Identifier: Apache-2.0
"""Text on small displays: always in the font, never too long, the end of it in sight."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.companion.picture import Size, ascii_of, clipped, padded, picture, tail, wrapped
from firmware_bridge.display.spelling import to_ascii

SIZES = st.builds(Size, st.integers(1, 42), st.integers(1, 16))


@given(st.text())
def test_the_short_way_to_ascii_gives_what_the_long_one_gives(text: str) -> None:
    assert ascii_of(text) == to_ascii(text).text


@given(st.text(), SIZES)
def test_any_text_fits_any_display_and_leaves_the_glyphs_cell_free(text: str, size: Size) -> None:
    frame = picture([*wrapped(text, size), clipped(text, size.columns, size)], size)
    assert len(frame.rows) == size.rows
    assert all(len(row) <= size.columns for row in frame.rows)
    assert len(frame.rows[0]) <= size.columns - 1


@given(st.text("abc", min_size=1), st.builds(Size, st.integers(3, 42), st.integers(1, 16)))
def test_the_cursor_and_the_last_character_are_always_in_sight(text: str, size: Size) -> None:
    assert "".join(tail(text, size, size.rows))[-2:] == text[-1] + "_"


def test_one_line_moves_along_and_several_are_wrapped() -> None:
    size = Size(11, 4)
    assert tail("one two three", size, 1) == ["two three_"]
    assert tail("one two three", size, 2) == ["one two", "three_"]
    assert tail("one\n", size, 1) == ["_"]


def test_what_is_cut_is_marked() -> None:
    size = Size(21, 4)
    assert clipped("representative", 14, size) == "representative"
    assert clipped("representative", 8, size) == "represe~"
    assert clipped("two\nlines", 12, size) == "two lines"


def test_padding_cuts_and_fills() -> None:
    assert padded(["a", "b", "c"], 2) == ["a", "b"]
    assert padded(["a"], 3) == ["a", "", ""]
    assert padded(["a"], 0) == []
