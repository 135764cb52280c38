# SPDX-License-Identifier: Apache-2.0
"""General: language, colours, start; settings to a file and back."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QMessageBox

from app.config.salvage import MAX_BYTES
from app.i18n import Translate, told
from app.settings_window.interchange import exported, imported
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.widgets import Card, button, label, side_by_side
from engine.texts import system_reason

FILE_NAME = "thock-settings.toml"


class GeneralPage(PageView):
    """`import_from` and `export_to` do the work behind the buttons; their result stands below them."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.GENERAL, tools)
        self.add_form(self.fields())
        self.add_heading(lambda tr: tr("All settings"))
        card = Card()
        self.export_button = button(self.words, lambda tr: tr("Export…"))
        self.export_button.clicked.connect(self._choose_export)
        self.import_button = button(self.words, lambda tr: tr("Import…"))
        self.import_button.clicked.connect(self._choose_import)
        self.reset_button = button(self.words, lambda tr: tr("Reset all"))
        self.reset_button.clicked.connect(self._confirm_reset)
        for make, do in (
            (_export_text, self.export_button),
            (_import_text, self.import_button),
            (_reset_text, self.reset_button),
        ):
            card.add(side_by_side(label(self.words, make), do))
        self.add(card)
        self.result = label(self.words, lambda _: "")
        self.result.hide()
        self.add(self.result)
        self.finish()

    def export_to(self, path: Path) -> None:
        """Write the settings to `path`."""
        tr = self.words.tr
        try:
            path.write_bytes(exported(self.tools.edits.settings))
        except OSError as error:
            self._say(f"⚠ {path}: {told(tr, system_reason(error))}")
        else:
            self._say(tr("Exported to {path}.").format(path=path))

    def import_from(self, path: Path) -> None:
        """Take the settings of the file at `path`; one step of undo takes all of them back."""
        tr = self.words.tr
        try:
            with path.open("rb") as file:
                settings, unused = imported(file.read(MAX_BYTES + 1))
        except OSError as error:
            self._say(f"⚠ {path}: {told(tr, system_reason(error))}")
            return
        problem = self.tools.edits.replace(settings)
        lines = [f"⚠ {told(tr, problem.text)}" if problem else tr("Imported.")]
        self._say("\n".join([*lines, *(f"⚠ {told(tr, problem.told)}" for problem in unused)]))

    def reset_everything(self) -> None:
        """All settings back to their defaults, as one step."""
        problem = self.tools.edits.replace(type(self.tools.edits.settings)())
        tr = self.words.tr
        self._say(f"⚠ {told(tr, problem.text)}" if problem else tr("All settings are reset."))

    def _choose_export(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, self.words.tr("Export settings"), str(Path.home() / FILE_NAME), "*.toml"
        )
        if path:
            self.export_to(Path(path))

    def _choose_import(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, self.words.tr("Import settings"), str(Path.home()), "*.toml"
        )
        if path:
            self.import_from(Path(path))

    def _confirm_reset(self) -> None:
        tr = self.words.tr
        question = QMessageBox(
            QMessageBox.Icon.Question,
            tr("Reset all"),
            tr("Set everything back to the defaults? Undo takes it back."),
            QMessageBox.StandardButton.Cancel,
            self,
        )
        reset = question.addButton(tr("Reset all"), QMessageBox.ButtonRole.AcceptRole)
        question.exec()
        if question.clickedButton() is reset:
            self.reset_everything()

    def _say(self, text: str) -> None:
        self.result.setText(text)
        self.result.show()


def _export_text(tr: Translate) -> str:
    return tr("Write all settings to a file, to keep or to take to another computer.")


def _import_text(tr: Translate) -> str:
    return tr("Take settings from such a file.")


def _reset_text(tr: Translate) -> str:
    return tr("Set everything back to the defaults.")
