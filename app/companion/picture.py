# SPDX-License-Identifier: Apache-2.0
"""Text on a display of some columns and rows. The last column of row 0 is the status glyph's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.display.layout import wrap
from firmware_bridge.display.spelling import to_ascii

CURSOR = "_"
_TALL_ROWS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """Characters across and lines down."""

    columns: int
    rows: int

    @property
    def is_tall(self) -> bool:
        """Room for a heading and figures around the text (128x64 pixels and more)."""
        return self.rows >= _TALL_ROWS


def ascii_of(text: str) -> str:
    """`text` in the characters of the keyboard's font; at once if it needs no change, as most text."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return to_ascii(text).text


def wrapped(text: str, size: Size) -> list[str]:
    """`text` in lines that leave the last column free; without its empty lines."""
    return [line for line in wrap(ascii_of(text), max(size.columns - 1, 1)) if line]


def tail(text: str, size: Size, rows: int) -> list[str]:
    """The end of `text` with the cursor behind it: one line that moves along, or the last `rows` lines."""
    if rows > 1:
        return wrapped(text + CURSOR, size)[-rows:]
    line = ascii_of(text.rpartition("\n")[2]) + CURSOR
    return [line[-max(size.columns - 1, 1) :]]


def clipped(text: str, columns: int) -> str:
    """One line of at most `columns` characters; `~` says that some are missing."""
    line = ascii_of(text).replace("\n", " ")
    return line if len(line) <= columns else line[: max(columns - 1, 0)] + "~"


def padded(lines: Sequence[str], rows: int) -> list[str]:
    """Exactly `rows` lines: cut, or filled up with empty ones."""
    return [*lines[:rows], *[""] * (rows - len(lines))]


def picture(lines: Sequence[str], size: Size) -> TextFrame:
    """Exactly `size.rows` lines, none longer than the display nor over the glyph's cell."""
    rows = [line[: size.columns] for line in padded(lines, size.rows)]
    if rows:
        rows[0] = rows[0][: max(size.columns - 1, 0)]
    return TextFrame(tuple(row.rstrip() for row in rows))
