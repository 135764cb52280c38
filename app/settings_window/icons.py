# SPDX-License-Identifier: Apache-2.0
"""The signs of the pages (assets/icons/settings), drawn in the colour of the text."""

from __future__ import annotations

from importlib import resources

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.settings_window.labels import Place

_SIZES = (20, 40)  # for 100 and 200 %
_INK = "#000000"


def place_icon(place: Place, palette: QPalette) -> QIcon:
    """The sign of a page on a window of this palette."""
    file = resources.files("assets") / "icons" / "settings" / f"{place.value}.svg"
    return drawn(file.read_text(encoding="utf-8"), palette.windowText().color())


def drawn(svg: str, colour: QColor) -> QIcon:
    """A one-coloured drawing in another colour."""
    renderer = QSvgRenderer(QByteArray(svg.replace(_INK, colour.name()).encode()))
    icon = QIcon()
    for size in _SIZES:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        icon.addPixmap(pixmap)
    return icon
