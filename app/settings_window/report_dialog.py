# SPDX-License-Identifier: Apache-2.0
"""The report for whoever helps: shown in full, and written only if the person wants it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit, QVBoxLayout, QWidget

from app.diagnostics.report import Report, default_name, preview, write
from app.i18n import told
from app.settings_window.theme import GAP, PAGE_MARGIN
from app.settings_window.widgets import button, label, side_by_side
from app.settings_window.wording import Wording
from engine.texts import system_reason


class ReportDialog(QDialog):
    """`write_to` does the work behind the button; its result stands beside it."""

    def __init__(self, report: Report, words: Wording, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self._words = words.branch()
        self._words.say(self.setWindowTitle, lambda tr: tr("Report"))
        self.text = QPlainTextEdit(preview(report))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._words.say(self.text.setAccessibleName, lambda tr: tr("Content of the report"))
        intro = label(
            self._words,
            lambda tr: tr(
                "This is all that the report holds: no key, nothing that you typed or read, no serial number. "
                "Nothing is sent; you give the file to whom you like."
            ),
        )
        self.outcome = label(self._words, lambda _: "", "hint")
        self.save = button(self._words, lambda tr: tr("Save…"))
        self.save.clicked.connect(self._choose)
        self.shut = button(self._words, lambda tr: tr("Close"))
        self.shut.clicked.connect(self.accept)
        self.finished.connect(lambda _: self._words.close())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(PAGE_MARGIN, PAGE_MARGIN, PAGE_MARGIN, PAGE_MARGIN - GAP)
        layout.setSpacing(GAP * 2)
        layout.addWidget(intro)
        layout.addWidget(self.text, 1)
        layout.addLayout(side_by_side(self.outcome, self.save, self.shut))
        self.resize(720, 560)

    def write_to(self, path: Path) -> None:
        """Write the zip."""
        try:
            write(self._report, path)
        except OSError as error:
            self.outcome.setText(f"⚠ {path}: {told(self._words.tr, system_reason(error))}")
        else:
            self.outcome.setText(self._words.tr("Written to {path}.").format(path=path))

    def _choose(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, self._words.tr("Save the report"), str(Path.home() / default_name()), "*.zip"
        )
        if path:
            self.write_to(Path(path))
