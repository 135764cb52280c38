# SPDX-License-Identifier: Apache-2.0
"""The small parts that every page is made of."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QRadioButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.settings_window.theme import GAP, ROW_GAP, mixed
from app.settings_window.wording import Make, Wording

RING = 16  # diameter of a radio button
FIELD_PADDING = 9  # above and below the text of a number field together


def label(words: Wording, make: Make, part: str = "") -> QLabel:
    """A text that breaks its lines where it must. `part`: see `theme.style_sheet`."""
    widget = QLabel()
    widget.setWordWrap(True)
    widget.setTextFormat(Qt.TextFormat.PlainText)
    if part:
        widget.setProperty("part", part)
    words.say(widget.setText, make)
    return widget


def heading(words: Wording, make: Make, size: float = 1.15) -> QLabel:
    """A title; `size` is relative to the system's font."""
    widget = label(words, make)
    font = widget.font()
    font.setPointSizeF(font.pointSizeF() * size)
    font.setBold(True)
    widget.setFont(font)
    return widget


def button(words: Wording, make: Make) -> QPushButton:
    """A button whose text is also its accessible name."""
    widget = QPushButton()
    widget.setAutoDefault(False)
    words.say(widget.setText, make)
    words.say(widget.setAccessibleName, make)
    widget.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    return widget


def line() -> QFrame:
    """A hairline between two rows."""
    widget = QFrame()
    widget.setProperty("part", "line")
    widget.setFixedHeight(1)
    return widget


class Card(QFrame):
    """A framed group of rows with hairlines between them."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("part", "card")
        self._rows = QVBoxLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(0)

    def add(self, row: QWidget | QLayout) -> None:
        """One more row, with the card's margins around it."""
        if self._rows.count():
            self._rows.addWidget(line())
        if isinstance(row, QLayout):
            holder = QWidget()
            holder.setLayout(row)
            row.setContentsMargins(ROW_GAP, ROW_GAP, ROW_GAP, ROW_GAP)
            row = holder
        self._rows.addWidget(row)

    def clear(self) -> None:
        """Take all rows away."""
        while (item := self._rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()


def side_by_side(*widgets: QWidget, stretch_first: bool = True) -> QHBoxLayout:
    """Widgets in one line."""
    layout = QHBoxLayout()
    layout.setSpacing(GAP)
    for index, widget in enumerate(widgets):
        layout.addWidget(widget, 1 if stretch_first and index == 0 else 0)
    if not stretch_first:
        layout.addStretch(1)
    return layout


class Switch(QCheckBox):
    """A check box without text, drawn as a switch: off is left, on is right and filled."""

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height() + 6
        return QSize(round(height * 1.9), height)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def paintEvent(self, _event: QPaintEvent) -> None:
        palette = self.palette()
        role = QPalette.ColorRole
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(self.rect()).adjusted(2, 2, -2, -2)
        radius = track.height() / 2
        edge = mixed(palette, role.WindowText, role.Window, 0.6)
        if self.isChecked():
            painter.setBrush(palette.color(role.Highlight))
            painter.setPen(Qt.PenStyle.NoPen)
        else:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(edge, 1.5))
        painter.drawRoundedRect(track, radius, radius)
        knob = track.height() * 0.56
        margin = (track.height() - knob) / 2
        left = track.right() - margin - knob if self.isChecked() else track.left() + margin
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(palette.color(role.HighlightedText) if self.isChecked() else edge)
        painter.drawEllipse(QRectF(left, track.top() + margin, knob, knob))
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(palette.color(role.WindowText), 1.5))
            painter.drawRoundedRect(
                QRectF(self.rect()).adjusted(0.75, 0.75, -0.75, -0.75), radius, radius
            )
        painter.end()


class Option(QRadioButton):
    """A radio button whose ring can be seen on a dark card too; the style's is darker than the window."""

    def sizeHint(self) -> QSize:
        text = self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text())
        return QSize(text.width() + self.indent() + 6, max(text.height(), RING) + 6)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    @staticmethod
    def indent() -> int:
        """Where the text begins."""
        return RING + GAP + 2

    def paintEvent(self, _event: QPaintEvent) -> None:
        palette = self.palette()
        role = QPalette.ColorRole
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ring = QRectF(2, (self.height() - RING) / 2, RING, RING).adjusted(1, 1, -1, -1)
        strong = palette.color(role.Accent)
        edge = mixed(palette, role.WindowText, role.Window, 0.6 if self.isEnabled() else 0.3)
        painter.setPen(QPen(strong if self.isChecked() else edge, 1.5))
        painter.drawEllipse(ring)
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(strong)
            painter.drawEllipse(ring.adjusted(4, 4, -4, -4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(palette.color(role.WindowText))
        rect = self.rect().adjusted(self.indent(), 0, 0, 0)
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(rect, int(middle), self.text())
        if self.hasFocus():
            painter.setPen(QPen(palette.color(role.WindowText), 1.5))
            painter.drawEllipse(ring.adjusted(-2, -2, 2, 2))
        painter.end()


class WheelGuard(QObject):
    """Lets the wheel scroll the page instead of changing a number that the pointer happens to be on."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        guarded = isinstance(watched, QAbstractSpinBox | QComboBox) and not watched.hasFocus()
        if guarded and event.type() is QEvent.Type.Wheel:
            event.ignore()
            return True
        return False

    def guard(self, widget: QAbstractSpinBox | QComboBox) -> None:
        """Watch over `widget`, which then takes the focus by click or tab only."""
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        widget.installEventFilter(self)
