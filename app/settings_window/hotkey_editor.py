# SPDX-License-Identifier: Apache-2.0
"""The control for a shortcut of the operating system: press it to set it."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QKeySequenceEdit, QLineEdit, QToolButton, QWidget

from app.settings_window.editors import Commit
from app.settings_window.fields import FieldSpec
from app.settings_window.hotkey_names import portable_of, setting_of
from app.settings_window.wording import Wording

_TEXT = QKeySequence.SequenceFormat.PortableText


class HotkeyEditor:
    """A text field that takes a combination of keys, and a button that takes it away."""

    def __init__(self, field: FieldSpec, words: Wording, commit: Commit) -> None:
        self._commit = commit
        self.widget = QWidget()
        self.edit = QKeySequenceEdit()
        self.edit.setMaximumSequenceLength(1)
        self.edit.setMinimumWidth(
            self.edit.fontMetrics().horizontalAdvance("Ctrl+Shift+Backspace") + 24
        )
        line = self.edit.findChild(QLineEdit)
        assert line is not None
        self._line = self.focus = line
        self._hint = ""
        self.clear = QToolButton()
        self.clear.setText("✕")
        self.clear.setAutoRaise(True)
        words.say(self._say_hint, lambda tr: tr("Press a shortcut"))
        words.say(self.clear.setToolTip, lambda tr: tr("No shortcut"))
        words.say(
            self.clear.setAccessibleName,
            lambda tr: tr("No shortcut: {title}").format(title=tr(field.title)),
        )
        words.say(self.edit.setAccessibleName, lambda tr: tr(field.title))
        self.edit.editingFinished.connect(self._told)
        self.clear.clicked.connect(self._cleared)
        layout = QHBoxLayout(self.widget)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self.clear)

    def show(self, value: object) -> None:
        with QSignalBlocker(self.edit):
            self.edit.setKeySequence(QKeySequence.fromString(portable_of(str(value)), _TEXT))
        self._say_hint(self._hint)
        self.clear.setEnabled(bool(value))

    def _say_hint(self, text: str) -> None:
        """In an empty field; Qt puts words of its own there after each change."""
        self._hint = text
        self._line.setPlaceholderText(text)

    def _cleared(self) -> None:
        self.edit.clear()
        self._say_hint(self._hint)
        self._commit("")

    def _told(self) -> None:
        try:
            self._commit(setting_of(self.edit.keySequence().toString(_TEXT)))
        except ValueError:
            self.edit.clear()  # a key that no shortcut can have, as a volume key
        self._say_hint(self._hint)
