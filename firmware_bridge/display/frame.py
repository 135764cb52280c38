# SPDX-License-Identifier: Apache-2.0
"""What may stand on a keyboard's display: lines of its own font, or a bitmap in SSD1306 pages."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TextFrame:
    """Lines in the firmware's 6x8 font: printable ASCII only, at most the display's columns x rows.

    `repr` shows no content: a frame may hold what the person typed.
    """

    rows: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        for row in self.rows:
            if not (row.isascii() and row.isprintable()):  # 20..7E
                raise ValueError("a text frame holds printable ASCII only")


@dataclass(frozen=True, slots=True)
class BitmapFrame:
    """`height/8` pages of `width` bytes each; bit 0 of a byte is the topmost pixel of its page.

    Layout: Solomon Systech SSD1306 datasheet, section 8.7 (GDDRAM); QMK's oled driver uses the same.
    """

    width: int
    height: int
    pages: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if self.height % 8 or len(self.pages) != self.width * self.height // 8:
            raise ValueError("a bitmap frame holds width x height/8 bytes")


DisplayFrame = TextFrame | BitmapFrame
