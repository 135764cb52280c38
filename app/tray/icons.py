# SPDX-License-Identifier: Apache-2.0
"""The icon, drawn for each state from a few lines: a keycap, and in it what the companion does.

All coordinates are of a square of 16 units; it is drawn eight times too large and made smaller, so that
edges are smooth at every size.
"""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageDraw

from app.tray.menu import Shape

Ink = tuple[int, int, int]
LIGHT: Ink = (240, 240, 236)
DARK: Ink = (34, 34, 38)

_UNITS = 16
_FINE = 8


class _Pen:
    """Draws in units on a mask."""

    def __init__(self, size: int) -> None:
        self._scale = size * _FINE / _UNITS
        self.mask = Image.new("L", (size * _FINE, size * _FINE))
        self._draw = ImageDraw.Draw(self.mask)

    def _points(self, *units: float) -> list[float]:
        return [unit * self._scale for unit in units]

    def _width(self, units: float) -> int:
        return max(round(units * self._scale), 1)

    def keycap(self) -> None:
        """A rounded square with a wide lower edge, as seen a little from the front."""
        self._draw.rounded_rectangle(
            self._points(1, 1, 15, 15), self._width(3), outline=255, width=self._width(1.5)
        )

    def dot(self, x: float, y: float, radius: float) -> None:
        self._draw.ellipse(self._points(x - radius, y - radius, x + radius, y + radius), fill=255)

    def bar(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self._draw.rounded_rectangle(self._points(x0, y0, x1, y1), self._width(0.5), fill=255)

    def line(
        self, x0: float, y0: float, x1: float, y1: float, width: float, ink: int = 255
    ) -> None:
        self._draw.line(self._points(x0, y0, x1, y1), ink, self._width(width))

    def arc(self, begin: float, end: float) -> None:
        self._draw.arc(self._points(4.2, 4.2, 11.8, 11.8), begin, end, 255, self._width(1.7))


def _idle(pen: _Pen) -> None:
    """The letter of a key: a T."""
    pen.bar(4.5, 4.5, 11.5, 6.3)
    pen.bar(7.1, 4.5, 8.9, 11.5)


def _busy(pen: _Pen) -> None:
    for x in (4.6, 8, 11.4):
        pen.dot(x, 8, 1.2)


def _paused(pen: _Pen) -> None:
    pen.bar(5, 4.6, 7, 11.4)
    pen.bar(9, 4.6, 11, 11.4)


def _loading(pen: _Pen) -> None:
    pen.arc(-90, 180)


def _trouble(pen: _Pen) -> None:
    pen.bar(7, 3.8, 9, 9.2)
    pen.dot(8, 11.4, 1.2)


def _no_keyboard(pen: _Pen) -> None:
    """The empty keycap, struck through."""
    pen.line(1, 15, 15, 1, 4.4, ink=0)
    pen.line(1.5, 14.5, 14.5, 1.5, 1.6)


_INSIDE: dict[Shape, Callable[[_Pen], None]] = {
    Shape.IDLE: _idle,
    Shape.BUSY: _busy,
    Shape.PAUSED: _paused,
    Shape.LOADING: _loading,
    Shape.NO_KEYBOARD: _no_keyboard,
    Shape.TROUBLE: _trouble,
}


def icon(shape: Shape, size: int, ink: Ink, ground: Ink | None = None) -> Image.Image:
    """The icon of `size` x `size` pixels in one colour; on `ground`, for panels that show no alpha."""
    pen = _Pen(size)
    pen.keycap()
    _INSIDE[shape](pen)
    mask = pen.mask.resize((size, size), Image.Resampling.BOX)
    if ground is not None:
        picture = Image.new("RGB", (size, size), ground)
        picture.paste(ink, mask=mask)
        return picture
    picture = Image.new("RGBA", (size, size), (*ink, 0))
    picture.putalpha(mask)
    return picture


def app_icon(size: int) -> Image.Image:
    """The icon of the program, for menus and windows: a dark key with a light letter."""
    fine = size * _FINE
    scale = fine / _UNITS
    picture = Image.new("RGBA", (fine, fine))
    draw = ImageDraw.Draw(picture)
    for box, radius, colour in (
        ((0.5, 0.5, 15.5, 15.5), 3.2, (26, 28, 34, 255)),
        ((2, 1.4, 14, 12.6), 2.2, (52, 57, 70, 255)),
    ):
        draw.rounded_rectangle([unit * scale for unit in box], radius * scale, fill=colour)
    for box in ((4.7, 3.8, 11.3, 5.6), (7.1, 3.8, 8.9, 10.4)):
        draw.rounded_rectangle(
            [unit * scale for unit in box], 0.5 * scale, fill=(120, 220, 180, 255)
        )
    return picture.resize((size, size), Image.Resampling.BOX)
