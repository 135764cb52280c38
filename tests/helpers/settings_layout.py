# SPDX-License-Identifier: Apache-2.0
"""What is on a page, and what of it is cut off."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QKeySequenceEdit,
    QLabel,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QWidget,
)

from app.settings_window.lights_view import LightsView
from app.settings_window.oled_view import OledView

CONTROLS = (
    QAbstractButton, QAbstractSpinBox, QComboBox, QKeySequenceEdit, QLineEdit, QListWidget, QPlainTextEdit,
)  # fmt: skip
PICTURES = (OledView, LightsView, QProgressBar)


def is_own(widget: QWidget) -> bool:
    """Not a part that a control of Qt is made of, nor the scroll bar that the wheel moves."""
    if isinstance(widget, QScrollBar) or widget.objectName().startswith("qt_"):
        return False
    return not isinstance(widget.parent(), QAbstractSpinBox | QComboBox | QLineEdit | QListWidget)


def controls(root: QWidget) -> Iterator[QWidget]:
    for widget in shown(root):
        if isinstance(widget, CONTROLS) and is_own(widget):
            yield widget


def describe(widget: QWidget) -> str:
    text = getattr(widget, "text", lambda: "")()
    return f"{type(widget).__name__} {widget.accessibleName()!r} {text!r}"


def cut_off(root: QWidget) -> list[str]:
    """Labels, buttons and fields whose text needs more room than they have."""
    found = []
    for widget in shown(root):
        if isinstance(widget, QLabel) and widget.text():
            found += _cut_label(widget)
        elif isinstance(widget, QAbstractButton | QComboBox | QAbstractSpinBox) and is_own(widget):
            if widget.width() < widget.minimumSizeHint().width() or (
                widget.height() < widget.minimumSizeHint().height() - 1
            ):
                found.append(f"{describe(widget)} {widget.size()} < {widget.minimumSizeHint()}")
            if isinstance(widget, QAbstractSpinBox):
                line = widget.lineEdit()
                needs = line.fontMetrics().horizontalAdvance(line.displayText())
                if needs > line.width():
                    found.append(f"{describe(widget)}: text {needs} in {line.width()}")
        found += _outside(widget, root)
    return found


def _cut_label(label: QLabel) -> list[str]:
    if label.wordWrap():
        width = label.width() - label.contentsMargins().left()
        longest = max(
            (label.fontMetrics().horizontalAdvance(word) for word in label.text().split()),
            default=0,
        )
        is_cut = label.height() < label.heightForWidth(label.width()) - 1
        is_cut |= label.text().isascii() and longest > width + 2
    else:
        is_cut = label.sizeHint().width() > label.width() + 1
    return [f"{describe(label)} {label.size()}"] if is_cut else []


def _outside(widget: QWidget, root: QWidget) -> list[str]:
    """What a parent cuts off at its right side."""
    parent = widget.parentWidget()
    if widget is root or parent is None or not is_own(widget) or not isinstance(widget, CONTROLS):
        return []
    inside = QRect(QPoint(0, 0), parent.size())
    return [] if widget.geometry().right() <= inside.right() + 1 else [f"{describe(widget)} is cut"]


def shown(root: QWidget) -> list[QWidget]:
    """`root` and all widgets in it that can be seen, also those that have to be scrolled to."""
    return [w for w in (root, *root.findChildren(QWidget)) if w.isVisibleTo(root.window())]
