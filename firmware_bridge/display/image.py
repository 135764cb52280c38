# SPDX-License-Identifier: Apache-2.0
"""Bitmap frames <-> rows of pixels, as programs that draw or look at pictures want them."""

from __future__ import annotations

from collections.abc import Sequence

from firmware_bridge.display.frame import BitmapFrame

PixelRows = tuple[bytes, ...]
"""One `bytes` per line from the top, one byte per pixel from the left: 1 lit, 0 dark."""


def pixel_rows(frame: BitmapFrame) -> PixelRows:
    """`frame.height` rows of `frame.width` pixels."""
    return tuple(
        bytes(byte >> (y % 8) & 1 for byte in _page(frame, y // 8)) for y in range(frame.height)
    )


def from_pixel_rows(rows: Sequence[Sequence[int]]) -> BitmapFrame:
    """The frame with these pixels; every non-zero pixel is lit.

    Raises:
        ValueError: no rows, rows of different widths, or a height that 8 does not divide.
    """
    if not rows or len(rows) % 8 or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("a picture has equal rows and a height that 8 divides")
    width = len(rows[0])
    pages = bytes(
        sum(bool(rows[top + bit][x]) << bit for bit in range(8))
        for top in range(0, len(rows), 8)
        for x in range(width)
    )
    return BitmapFrame(width, len(rows), pages)


def _page(frame: BitmapFrame, page: int) -> bytes:
    return frame.pages[page * frame.width : (page + 1) * frame.width]
