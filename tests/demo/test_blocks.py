# SPDX-License-Identifier: Apache-2.0
"""The OLED in block characters shows exactly the pixels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from app.demo.blocks import BlockStyle, centred, cut, draw, framed, smallest_frame, style_for
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.display.image import pixel_rows

# What each character shows, as (upper left, upper right, lower left, lower right).
_QUADRANTS = {
    " ": "0000", "▘": "1000", "▝": "0100", "▀": "1100", "▖": "0010", "▌": "1010", "▞": "0110",
    "▛": "1110", "▗": "0001", "▚": "1001", "▐": "0101", "▜": "1101", "▄": "0011", "▙": "1011",
    "▟": "0111", "█": "1111",
}  # fmt: skip

frames = st.tuples(st.sampled_from([8, 64, 128]), st.sampled_from([8, 32, 64])).flatmap(
    lambda size: st.binary(min_size=size[0] * size[1] // 8, max_size=size[0] * size[1] // 8).map(
        lambda pages: BitmapFrame(size[0], size[1], pages)
    )
)


def read_back(lines: list[str], style: BlockStyle) -> list[list[int]]:
    rows: list[list[int]] = []
    for line in lines:
        bits = [_QUADRANTS[c] for c in line]
        for first in (0, 2):
            if style is BlockStyle.HALF:
                rows.append([int(b[first]) for b in bits])
            else:
                rows.append([int(b[first + i]) for b in bits for i in (0, 1)])
    return rows


@given(frame=frames, style=st.sampled_from(list(BlockStyle)))
def test_every_pixel_is_where_it_was(frame: BitmapFrame, style: BlockStyle) -> None:
    assert read_back(draw(frame, style), style) == [list(map(int, r)) for r in pixel_rows(frame)]


def test_narrow_terminal_gets_quadrants() -> None:
    assert style_for(80, 128) is BlockStyle.QUADRANT
    assert style_for(132, 128) is BlockStyle.HALF
    assert style_for(131, 128) is BlockStyle.QUADRANT


def test_frame_lines_are_equally_long() -> None:
    box = framed(["ab", "c"], "title")
    assert len({len(line) for line in framed(["x" * 20, "y"], "title")}) == 1
    assert box[0].startswith("╭─ title ")


@given(title=st.text("a联·", max_size=12), foot=st.text("b想·", max_size=60))
def test_a_frame_is_straight_whatever_stands_in_its_edges(title: str, foot: str) -> None:
    box = framed(["x" * 20, "y"], title, foot)
    assert len({get_cwidth(line) for line in box}) == 1
    assert f" {title} " in box[0] or not title
    fits = get_cwidth(foot) <= get_cwidth(box[1]) - 5
    assert (f"─ {foot} " in box[-1]) is fits or not foot


def test_the_smallest_frame_is_that_of_the_narrowest_picture() -> None:
    frame = BitmapFrame(64, 48, bytes(64 * 48 // 8))
    box = framed(draw(frame, style_for(0, 64)))
    assert smallest_frame(64, 48) == (len(box[0]), len(box))


@given(text=st.text("a联", max_size=20), columns=st.integers(0, 30))
def test_text_is_cut_and_centred_by_columns(text: str, columns: int) -> None:
    assert get_cwidth(centred(text, columns)) == columns
    assert text.startswith(cut(text, columns))
    missing = get_cwidth(text) - get_cwidth(cut(text, columns))
    assert missing == 0 or get_cwidth(text[: len(cut(text, columns)) + 1]) > columns
