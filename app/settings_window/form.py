# SPDX-License-Identifier: Apache-2.0
"""Rows and cards of fields, generated from what the models say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.i18n import told
from app.settings_window.editors import Editor, make_editor
from app.settings_window.edits import Edits, Problem
from app.settings_window.fields import FieldKind, FieldPath, FieldSpec
from app.settings_window.theme import GAP, ROW_GAP
from app.settings_window.widgets import Card, WheelGuard, heading, label
from app.settings_window.wording import Wording, translated

FOUND_MS = 1800  # a row that a search led to stays marked this long

MakeEditor = Callable[[FieldSpec, Wording, WheelGuard, Callable[[object], None]], Editor]


class SettingRow(QFrame):
    """One field: title, help, control, the way back to the default, and what was wrong."""

    def __init__(
        self,
        field: FieldSpec,
        edits: Edits,
        words: Wording,
        guard: WheelGuard,
        make: MakeEditor = make_editor,
    ) -> None:
        super().__init__()
        self.field = field
        self._edits = edits
        self._words = words
        self._problem: Problem | None = None
        self.editor = make(field, words, guard, self._commit)
        self._title = label(words, lambda tr: tr(field.title))
        self._title.setBuddy(self.editor.focus)
        self._hint = label(words, self._help, "hint")
        self._hint.setVisible(bool(self._help(words.tr)))
        self._trouble = label(words, self._trouble_text, "problem")
        self._trouble.hide()
        self._reset = QToolButton()
        self._reset.setText("↺")
        self._reset.setAutoRaise(True)
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._reset.clicked.connect(self._go_back)
        words.say(self._reset.setToolTip, lambda tr: tr("Back to the default"))
        words.say(
            self._reset.setAccessibleName,
            lambda tr: tr("Back to the default: {title}").format(title=tr(field.title)),
        )
        self._name_controls()
        self._arrange()
        edits.listen(self.refresh)
        self.refresh()

    def close_row(self) -> None:
        """The field goes away: look at it no more."""
        self._edits.ignore(self.refresh)

    def refresh(self) -> None:
        """Show what holds now."""
        self._tell_problem(None)
        self.editor.show(self._edits.value(self.field.path))
        self._reset.setVisible(not self._edits.is_default(self.field))

    def mark_found(self) -> None:
        """A search led here: take the focus, and be seen."""
        self.setProperty("part", "found")
        self._polish()
        self.editor.focus.setFocus(Qt.FocusReason.ShortcutFocusReason)
        QTimer.singleShot(FOUND_MS, self, self._unmark)

    def _unmark(self) -> None:
        self.setProperty("part", "")
        self._polish()

    def _polish(self) -> None:
        self.style().unpolish(self)
        self.style().polish(self)

    def _name_controls(self) -> None:
        focus = self.editor.focus
        self._words.say(focus.setAccessibleName, lambda tr: tr(self.field.title))
        self._words.say(
            focus.setAccessibleDescription, lambda tr: translated(tr, self.field.description)
        )

    def _arrange(self) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addStretch(1)
        texts.addWidget(self._title)
        texts.addWidget(self._hint)
        texts.addWidget(self._trouble)
        texts.addStretch(1)
        line = QHBoxLayout(self)
        line.setContentsMargins(ROW_GAP, ROW_GAP, ROW_GAP, ROW_GAP)
        line.setSpacing(GAP)
        line.addLayout(texts, 1)
        line.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(self.editor.widget, 0, Qt.AlignmentFlag.AlignVCenter)

    def _help(self, tr: Callable[[str], str]) -> str:
        text = translated(tr, self.field.description)
        if self.field.needs_restart:
            text = f"{text} {tr('Holds from the next start on.')}".strip()
        return text

    def _trouble_text(self, tr: Callable[[str], str]) -> str:
        return "" if self._problem is None else f"⚠ {told(tr, self._problem.text)}"

    def _commit(self, value: object) -> None:
        problem = self._edits.change(self.field.path, value)
        if problem is not None and self.field.kind is not FieldKind.TEXT:
            self.editor.show(self._edits.value(self.field.path))  # a text is left to be mended
        if problem is not None or self._problem is not None:
            self._tell_problem(problem)

    def _go_back(self) -> None:
        self._tell_problem(self._edits.reset(self.field))

    def _tell_problem(self, problem: Problem | None) -> None:
        self._problem = problem
        text = self._trouble_text(self._words.tr)
        self._trouble.setText(text)
        self._trouble.setVisible(problem is not None)
        described = text or translated(self._words.tr, self.field.description)
        self.editor.focus.setAccessibleDescription(described)


class Form(QWidget):
    """Fields in cards, one card a group."""

    def __init__(
        self,
        fields: Iterable[FieldSpec],
        edits: Edits,
        words: Wording,
        guard: WheelGuard,
        make: MakeEditor = make_editor,
    ) -> None:
        super().__init__()
        self.rows: dict[FieldPath, SettingRow] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GAP)
        for group, members in groupby(fields, key=lambda field: field.group):
            if group:
                layout.addSpacing(GAP)
                layout.addWidget(heading(words, lambda tr, group=group: tr(group)))  # type: ignore[misc]
            card = Card()
            for field in members:
                row = SettingRow(field, edits, words, guard, make)
                self.rows[field.path] = row
                card.add(row)
            layout.addWidget(card)

    def close_rows(self) -> None:
        """The fields go away."""
        for row in self.rows.values():
            row.close_row()
