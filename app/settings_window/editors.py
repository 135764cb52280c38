# SPDX-License-Identifier: Apache-2.0
"""One control for one field: shows a value, and tells what the person makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QSignalBlocker, QSize
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QSpinBox,
    QWidget,
)

from app.i18n import Translate
from app.settings_window.fields import Choice, FieldKind, FieldSpec
from app.settings_window.labels import choice_label, unit_text
from app.settings_window.theme import GAP
from app.settings_window.widgets import FIELD_PADDING, Switch, WheelGuard, button
from app.settings_window.wording import Wording

Commit = Callable[[object], None]

_TEXT_CHARS = 26  # width of a text field, in digits
_LINES = 3  # that are seen of a list of texts
_WIDEST = 2**31 - 1  # what a spin box can hold


class Editor(Protocol):
    """`widget` is what goes into the row, `focus` what a label and a search lead to."""

    @property
    def widget(self) -> QWidget: ...

    @property
    def focus(self) -> QWidget: ...

    def show(self, value: object) -> None:
        """Show `value` without telling it back."""
        ...


class SwitchEditor:
    """SWITCH."""

    def __init__(self, commit: Commit) -> None:
        self.widget = self.focus = self._switch = Switch()
        self._switch.toggled.connect(commit)

    def show(self, value: object) -> None:
        with QSignalBlocker(self._switch):
            self._switch.setChecked(bool(value))
        self._switch.update()


class WholeEditor:
    """WHOLE."""

    def __init__(self, field: FieldSpec, words: Wording, guard: WheelGuard, commit: Commit) -> None:
        self.widget = self.focus = self._box = _Whole()
        self._box.setKeyboardTracking(False)
        low, high = field.minimum, field.maximum
        self._box.setRange(
            -_WIDEST if low is None else math.ceil(low),
            _WIDEST if high is None else math.floor(high),
        )
        if high is not None and high >= 1000:
            self._box.setStepType(QSpinBox.StepType.AdaptiveDecimalStepType)
        words.say(self._box.setSuffix, lambda tr: unit_text(tr, field.unit))
        guard.guard(self._box)
        self._box.valueChanged.connect(commit)

    def show(self, value: object) -> None:
        assert isinstance(value, int)
        with QSignalBlocker(self._box):
            self._box.setValue(value)


class _Whole(QSpinBox):
    """As high as the other fields."""

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width() + GAP, self.fontMetrics().height() + FIELD_PADDING)


class _PlainDouble(QDoubleSpinBox):
    """0.4 instead of 0.40: the zeros say nothing."""

    def sizeHint(self) -> QSize:
        """Qt measures the ends of the range, which need no decimals."""
        width = super().sizeHint().width() + self.fontMetrics().horizontalAdvance(".00")
        return QSize(width + GAP, self.fontMetrics().height() + FIELD_PADDING)

    def textFromValue(self, value: float) -> str:
        return self.locale().toString(value, "f", self.decimals()).rstrip("0").rstrip(".,") or "0"


class DecimalEditor:
    """DECIMAL."""

    def __init__(self, field: FieldSpec, words: Wording, guard: WheelGuard, commit: Commit) -> None:
        self.widget = self.focus = self._box = _PlainDouble()
        self._box.setKeyboardTracking(False)
        self._box.setDecimals(2)
        low, high = field.minimum, field.maximum
        self._box.setRange(-1e9 if low is None else low, 1e9 if high is None else high)
        span = self._box.maximum() - self._box.minimum()
        self._box.setSingleStep(0.01 if span <= 2 else 0.1 if span <= 10 else 1)
        words.say(self._box.setSuffix, lambda tr: unit_text(tr, field.unit))
        guard.guard(self._box)
        self._box.valueChanged.connect(commit)

    def show(self, value: object) -> None:
        assert isinstance(value, int | float)
        with QSignalBlocker(self._box):
            self._box.setValue(value)


class ChoiceEditor:
    """CHOICE, and texts of which only some are possible."""

    def __init__(self, field: FieldSpec, words: Wording, guard: WheelGuard, commit: Commit) -> None:
        self.widget = self.focus = self._box = QComboBox()
        self._box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._values = [choice.value for choice in field.choices]
        for index, choice in enumerate(field.choices):
            self._box.addItem("")

            def put(text: str, index: int = index) -> None:
                self._box.setItemText(index, text)

            def text(tr: Translate, choice: Choice = choice) -> str:
                return choice_label(tr, choice) + unit_text(tr, field.unit)

            words.say(put, text)
        guard.guard(self._box)
        self._box.currentIndexChanged.connect(lambda index: commit(self._values[index]))

    def show(self, value: object) -> None:
        with QSignalBlocker(self._box):
            if value not in self._values:  # a name of the person's own that is not offered
                self._values.append(value)
                self._box.addItem(str(value))
            self._box.setCurrentIndex(self._values.index(value))


class TextEditor:
    """TEXT. Told when the person is done with it: Enter, or the focus goes on."""

    def __init__(self, field: FieldSpec, commit: Commit) -> None:
        self.widget = self.focus = self._line = QLineEdit()
        if field.max_length is not None:
            self._line.setMaxLength(field.max_length)
        self._line.setMinimumWidth(self._line.fontMetrics().horizontalAdvance("0") * _TEXT_CHARS)
        self._line.editingFinished.connect(lambda: commit(self._line.text()))

    def show(self, value: object) -> None:
        if self._line.text() != str(value):
            self._line.setText(str(value))


class TextsEditor:
    """TEXTS: one a line. Told when the focus goes on."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self.widget = self.focus = self._box = _Lines(self._told)
        self._box.setTabChangesFocus(True)
        height = self._box.fontMetrics().lineSpacing() * _LINES + 2 * GAP
        self._box.setFixedSize(self._box.fontMetrics().horizontalAdvance("0") * _TEXT_CHARS, height)

    def show(self, value: object) -> None:
        assert isinstance(value, tuple)
        if self._lines() != value:
            self._box.setPlainText("\n".join(value))

    def _lines(self) -> tuple[str, ...]:
        lines = (line.strip() for line in self._box.toPlainText().splitlines())
        return tuple(line for line in lines if line)

    def _told(self) -> None:
        self._commit(self._lines())


class _Lines(QPlainTextEdit):
    """Tells when it is left."""

    def __init__(self, left: Callable[[], None]) -> None:
        super().__init__()
        self._left = left

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._left()


class FileEditor:
    """FILE: a path to type, or to choose."""

    def __init__(self, field: FieldSpec, words: Wording, commit: Commit) -> None:
        self._words = words
        self._is_optional = field.is_optional
        self._commit = commit
        self.widget = QWidget()
        self.focus = self._line = QLineEdit()
        zero = self._line.fontMetrics().horizontalAdvance("0")
        self._line.setMinimumWidth(zero * _TEXT_CHARS // 2)  # the button stands beside it
        self._line.editingFinished.connect(self._told)
        choose = button(words, lambda tr: tr("Choose…"))
        choose.clicked.connect(self._choose)
        layout = QHBoxLayout(self.widget)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GAP)
        layout.addWidget(self._line, 1)
        layout.addWidget(choose)

    def show(self, value: object) -> None:
        text = "" if value is None else str(value)
        if self._line.text() != text:
            self._line.setText(text)

    def _told(self) -> None:
        text = self._line.text().strip()
        self._commit(None if not text and self._is_optional else Path(text))

    def _choose(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self.widget.window(), self._words.tr("Choose a file"))
        if path:
            self._line.setText(path)
            self._told()


def make_editor(field: FieldSpec, words: Wording, guard: WheelGuard, commit: Commit) -> Editor:
    """The control that fits `field`."""
    editor: Editor
    match field.kind:
        case FieldKind.SWITCH:
            editor = SwitchEditor(commit)
        case FieldKind.WHOLE:
            editor = WholeEditor(field, words, guard, commit)
        case FieldKind.DECIMAL:
            editor = DecimalEditor(field, words, guard, commit)
        case FieldKind.CHOICE:
            editor = ChoiceEditor(field, words, guard, commit)
        case FieldKind.TEXTS:
            editor = TextsEditor(commit)
        case FieldKind.FILE:
            editor = FileEditor(field, words, commit)
        case _:
            editor = TextEditor(field, commit)
    editor.widget.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
    return editor
