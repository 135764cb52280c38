# SPDX-License-Identifier: Apache-2.0
"""Every control says what it is and can be reached by keyboard; every text is there in full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
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

from app.i18n import Language
from app.settings_window.labels import Place
from app.settings_window.lights_view import LightsView
from app.settings_window.oled_view import OledView
from app.settings_window.window import speech
from tests.helpers.settings_desk import SettingsDesk, settle, shown

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


def test_every_control_has_a_name_and_the_pictures_too(desk: SettingsDesk) -> None:
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    checked = 0
    for page in desk.pages():
        for widget in controls(desk.window):
            checked += 1
            assert widget.accessibleName(), f"{page.place}: {describe(widget)}"
        for widget in page.findChildren(QWidget):
            if isinstance(widget, PICTURES):
                assert widget.accessibleName(), f"{page.place}: {describe(widget)}"
    assert checked > 100


def test_settings_describe_themselves(desk: SettingsDesk) -> None:
    for page in desk.pages():
        for row in page.rows.values():
            assert row.editor.focus.accessibleName() == row.field.title
            assert row.editor.focus.accessibleDescription() == row.field.description


def test_names_are_spoken_in_chinese(desk: SettingsDesk) -> None:
    list(desk.pages())
    desk.edits.change(("language",), Language.ZH_CN)
    for page in desk.pages():
        for row in page.rows.values():
            tr = speech(Language.ZH_CN)
            assert row.editor.focus.accessibleName() == tr(row.field.title)


def test_every_control_that_can_be_used_takes_the_focus(desk: SettingsDesk) -> None:
    for page in desk.pages():
        for widget in controls(desk.window):
            if widget.isEnabled():
                policy = widget.focusPolicy()
                target = widget.focusProxy() or widget
                reachable = policy & Qt.FocusPolicy.TabFocus or target.focusPolicy()
                assert reachable, f"{page.place}: {describe(widget)}"


@pytest.mark.parametrize("place", Place)
def test_tab_goes_through_every_control_of_a_page(desk: SettingsDesk, place: Place) -> None:
    page = desk.page(place)
    settle()
    wanted = {
        w for w in controls(page) if w.isEnabled() and w.focusPolicy() & Qt.FocusPolicy.TabFocus
    }
    seen: set[QWidget] = set()
    widget: QWidget = desk.window
    for _ in range(1000):
        widget = widget.nextInFocusChain()
        seen.add(widget)
        if widget is desk.window:
            break
    seen |= {w.focusProxy() for w in seen if w.focusProxy()}
    missing = [describe(w) for w in wanted if w not in seen]
    assert not missing


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


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("width", [640, 980])
def test_nothing_is_cut_off(desk: SettingsDesk, language: Language, width: int) -> None:
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    desk.edits.change(("language",), language)
    desk.window.resize(width, 700)
    for page in desk.pages():
        settle(0.05)
        assert not cut_off(desk.window), page.place
        bar = page.horizontalScrollBar()
        assert bar.maximum() == 0, f"{page.place} is wider than the window by {bar.maximum()}"


def test_the_assistant_names_its_controls_and_cuts_nothing_off(desk: SettingsDesk) -> None:
    desk.computer.folder.joinpath("small-chat.gguf").unlink()
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert assistant is not None
    for language in Language:
        desk.edits.change(("language",), language)
        while True:
            settle(0.1)
            assert not cut_off(assistant), assistant.step
            for widget in controls(assistant):
                assert widget.accessibleName(), f"{assistant.step}: {describe(widget)}"
            if assistant.steps[-1] is assistant.step:
                break
            assistant.go_on()
        while assistant.back.isEnabled():
            assistant.go_back()
