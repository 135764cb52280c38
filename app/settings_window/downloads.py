# SPDX-License-Identifier: Apache-2.0
"""Models that can be fetched by name, with their licence, size and progress."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from app.i18n import Translate, told
from app.models.catalogue import CatalogueEntry
from app.models.errors import ModelStoreError
from app.settings_window.background import Task
from app.settings_window.computer import Computer
from app.settings_window.texts import size_text
from app.settings_window.theme import GAP
from app.settings_window.widgets import button, label, side_by_side
from app.settings_window.wording import Wording


class DownloadRow(QWidget):
    """One model of the catalogue. `installed` tells that it is there now."""

    installed = Signal(str)

    def __init__(
        self, name: str, entry: CatalogueEntry, computer: Computer, words: Wording
    ) -> None:
        super().__init__()
        self.name = name
        self._entry = entry
        self._computer = computer
        self._words = words
        self._task: Task | None = None
        self._trouble = ""
        self._unpacked = 0
        self._there = False
        self.state = label(words, self._state_text, "hint")
        self.get = button(words, self._button_text)
        words.say(self.get.setAccessibleName, lambda tr: f"{self._button_text(tr)}: {entry.title}")
        self.get.clicked.connect(self.toggle)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        words.say(self.bar.setAccessibleName, lambda tr: tr("Progress of the download"))
        self.bar.hide()
        self._arrange()

    def toggle(self) -> None:
        """Begin, or call it off."""
        if self._task is not None:
            self._task.cancel()
            return
        self._unpacked, self._trouble = 0, ""
        self.bar.setRange(0, 0)  # how far pip is, only pip knows
        self._task = Task(self._fetch, (ModelStoreError,), self)
        self._task.progressed.connect(self._grew)
        self._task.done.connect(self._came)
        self._task.failed.connect(self._failed)
        self._say()
        self._task.start()

    def is_there(self, there: bool) -> None:
        """Hide what cannot be fetched twice."""
        self.get.setEnabled(not there or self._task is not None)
        self._there = there
        self._say()

    def _fetch(self, report: Callable[[object], None]) -> object:
        return self._computer.fetch(self._computer.store, self.name, self._entry, progress=report)

    def _grew(self, count: int) -> None:
        self._unpacked += count
        if not self._unpacked:
            return  # pip is still at work
        self.bar.setRange(0, self._entry.size // 1024)  # a bar counts in 32 bits
        self.bar.setValue(self._unpacked // 1024)
        self._say()

    def _came(self, _model: object) -> None:
        self._task = None
        self.is_there(True)
        self.installed.emit(self.name)

    def _failed(self, reason: str) -> None:
        self._task, self._trouble = None, reason
        self._say()

    def _say(self) -> None:
        self.state.setText(self._state_text(self._words.tr))
        self.get.setText(self._button_text(self._words.tr))
        self.bar.setVisible(self._task is not None)

    def _arrange(self) -> None:
        texts = QVBoxLayout()
        texts.setContentsMargins(0, 0, 0, 0)
        texts.setSpacing(GAP // 2)
        texts.addWidget(label(self._words, lambda _: self._entry.title))
        texts.addWidget(self.state)
        texts.addWidget(self.bar)
        inside = QWidget()
        inside.setLayout(texts)
        row = side_by_side(inside, self.get)
        row.setContentsMargins(GAP + 4, GAP + 4, GAP + 4, GAP + 4)
        self.setLayout(row)

    def _button_text(self, tr: Translate) -> str:
        return tr("Cancel") if self._task is not None else tr("Download")

    def _state_text(self, tr: Translate) -> str:
        size = size_text(self._entry.size)
        if self._task is not None and self._unpacked:
            done = size_text(self._unpacked)
            return tr("Unpacking and checking: {done} of {size}").format(done=done, size=size)
        if self._task is not None:
            return tr("Downloading {size}…").format(size=size)
        if self._trouble:
            return f"⚠ {told(tr, self._trouble)}"
        facts = f"{size}  ·  " + tr("License: {license}").format(license=self._entry.license)
        return f"{facts}  ·  " + tr("installed") if self._there else facts
