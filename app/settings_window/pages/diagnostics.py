# SPDX-License-Identifier: Apache-2.0
"""Diagnostics: what was checked on this computer, and how to mend what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QVBoxLayout

from app.config.paths import log_folder
from app.diagnostics.report import Report
from app.doctor.report import CheckStatus, Finding, describe
from app.i18n import Translate, told
from app.settings_window.background import Task
from app.settings_window.folder_row import FolderRow
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.report_dialog import ReportDialog
from app.settings_window.theme import GAP
from app.settings_window.widgets import Card, button, label, side_by_side
from app.settings_window.wording import Make
from engine.texts import Text

_SIGNS = {CheckStatus.OK: "✓", CheckStatus.WARNING: "⚠", CheckStatus.ERROR: "✗"}


class DiagnosticsPage(PageView):
    """The checks run on a thread when the page is seen first, and again on demand."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.DIAGNOSTICS, tools)
        self._task: Task | None = None
        self._trouble = ""
        self._reporting: Task | None = None
        self._report_trouble = ""
        self.findings: Sequence[Finding] = ()
        self._row_words = self.words.branch()
        self.again = button(self.words, lambda tr: tr("Check again"))
        self.again.clicked.connect(self.check)
        self.copy = button(self.words, lambda tr: tr("Copy as text"))
        self.copy.clicked.connect(self._copy)
        self._summary = label(self.words, self._summary_text, "hint")
        self.add(side_by_side(self._summary, self.copy, self.again))
        self._card = Card()
        self._card.hide()
        self.add(self._card)
        self.add_heading(lambda tr: tr("Report"))
        report = Card()
        self.report = button(self.words, lambda tr: tr("Show…"))
        self.words.say(self.report.setAccessibleName, lambda tr: tr("Show the report"))
        self.report.clicked.connect(self.make_report)
        self._report_state = label(self.words, self._report_text)
        report.add(side_by_side(self._report_state, self.report))
        self.logs = FolderRow(_logs_text, log_folder(), tools.computer, self.words)
        report.add(self.logs)
        self.add(report)
        self.dialog: ReportDialog | None = None
        self.finish()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.findings:
            self.check()

    def check(self) -> None:
        """Run all checks."""
        if self._task is not None:
            return
        checks = self.tools.computer.checks
        self._task = Task(lambda _: checks(), (), self)
        self._task.done.connect(self._checked)
        self._task.failed.connect(self._failed)
        self.again.setEnabled(False)
        self._say()
        self._task.start()

    def _checked(self, findings: Sequence[Finding]) -> None:
        self._task, self._trouble, self.findings = None, "", findings
        self._row_words.close()
        self._row_words = self.words.branch()
        self._card.clear()
        for finding in sorted(findings, key=lambda finding: -finding.status):
            self._card.add(self._row(finding))
        self._card.show()
        self.again.setEnabled(True)
        self._say()

    def _failed(self, reason: str) -> None:
        self._task, self._trouble = None, reason
        self.again.setEnabled(True)
        self._say()

    def make_report(self) -> None:
        """Collect the report on a thread, then show it."""
        if self._reporting is not None:
            return
        report = self.tools.computer.report
        self._reporting = Task(lambda _: report(), (), self)
        self._reporting.done.connect(self._show_report)
        self._reporting.failed.connect(self._report_failed)
        self._report_trouble = ""
        self._say_report()
        self._reporting.start()

    def _show_report(self, report: Report) -> None:
        self._reporting = None
        self._say_report()
        self.dialog = ReportDialog(report, self.words, self)
        self.dialog.open()

    def _report_failed(self, reason: str) -> None:
        self._reporting, self._report_trouble = None, reason
        self._say_report()

    def _say_report(self) -> None:
        self._report_state.setText(self._report_text(self.words.tr))
        self.report.setEnabled(self._reporting is None)

    def _report_text(self, tr: Translate) -> str:
        if self._report_trouble:
            return f"⚠ {told(tr, self._report_trouble)}"
        if self._reporting is not None:
            return tr("The report is being made…")
        return tr(
            "For whoever helps you: versions, checks and logs, without anything that you typed."
        )

    def _row(self, finding: Finding) -> QVBoxLayout:
        row = QVBoxLayout()
        row.setSpacing(GAP // 4)
        row.addWidget(label(self._row_words, _head(finding)))
        row.addWidget(label(self._row_words, lambda tr: told(tr, finding.text), "hint"))
        if finding.fix:
            part = "problem" if finding.status is CheckStatus.ERROR else "hint"
            row.addWidget(label(self._row_words, lambda tr: f"→ {told(tr, finding.fix)}", part))
        return row

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(describe(self.findings, self.words.tr))

    def _say(self) -> None:
        self.copy.setEnabled(bool(self.findings))
        self._summary.setText(self._summary_text(self.words.tr))

    def _summary_text(self, tr: Translate) -> str:
        if self._task is not None:
            return tr("Checking…")
        if self._trouble:
            return f"⚠ {told(tr, self._trouble)}"
        wrong = sum(finding.status is not CheckStatus.OK for finding in self.findings)
        if wrong:
            return tr("To look at: {count}").format(count=wrong)
        return tr("Everything is in order.") if self.findings else ""


def _logs_text(tr: Translate) -> str:
    return tr("The log files.")


def _head(finding: Finding) -> Make:
    """A sign and a word for the state, so that neither colour nor shape alone tells it."""

    def make(tr: Translate) -> str:
        subject = tr(finding.subject)
        state = status_text(tr, finding.status)
        line = Text("{place}: {text}", place=subject[:1].upper() + subject[1:], text=state)
        return f"{_SIGNS[finding.status]}  {told(tr, line)}"

    return make


def status_text(tr: Translate, status: CheckStatus) -> str:
    """The state of a check in a word."""
    match status:
        case CheckStatus.OK:
            return tr("in order")
        case CheckStatus.WARNING:
            return tr("could be better")
        case CheckStatus.ERROR:
            return tr("to be mended")
