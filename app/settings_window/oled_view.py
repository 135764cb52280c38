# SPDX-License-Identifier: Apache-2.0
"""The keyboard's display, each of its pixels as a square of whole screen pixels."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QResizeEvent, qRgb
from PySide6.QtWidgets import QSizePolicy, QWidget

from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.display.image import pixel_rows

# An OLED is dark with light pixels, whatever the window's colours are.
OFF = qRgb(8, 8, 10)
ON = qRgb(206, 232, 255)
_BEZEL = QColor(26, 26, 30)
_BEZEL_PX = 10
_LARGEST_SCALE = 4


class OledView(QWidget):
    """Shows a BitmapFrame, bit for bit."""

    def __init__(self) -> None:
        super().__init__()
        self.frame: BitmapFrame | None = None
        self._image = QImage()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_frame(self, frame: BitmapFrame) -> None:
        """Show `frame` from now on."""
        if frame == self.frame:
            return
        resized = self.frame is None or (frame.width, frame.height) != (
            self.frame.width, self.frame.height,
        )  # fmt: skip
        self.frame = frame
        self._image = image_of(frame)
        if resized:
            self._fit()
        self.update()

    def sizeHint(self) -> QSize:
        return self._size(3)

    def minimumSizeHint(self) -> QSize:
        return self._size(1)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._fit()

    def picture_rect(self) -> QRectF:
        """Where the pixels lie in the widget."""
        scale = self._scale(self.width())
        width, height = self._image.width() * scale, self._image.height() * scale
        return QRectF((self.width() - width) / 2, _BEZEL_PX, width, height)

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.frame is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_BEZEL)
        rect = self.picture_rect()
        edge = _BEZEL_PX
        painter.drawRoundedRect(rect.adjusted(-edge, -edge, edge, edge), 6, 6)
        painter.drawImage(rect, self._image, QRectF(self._image.rect()))
        painter.end()

    def _fit(self) -> None:
        """As high as the scale that the width allows."""
        self.setFixedHeight(self._size(self._scale(self.width())).height())

    def _scale(self, width: int) -> float:
        """A pixel of the display in device-independent pixels: a whole number of those of the screen."""
        if self.frame is None:
            return 1
        ratio = self.devicePixelRatio()
        fits = math.floor((width - 2 * _BEZEL_PX) * ratio / self.frame.width)
        return max(1, min(fits, math.floor(_LARGEST_SCALE * ratio))) / ratio

    def _size(self, scale: float) -> QSize:
        width, height = (128, 32) if self.frame is None else (self.frame.width, self.frame.height)
        across, down = math.ceil(width * scale), math.ceil(height * scale)
        return QSize(across + 2 * _BEZEL_PX, down + 2 * _BEZEL_PX)


def image_of(frame: BitmapFrame) -> QImage:
    """One image pixel for each pixel of the frame."""
    image = QImage(frame.width, frame.height, QImage.Format.Format_RGB32)
    for y, row in enumerate(pixel_rows(frame)):
        for x, bit in enumerate(row):
            image.setPixel(x, y, ON if bit else OFF)
    return image
