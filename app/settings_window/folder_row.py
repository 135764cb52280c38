# SPDX-License-Identifier: Apache-2.0
"""A row that opens a folder in the file manager."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import told
from app.platform.desktop import NoProgramError
from app.settings_window.computer import Computer
from app.settings_window.theme import ROW_GAP
from app.settings_window.widgets import button, label, side_by_side
from app.settings_window.wording import Make, Wording
from engine.texts import system_reason


class FolderRow(QWidget):
    """`trouble` says where the folder is, if it could not be opened."""

    def __init__(self, make: Make, folder: Path, computer: Computer, words: Wording) -> None:
        super().__init__()
        self._folder = folder
        self._computer = computer
        self._words = words
        self.show_folder = button(words, lambda tr: tr("Open the folder"))
        words.say(
            self.show_folder.setAccessibleName, lambda tr: f"{tr('Open the folder')}: {make(tr)}"
        )
        self.show_folder.clicked.connect(self._open)
        self.trouble = label(words, lambda _: "", "problem")
        self.trouble.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(ROW_GAP, ROW_GAP, ROW_GAP, ROW_GAP)
        layout.addLayout(side_by_side(label(words, make), self.show_folder))
        layout.addWidget(self.trouble)

    def _open(self) -> None:
        try:
            self._computer.open_folder(self._folder)
        except (NoProgramError, OSError) as error:
            self.trouble.setText(f"⚠ {told(self._words.tr, _reason(error))}")
            self.trouble.show()
        else:
            self.trouble.hide()


def _reason(error: NoProgramError | OSError) -> str:
    return system_reason(error) if isinstance(error, OSError) else str(error)
