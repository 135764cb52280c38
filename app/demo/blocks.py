# SPDX-License-Identifier: Apache-2.0
"""An OLED picture as text: block characters that hold 1x2 or 2x2 pixels each."""

from __future__ import annotations

import enum

from prompt_toolkit.utils import get_cwidth

from firmware_bridge.display.frame import BitmapFrame


class BlockStyle(enum.Enum):
    """HALF: one column of a character cell per pixel, square pixels. QUADRANT: half as wide."""

    HALF = (1, 2)
    QUADRANT = (2, 2)


# Index: bit 0 upper, bit 1 lower pixel (Unicode block elements U+2580 ff.).
_HALF = " ▀▄█"
# Index: bit 0 upper left, 1 upper right, 2 lower left, 3 lower right.
_QUADRANT = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"


def style_for(columns: int, width: int) -> BlockStyle:
    """The widest style in which a display of `width` pixels and its frame fit `columns` cells."""
    return BlockStyle.HALF if columns >= width + 4 else BlockStyle.QUADRANT


def smallest_frame(width: int, height: int) -> tuple[int, int]:
    """Columns and rows of a display of that many pixels in the narrowest style, with its frame."""
    across, down = BlockStyle.QUADRANT.value
    return width // across + 4, height // down + 2


def pixel(frame: BitmapFrame, x: int, y: int) -> bool:
    """Whether the pixel at column `x`, line `y` (from the top left) is lit."""
    return bool(frame.pages[(y // 8) * frame.width + x] >> (y % 8) & 1)


def draw(frame: BitmapFrame, style: BlockStyle) -> list[str]:
    """The picture as lines of block characters, without a border."""
    across, down = style.value
    glyphs = _HALF if style is BlockStyle.HALF else _QUADRANT
    lines = []
    for top in range(0, frame.height, down):
        cells = []
        for left in range(0, frame.width, across):
            bits = [
                pixel(frame, left + dx, top + dy) << (dy * across + dx)
                for dy in range(down)
                for dx in range(across)
            ]
            cells.append(glyphs[sum(bits)])
        lines.append("".join(cells))
    return lines


def framed(lines: list[str], title: str = "", foot: str = "") -> list[str]:
    """The lines in a thin box, `title` in its upper edge, `foot` in the lower one if it fits there."""
    width = max([get_cwidth(title) + 1, *(len(line) for line in lines)])
    return [
        f"╭{_edge(title, width + 2)}╮",
        *(f"│ {line:<{width}} │" for line in lines),
        f"╰{_edge(foot, width + 2)}╯",
    ]


def _edge(text: str, columns: int) -> str:
    head = f"─ {text} " if text else ""
    left = columns - get_cwidth(head)
    return head + "─" * left if left >= 0 else "─" * columns


def cut(text: str, columns: int) -> str:
    """As much of `text` as fits so many columns; a Chinese character takes two."""
    kept = len(text)
    while kept and get_cwidth(text[:kept]) > columns:
        kept -= 1
    return text[:kept]


def centred(text: str, columns: int) -> str:
    """`text` in the middle of so many columns, cut where it is wider."""
    text = cut(text, columns)
    blanks = columns - get_cwidth(text)
    return " " * (blanks // 2) + text + " " * (blanks - blanks // 2)
