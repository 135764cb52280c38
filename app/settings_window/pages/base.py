# SPDX-License-Identifier: Apache-2.0
"""What every page is: a title, and a column that scrolls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

from app.settings_window.bridge import Bridge
from app.settings_window.computer import Computer
from app.settings_window.editors import make_editor
from app.settings_window.edits import Edits
from app.settings_window.fields import FieldPath, FieldSpec
from app.settings_window.form import Form, MakeEditor, SettingRow
from app.settings_window.labels import Place, place_title
from app.settings_window.offers import with_offers
from app.settings_window.ports import CompanionPort
from app.settings_window.theme import PAGE_MARGIN, PAGE_WIDTH, ROW_GAP
from app.settings_window.widgets import WheelGuard, heading, label
from app.settings_window.wording import Make, Wording


@dataclass(frozen=True, slots=True)
class PageTools:
    """What a page works with."""

    edits: Edits
    companion: CompanionPort
    computer: Computer
    bridge: Bridge
    words: Wording
    guard: WheelGuard


class PageView(QScrollArea):
    """One page. `rows` are the settings on it, so that a search can lead there."""

    def __init__(self, place: Place, tools: PageTools) -> None:
        super().__init__()
        self.place = place
        self.tools = tools
        self.words = tools.words
        self.rows: dict[FieldPath, SettingRow] = {}
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.words.say(self.setAccessibleName, lambda tr: place_title(tr, place))
        self._column = QVBoxLayout()
        self._column.setSpacing(ROW_GAP)
        self._column.addWidget(heading(self.words, lambda tr: place_title(tr, place), 1.6))
        middle = QWidget()
        middle.setMaximumWidth(PAGE_WIDTH)
        middle.setLayout(self._column)
        inside = QWidget()
        inside.setProperty("part", "page")
        across = QHBoxLayout(inside)
        across.setContentsMargins(PAGE_MARGIN, PAGE_MARGIN - 8, PAGE_MARGIN, PAGE_MARGIN)
        across.addWidget(middle, 1)
        across.addStretch(0)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.setWidget(inside)

    def reveal(self, path: FieldPath) -> None:
        """Scroll to a setting and mark it."""
        row = self.rows.get(path)
        if row is not None:
            row.mark_found()
            self.ensureWidgetVisible(row, 0, PAGE_MARGIN)

    def begin(self) -> None:
        """Take the focus where a person is to type; most pages have no such place."""

    def add(self, part: QWidget | QLayout) -> None:
        """One more part below the others."""
        if isinstance(part, QLayout):
            self._column.addLayout(part)
        else:
            self._column.addWidget(part)

    def insert_last(self, part: QWidget) -> None:
        """One more part of a finished page, before the space at its end."""
        self._column.insertWidget(self._column.count() - 1, part)

    def add_intro(self, make: Make) -> None:
        """A sentence below the title."""
        self.add(label(self.words, make, "hint"))

    def add_heading(self, make: Make) -> None:
        """The title of the part that follows."""
        self._column.addSpacing(ROW_GAP // 2)
        self.add(heading(self.words, make))

    def add_form(self, fields: Iterable[FieldSpec], make: MakeEditor = make_editor) -> None:
        """Settings in generated rows, with the controls that `make` makes. Nothing is added for none."""
        fields = tuple(fields)
        if fields:
            form = Form(fields, self.tools.edits, self.words, self.tools.guard, make)
            self.rows |= form.rows
            self.add(form)

    def fields(self, *by_hand: FieldPath) -> list[FieldSpec]:
        """The settings of this page, but those that it shows in its own way."""
        return [
            with_offers(field)
            for field in self.tools.edits.fields
            if field.page.value == self.place.value and field.path not in by_hand
        ]

    def finish(self) -> None:
        """All parts are there."""
        self._column.addStretch(1)
