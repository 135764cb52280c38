# SPDX-License-Identifier: Apache-2.0
"""The first steps: only those that are needed, and each can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import Translate
from app.settings_window.assistant_steps import STEP_VIEWS, StepView
from app.settings_window.background import Task
from app.settings_window.computer import ScanError
from app.settings_window.first_steps import Situation, Step, locked_among
from app.settings_window.pages.base import PageTools
from app.settings_window.theme import GAP, PAGE_MARGIN
from app.settings_window.widgets import button, line
from app.settings_window.wording import Wording
from firmware_bridge.discovery.candidates import Candidate

LOOK_MS = 2000  # between two looks at what is connected


class Assistant(QDialog):
    """Looks at the computer again and again, so that what has been mended meanwhile is skipped."""

    def __init__(self, tools: PageTools, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tools = tools
        self._words: Wording = tools.words.branch()
        self._locked: tuple[Candidate, ...] = ()
        self._views: dict[Step, StepView] = {}
        self._scan: Task | None = None
        self.step = Step.WELCOME
        self._stack = QStackedWidget()
        self._place = QLabel()
        self._place.setProperty("part", "hint")
        self.back = button(self._words, lambda tr: tr("Back"))
        self.back.clicked.connect(self.go_back)
        self.next = button(self._words, self._next_text)
        self.next.setDefault(True)
        self.next.clicked.connect(self.go_on)
        self._words.say(self.setWindowTitle, lambda tr: tr("First steps"))
        self._words.say(lambda _: self._show_place(), lambda _: "")
        self._arrange()
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        self.finished.connect(self._finished)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.look)
        self._timer.start(LOOK_MS)
        self._go_to(Step.WELCOME)
        self.look()

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is needed by now; the step that is seen stays among them."""
        view = self._tools.bridge.view
        now = Situation(
            locked=self._locked,
            is_connected=bool(view.keyboard),
            has_model=any(not model.broken for model in self._tools.computer.store.list()),
        ).steps
        return tuple(step for step in Step if step in now or step is self.step)

    @property
    def view(self) -> StepView:
        """The step that is seen."""
        return self._views[self.step]

    def look(self) -> None:
        """List the keyboards, on a thread."""
        if self._scan is None:
            scan = self._tools.computer.scan
            self._scan = Task(lambda _: scan(), (ScanError,), self)
            self._scan.done.connect(self._looked)
            self._scan.failed.connect(self._look_failed)
            self._scan.start()

    def go_on(self) -> None:
        """The next step that is needed; the end after the last."""
        steps = self.steps
        at = steps.index(self.step)
        if at + 1 == len(steps):
            self.accept()
        else:
            self._go_to(steps[at + 1])
            self.look()

    def go_back(self) -> None:
        steps = self.steps
        self._go_to(steps[max(steps.index(self.step) - 1, 0)])

    def _go_to(self, step: Step) -> None:
        self.step = step
        if step not in self._views:
            self._views[step] = STEP_VIEWS[step](self._tools, self._words)
            self._stack.addWidget(self._views[step])
        self._stack.setCurrentWidget(self._views[step])
        self._views[step].show_keyboards(self._locked)
        self._show_place()
        self.next.setFocus()

    def _looked(self, found: Sequence[Candidate]) -> None:
        self._scan = None
        self._locked = locked_among(found)
        self.view.show_keyboards(self._locked)
        self._show_place()

    def _look_failed(self, _reason: str) -> None:
        self._scan = None  # the keyboard page says why

    def _finished(self) -> None:
        self._timer.stop()
        self._tools.companion.stop_asking()
        self._words.close()

    def _show_place(self) -> None:
        steps = self.steps
        tr = self._words.tr
        at = steps.index(self.step)
        self._place.setText(tr("Step {at} of {all}").format(at=at + 1, all=len(steps)))
        self.back.setEnabled(at > 0)
        self.next.setText(self._next_text(tr))
        self.next.setAccessibleName(self.next.text())

    def _next_text(self, tr: Translate) -> str:
        return tr("Done") if self.steps[-1] is self.step else tr("Next")

    def _arrange(self) -> None:
        below = QHBoxLayout()
        below.setSpacing(GAP)
        below.addWidget(self._place, 1)
        below.addWidget(self.back)
        below.addWidget(self.next)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(PAGE_MARGIN, PAGE_MARGIN, PAGE_MARGIN, PAGE_MARGIN - GAP)
        layout.setSpacing(GAP * 2)
        layout.addWidget(self._stack, 1)
        layout.addWidget(line())
        layout.addLayout(below)
        self.setMinimumWidth(560)  # the height follows what the steps need
        self.resize(640, 540)
