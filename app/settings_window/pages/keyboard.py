# SPDX-License-Identifier: Apache-2.0
"""Keyboard: which one is connected, and which one is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QVBoxLayout, QWidget

from app.i18n import Translate, told
from app.settings_window.background import Task
from app.settings_window.computer import ScanError
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.theme import GAP
from app.settings_window.widgets import Card, Option, button, heading, label, side_by_side
from app.settings_window.wording import Make, Wording
from firmware_bridge.discovery.candidates import Candidate

KEYBOARD = ("keyboard",)
AUTO = "auto"
VIRTUAL = "virtual"


class KeyboardPage(PageView):
    """The choice of the keyboard is made by hand, the other settings are generated."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.KEYBOARD, tools)
        self._found: Sequence[Candidate] = ()
        self._trouble = ""
        self._task: Task | None = None
        self._row_words: Wording | None = None
        self.choices: dict[str, Option] = {}
        self._group = QButtonGroup(self)
        state = Card()
        self.state = heading(self.words, self._state_text, 1.0)
        self._detail = label(self.words, self._detail_text, "hint")
        texts = QVBoxLayout()
        texts.addWidget(self.state)
        texts.addWidget(self._detail)
        state.add(texts)
        self.add(state)
        self.add_heading(lambda tr: tr("Which keyboard"))
        self._card = Card()
        self.add(self._card)
        self.again = button(self.words, lambda tr: tr("Search again"))
        self.again.clicked.connect(self.search)
        self._result = label(self.words, self._result_text, "hint")
        self.add(side_by_side(self._result, self.again))
        self.add_form(self.fields(KEYBOARD))
        self.finish()
        tools.bridge.companion_changed.connect(self._companion_changed)
        tools.edits.listen(self._show_chosen)
        self._companion_changed(tools.bridge.view)
        self._fill()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._found:
            self.search()

    def search(self) -> None:
        """List the devices, on a thread of its own."""
        if self._task is not None:
            return
        computer = self.tools.computer
        self._task = Task(lambda _: computer.scan(), (ScanError,), self)
        self._task.done.connect(self._searched)
        self._task.failed.connect(self._search_failed)
        self.again.setEnabled(False)
        self._result.setText(self._result_text(self.words.tr))
        self._task.start()

    def _searched(self, found: Sequence[Candidate]) -> None:
        self._found, self._trouble = found, ""
        self._end_search()
        self._fill()

    def _search_failed(self, reason: str) -> None:
        self._trouble = reason
        self._end_search()

    def _end_search(self) -> None:
        self._task = None
        self.again.setEnabled(True)
        self._result.setText(self._result_text(self.words.tr))

    def _fill(self) -> None:
        """One row for each keyboard that could be chosen, and for one that was and is away."""
        if self._row_words is not None:
            self._row_words.close()
        self._row_words = self.words.branch()
        self._card.clear()
        for choice in self.choices.values():
            self._group.removeButton(choice)
        self.choices = {}
        self._add_choice(AUTO, _auto_text, _auto_hint)
        for candidate in self._found:
            if candidate.matches:
                self._add_choice(_name_for(candidate), _product_of(candidate), _place_of(candidate))
        self._add_choice(VIRTUAL, _virtual_text, _virtual_hint)
        chosen = str(self.tools.edits.value(KEYBOARD))
        if chosen not in self.choices:
            self._add_choice(chosen, lambda _: chosen, _away_hint)
        self._show_chosen()

    def _add_choice(self, name: str, make: Make, hint: Make) -> None:
        assert self._row_words is not None
        choice = Option()
        self._row_words.say(choice.setText, make)
        self._row_words.say(choice.setAccessibleName, make)
        self._row_words.say(choice.setAccessibleDescription, hint)
        choice.toggled.connect(lambda on: on and self.tools.edits.change(KEYBOARD, name))
        self._group.addButton(choice)
        self.choices[name] = choice
        row = QVBoxLayout()
        row.setSpacing(GAP // 4)
        row.addWidget(choice)
        row.addWidget(_indented(label(self._row_words, hint, "hint")))
        self._card.add(row)

    def _show_chosen(self) -> None:
        chosen = self.choices.get(str(self.tools.edits.value(KEYBOARD)))
        if chosen is None:
            self._fill()
            return
        with QSignalBlocker(chosen):
            chosen.setChecked(True)

    def _companion_changed(self, _view: CompanionView) -> None:
        self.state.setText(self._state_text(self.words.tr))
        self._detail.setText(self._detail_text(self.words.tr))

    def _state_text(self, tr: Translate) -> str:
        view = self.tools.bridge.view
        if view.keyboard:
            return tr("Connected: {name}").format(name=told(tr, view.keyboard))
        if view.presence is Presence.AWAY:
            return tr("Thock does not run.")
        return tr("No keyboard is connected.")

    def _detail_text(self, tr: Translate) -> str:
        board = self.tools.bridge.view.board
        if board is None:
            return tr("Plug one in, or choose the virtual keyboard below.")
        display = (
            tr("Display {width} × {height}").format(width=board.width, height=board.height)
            if board.width
            else tr("No display")
        )
        return f"{display}  ·  " + tr("Lights: {count}").format(count=board.led_count)

    def _result_text(self, tr: Translate) -> str:
        if self._task is not None:
            return tr("Searching…")
        if self._trouble:
            return f"⚠ {told(tr, self._trouble)}"
        usable = sum(candidate.matches for candidate in self._found)
        return tr("{usable} of {all} devices could be a keyboard for Thock.").format(
            usable=usable, all=len(self._found)
        )


def _indented(widget: QWidget) -> QWidget:
    """Below the text of a radio button, not below its ring."""
    widget.setContentsMargins(Option.indent(), 0, 0, 0)
    return widget


def _name_for(candidate: Candidate) -> str:
    """What goes into the setting: the USB place, which no other program can read a person from."""
    return candidate.identity.location or candidate.path


def _product_of(candidate: Candidate) -> Make:
    return lambda tr: candidate.identity.product or tr("Keyboard without a name")


def _place_of(candidate: Candidate) -> Make:
    where = candidate.identity.location or candidate.path
    return lambda tr: tr("{kind} at {place}").format(
        kind=candidate.identity.transport.upper(), place=where
    )


def _auto_text(tr: Translate) -> str:
    return tr("The first one with the Thock module")


def _auto_hint(tr: Translate) -> str:
    return tr("Thock looks for it whenever one is plugged in.")


def _virtual_text(tr: Translate) -> str:
    return tr("Virtual keyboard")


def _virtual_hint(tr: Translate) -> str:
    return tr("Runs inside Thock; for trying it without hardware.")


def _away_hint(tr: Translate) -> str:
    return tr("Chosen, but not connected now.")
