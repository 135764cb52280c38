# SPDX-License-Identifier: Apache-2.0
"""Model & engine: which models there are, which one is used, and whether it is in memory."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog

from app.i18n import Translate, told
from app.models.errors import ModelStoreError
from app.models.store import InstalledModel
from app.settings_window.background import Task
from app.settings_window.downloads import DownloadRow
from app.settings_window.labels import Place
from app.settings_window.model_list import MODEL, ModelList
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.texts import engine_text
from app.settings_window.widgets import Card, button, heading, label, side_by_side
from engine.errors import EngineError

# States of the engine in which a model is in memory, or on its way there.
_LOADED = ("ready", "loading", "starting", "restarting")


class EnginePage(PageView):
    """Models by hand, the other settings generated."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.ENGINE, tools)
        self._adding: Task | None = None
        self._trouble = ""
        self._add_state()
        self.add_heading(lambda tr: tr("Installed models"))
        self.models = ModelList(tools.computer, tools.edits, self.words)
        self.models.changed.connect(self._mark_installed)
        self.add(self.models)
        self.result = label(self.words, self._result_text, "problem")
        self.add_file = button(self.words, lambda tr: tr("Add a file…"))
        self.add_file.clicked.connect(self._choose_file)
        self.add_folder = button(self.words, lambda tr: tr("Add a folder…"))
        self.add_folder.clicked.connect(self._choose_folder)
        self.add(side_by_side(self.result, self.add_file, self.add_folder))
        self.add_heading(lambda tr: tr("To download"))
        self.downloads: dict[str, DownloadRow] = {}
        card = Card()
        for name, entry in tools.computer.catalogue().items():
            row = DownloadRow(name, entry, tools.computer, self.words)
            row.installed.connect(self._model_came)
            self.downloads[name] = row
            card.add(row)
        self.add(card)
        self.add_heading(lambda tr: tr("Engine"))
        self.add_form(self.fields(MODEL))
        self.finish()
        self._mark_installed()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.models.fill()  # `thock model add` may have been at work
        self._mark_installed()

    def add_path(self, path: Path) -> None:
        """Link a model of the person's into the store, after a look at its header."""
        store = self.tools.computer.store

        def work(_report: object) -> InstalledModel:
            model = store.add_path(path)
            try:
                self.tools.computer.plan(model.target, self.tools.edits.settings.max_context)
            except EngineError:
                store.remove(model.name)
                raise
            return model

        self._adding = Task(work, (ModelStoreError, EngineError), self)
        self._adding.done.connect(lambda model: self._model_came(model.name))
        self._adding.failed.connect(self._add_failed)
        self._adding.start()

    def _add_state(self) -> None:
        tools = self.tools
        self.state = heading(self.words, self._state_text, 1.0)
        self.toggle = button(self.words, self._toggle_text)
        self.toggle.clicked.connect(self._load_or_unload)
        card = Card()
        card.add(side_by_side(self.state, self.toggle))
        self.add(card)
        tools.bridge.companion_changed.connect(self._companion_changed)
        self._companion_changed(tools.bridge.view)

    def _companion_changed(self, view: CompanionView) -> None:
        tr = self.words.tr
        self.state.setText(self._state_text(tr))
        self.toggle.setText(self._toggle_text(tr))
        self.toggle.setAccessibleName(self.toggle.text())
        self.toggle.setEnabled(view.presence is Presence.HERE)

    def _load_or_unload(self) -> None:
        if self.tools.bridge.view.engine in _LOADED:
            self.tools.companion.unload_model()
        else:
            self.tools.companion.load_model()

    def _model_came(self, name: str) -> None:
        self._add_failed("")
        self.models.fill()
        self._mark_installed()
        use_new_model(self.tools, name)

    def _mark_installed(self) -> None:
        names = {model.name for model in self.tools.computer.store.list()}
        for name, row in self.downloads.items():
            row.is_there(name in names)

    def _add_failed(self, reason: str) -> None:
        self._trouble = reason
        self.result.setText(self._result_text(self.words.tr))

    def _choose_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, self.words.tr("Add a model"), str(Path.home()), "*.gguf"
        )
        if path:
            self.add_path(Path(path))

    def _choose_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(
            self, self.words.tr("Add a model"), str(Path.home())
        )
        if path:
            self.add_path(Path(path))

    def _result_text(self, tr: Translate) -> str:
        return f"⚠ {told(tr, self._trouble)}" if self._trouble else ""

    def _toggle_text(self, tr: Translate) -> str:
        is_loaded = self.tools.bridge.view.engine in _LOADED
        return tr("Unload model") if is_loaded else tr("Load model")

    def _state_text(self, tr: Translate) -> str:
        return engine_text(tr, self.tools.bridge.view)


def use_new_model(tools: PageTools, name: str) -> None:
    """A model was installed: choose it if none was chosen, and load what is chosen if nothing is loaded."""
    if tools.edits.settings.model is None:
        tools.edits.change(MODEL, Path(name))
    if tools.bridge.view.engine not in _LOADED:
        tools.companion.load_model()
