# SPDX-License-Identifier: Apache-2.0
"""A display's picture while it is drawn: text in pixel fonts and pixel art, then a frame for the keyboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.display.pixel_font import PixelFont

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_HALVES = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}


@dataclass(frozen=True, slots=True)
class PixelArt:
    """A small picture: one `bytes` a row from the top, one byte a pixel from the left, 255 lit and 0 dark."""

    rows: tuple[bytes, ...] = field(repr=False)

    @property
    def width(self) -> int:
        return len(self.rows[0])

    @property
    def height(self) -> int:
        return len(self.rows)


def parse_art(text: str) -> PixelArt:
    """Art as it is written in a text file: lines of half blocks (▀ ▄ █ and spaces), two pixels in each.

    Lines may be of different length; the right is dark then. A newline at the end begins no line.

    Raises:
        ValueError: no lines, or another character.
    """
    lines = text.removesuffix("\n").split("\n")
    if wrong := set("".join(lines)) - _HALVES.keys():
        raise ValueError(f"pixel art is made of ▀ ▄ █ and spaces, not of {min(wrong)!r}")
    width = max(map(len, lines))
    if not width:
        raise ValueError("pixel art without a pixel")
    return PixelArt(
        tuple(
            bytes(255 * _HALVES[character][half] for character in f"{line:<{width}}")
            for line in lines
            for half in (0, 1)
        )
    )


class Canvas:
    """`width` x `height` pixels, dark at first; what is drawn beyond the edge is lost.

    Coordinates count pixels from the top left corner.
    """

    def __init__(self, width: int, height: int) -> None:
        from PIL import Image

        self.width = width
        self.height = height
        self._image: Picture = Image.new("1", (width, height))

    def text(self, x: int, y: int, text: str, font: PixelFont) -> int:
        """Draw one line with its top left corner at `x`, `y`; where the next character would stand."""
        for character in text:
            glyph = font.glyph(character)
            if glyph is not None:
                self._image.paste(glyph, (x, y))
                x += glyph.width
        return x

    def art(self, x: int, y: int, art: PixelArt, scale: int = 1) -> None:
        """Draw `art` with its top left corner at `x`, `y`; each of its pixels becomes `scale` x `scale`."""
        from PIL import Image

        image = Image.frombytes("L", (art.width, art.height), b"".join(art.rows)).convert("1")
        if scale > 1:
            image = image.resize((art.width * scale, art.height * scale), Image.Resampling.NEAREST)
        self._image.paste(image, (x, y))

    def line(self, x: int, y: int, length: int) -> None:
        """Draw a horizontal line of `length` pixels from `x`, `y` to the right."""
        self._image.paste(1, (x, y, x + length, y + 1))

    def frame(self) -> BitmapFrame:
        """What was drawn so far."""
        from PIL import Image

        # A row of the turned picture is a column of this one; packed with the first pixel in bit 0, its
        # bytes are the column's pages.
        columns = self._image.transpose(Image.Transpose.TRANSPOSE).tobytes("raw", "1;R")
        pages = self.height // 8
        return BitmapFrame(
            self.width, self.height, b"".join(columns[page::pages] for page in range(pages))
        )
