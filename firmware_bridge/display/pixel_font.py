# SPDX-License-Identifier: Apache-2.0
"""Characters as pixels: a font file that was drawn for one size, rendered by FreeType through Pillow.

Pillow and the file are loaded with the first character, and each character is rendered once: a program
that shows plain text only pays for neither.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

_MOST_KEPT = 1024  # glyphs; a page has 200 at most
_NOT_A_CHARACTER = (
    "\U0010fffe"  # no font has it, so it is rendered as the sign for missing characters
)


class PixelFont:
    """Lines of `height` pixels, in columns of half as many if the font is one of two widths.

    What the file lacks comes from `fallback`, a smaller font, if that has it.
    """

    def __init__(self, file: Traversable, height: int, fallback: PixelFont | None = None) -> None:
        self.height = height
        self.column = height // 2
        self._file = file
        self._fallback = fallback
        self._glyphs: dict[str, Image | None] = {}
        self._loaded: FreeTypeFont | None = None
        self._missing = b""

    def covers(self, character: str) -> bool:
        """Whether there is a glyph for `character`."""
        return self.glyph(character) is not None

    def columns(self, character: str) -> int:
        """1 for a narrow character, 2 for a wide one."""
        glyph = self.glyph(character)
        return 1 if glyph is None or glyph.width <= self.column else 2

    def width(self, text: str) -> int:
        """Pixels of `text`; characters without a glyph have none."""
        return sum(glyph.width for glyph in map(self.glyph, text) if glyph is not None)

    def glyph(self, character: str) -> Image | None:
        """A 1-bit picture of the character, as high as a line; None if neither font has it.

        The next character stands at its right edge. Nobody may draw into it.

        Raises:
            OSError: the font file cannot be read (a FreeType without Brotli opens no WOFF2).
        """
        try:
            return self._glyphs[character]
        except KeyError:
            glyph = self._render(character)
            if glyph is None and self._fallback is not None:
                glyph = self._centred(self._fallback.glyph(character))
            if len(self._glyphs) >= _MOST_KEPT:
                self._glyphs.clear()
            self._glyphs[character] = glyph
            return glyph

    def forget(self) -> None:
        """Forget which characters were drawn."""
        self._glyphs.clear()

    def _render(self, character: str) -> Image | None:
        from PIL import Image, ImageDraw

        font = self._font()
        if _looks(font, character) == self._missing:
            return None
        ascent, descent = font.getmetrics()
        image = Image.new("1", (max(round(font.getlength(character)), 1), self.height))
        canvas = ImageDraw.Draw(image)
        canvas.fontmode = "1"
        # A file may leave more room above and below than the pixels that it was drawn for.
        canvas.text((0, (self.height - ascent - descent) // 2), character, fill=1, font=font)
        return image

    def _centred(self, smaller: Image | None) -> Image | None:
        """A glyph of the fallback in a cell of this font: a full one if it is as wide as it is high."""
        from PIL import Image

        if smaller is None:
            return None
        width, height = smaller.size
        is_full = width * 2 > height
        image = Image.new("1", (self.height if is_full else self.column, self.height))
        image.paste(smaller, ((image.width - width) // 2, (self.height - height) // 2))
        return image

    def _font(self) -> FreeTypeFont:
        if self._loaded is None:
            from PIL import ImageFont

            # The basic layout: one character, one glyph, with no other library to depend on.
            with resources.as_file(self._file) as path:
                self._loaded = ImageFont.truetype(
                    path, self.height, layout_engine=ImageFont.Layout.BASIC
                )
            self._missing = _looks(self._loaded, _NOT_A_CHARACTER)
        return self._loaded


def _looks(font: FreeTypeFont, character: str) -> bytes:
    """Something that is equal for characters that look the same and are equally wide."""
    mask, offset = font.getmask2(character, mode="1")
    return repr((mask.size, offset, font.getlength(character))).encode() + bytes(mask)
