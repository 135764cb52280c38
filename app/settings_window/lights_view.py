# SPDX-License-Identifier: Apache-2.0
"""The keyboard's LEDs in the colours of the overlay, in the order of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.settings_window.theme import mixed
from firmware_bridge.lights.overlay import Rgb

_CELL = 26
_GAP = 4


class LightsView(QWidget):
    """`colours` holds what is shown; None where the board's own lighting shows, drawn as a dashed ring."""

    def __init__(self) -> None:
        super().__init__()
        self.colours: tuple[Rgb | None, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_colours(self, colours: Sequence[Rgb | None]) -> None:
        """Show these colours, one for each LED."""
        self.colours = tuple(colours)
        self._fit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(16 * _CELL, _CELL)

    def minimumSizeHint(self) -> QSize:
        return QSize(4 * _CELL, _CELL)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._fit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        role = QPalette.ColorRole
        edge = mixed(self.palette(), role.WindowText, role.Window, 0.45)
        columns = self._columns(self.width())
        for number, colour in enumerate(self.colours):
            row, column = divmod(number, columns)
            cell = QRectF(
                column * _CELL + _GAP / 2, row * _CELL + _GAP / 2, _CELL - _GAP, _CELL - _GAP
            )
            if colour is None:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(edge, 1, Qt.PenStyle.DashLine))
            else:
                painter.setBrush(QColor(colour.red, colour.green, colour.blue))
                painter.setPen(QPen(edge, 1))
            painter.drawRoundedRect(cell, 5, 5)
        painter.end()

    def _fit(self) -> None:
        """As high as the rows that the width needs."""
        rows = max(1, math.ceil(len(self.colours) / self._columns(self.width())))
        self.setFixedHeight(rows * _CELL)

    def _columns(self, width: int) -> int:
        return max(1, min(len(self.colours) or 1, width // _CELL))
