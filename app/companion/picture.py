# SPDX-License-Identifier: Apache-2.0
"""Text on a display of some columns and rows, in the firmware's own font or in a pixel font."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.display.layout import one_column, prefix, wrap
from firmware_bridge.display.pixel_font import PixelFont
from firmware_bridge.display.spelling import spelled, to_ascii

CURSOR = "_"
MORE = "v"  # in the last column of the last row: another page follows
_TALL_ROWS = 8


@dataclass(frozen=True, slots=True)
class Size:
    """Columns across and lines down. Without a `font` they are characters of the firmware's own.

    In a pixel font hanzi take two columns, and a status bar stands above the lines. The firmware's
    font has none: there the last column of row 0 belongs to the status glyph.
    """

    columns: int
    rows: int
    font: PixelFont | None = None

    @property
    def has_pixels(self) -> bool:
        """A pixel font, with room for pixel art."""
        return self.font is not None

    @property
    def is_tall(self) -> bool:
        """Room for a heading and figures around the text (128x64 pixels and more); a status bar holds both."""
        return self.font is None and self.rows >= _TALL_ROWS

    @property
    def line(self) -> int:
        """Columns of a line of text."""
        return self.columns if self.has_pixels else max(self.columns - 1, 1)

    def spelled(self, text: str) -> str:
        """`text` and its newlines in the characters of the font."""
        return ascii_of(text) if self.font is None else spelled(text, self.font.covers)

    def columns_of(self, character: str) -> int:
        """The width of a character."""
        return 1 if self.font is None else self.font.columns(character)

    def width(self, text: str) -> int:
        """The columns of `text`, one line."""
        return len(text) if self.font is None else sum(map(self.font.columns, text))

    def start(self, text: str, columns: int) -> str:
        """As much of the beginning of `text` as fits `columns` columns."""
        width = one_column if self.font is None else self.font.columns
        return text[: prefix(text, columns, width)]

    def end(self, text: str, columns: int) -> str:
        """As much of the end of `text` as fits `columns` columns."""
        return self.start(text[::-1], columns)[::-1]


def ascii_of(text: str) -> str:
    """`text` in the characters of the keyboard's font; at once if it needs no change, as most text."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return to_ascii(text).text


def wrapped(text: str, size: Size) -> list[str]:
    """`text` in lines, without its empty ones."""
    width = one_column if size.font is None else size.font.columns
    return [line for line in wrap(size.spelled(text), size.line, width) if line]


def tail(text: str, size: Size, rows: int, after: str = "") -> list[str]:
    """The end of `text` with the cursor behind it: one line that moves along, or the last `rows` lines.

    Of what stands behind the cursor, the beginning of its line is shown too.
    """
    rest = CURSOR + after.partition("\n")[0][: size.line // 3]
    if rows > 1:
        return wrapped(text + rest, size)[-rows:]
    return [size.end(size.spelled(text.rpartition("\n")[2] + rest), size.line)]


def clipped(text: str, columns: int, size: Size) -> str:
    """One line of at most `columns` columns; `~` says that some characters are missing."""
    line = size.spelled(text).replace("\n", " ")
    return line if size.width(line) <= columns else size.start(line, max(columns - 1, 0)) + "~"


def filled(text: str, columns: int, size: Size) -> str:
    """`text`, one line, filled up with spaces to `columns` columns."""
    return text + " " * (columns - size.width(text))


def padded(lines: Sequence[str], rows: int) -> list[str]:
    """Exactly `rows` lines: cut, or filled up with empty ones."""
    return [*lines[:rows], *[""] * (rows - len(lines))]


def picture(lines: Sequence[str], size: Size, *, has_more: bool = False) -> TextFrame:
    """Exactly `size.rows` lines, none longer than the display nor over the glyph's cell."""
    rows = [ascii_of(line)[: size.columns] for line in padded(lines, size.rows)]
    if rows:
        rows[0] = rows[0][: max(size.columns - 1, 0)]
    if len(rows) > 1 and has_more:
        rows[-1] = f"{rows[-1][: size.line]:<{size.line}}{MORE}"
    return TextFrame(tuple(row.rstrip() for row in rows))
