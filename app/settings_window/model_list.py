# SPDX-License-Identifier: Apache-2.0
"""The installed models: which one is used, what each needs of the memory, how fast it is here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QButtonGroup, QLabel, QVBoxLayout, QWidget

from app.i18n import Translate, told
from app.models.store import InstalledModel
from app.settings_window.background import Task
from app.settings_window.computer import Computer
from app.settings_window.edits import Edits
from app.settings_window.memory_plan import Fit, MemoryPlan
from app.settings_window.speed_test import Speed, SpeedTestError
from app.settings_window.texts import size_text
from app.settings_window.theme import GAP
from app.settings_window.widgets import Card, Option, button, label, side_by_side
from app.settings_window.wording import Wording
from engine.errors import EngineError

MODEL = ("model",)
CONTEXT = ("max_context",)


class ModelRow(QWidget):
    """One model. Its memory plan is read on a thread; its speed is measured when asked for."""

    def __init__(
        self,
        model: InstalledModel,
        computer: Computer,
        edits: Edits,
        words: Wording,
        remove: Callable[[InstalledModel], None],
    ) -> None:
        super().__init__()
        self.model = model
        self._computer = computer
        self._edits = edits
        self._words = words
        self._plan: MemoryPlan | None = None
        self._speed: Speed | None = None
        self._trouble = ""
        self._planning: Task | None = None
        self._testing: Task | None = None
        self.choice = Option()
        words.say(self.choice.setText, lambda _: model.name)
        words.say(self.choice.setAccessibleName, lambda _: model.name)
        self.facts = label(words, self._facts_text, "hint")
        self.test = button(words, self._test_text)
        words.say(
            self.test.setAccessibleName,
            lambda tr: f"{self._test_text(tr)}: {model.name}",
        )
        self.test.clicked.connect(self.toggle_test)
        self.remove = button(words, lambda tr: tr("Remove"))
        words.say(
            self.remove.setAccessibleName, lambda tr: tr("Remove {name}").format(name=model.name)
        )
        self.remove.clicked.connect(lambda: remove(model))
        self._arrange()
        if model.broken:
            self.choice.setEnabled(False)
            self.test.setEnabled(False)
        else:
            self.plan()

    def plan(self) -> None:
        """Read the header again, for the context length of now."""
        context = self._edits.settings.max_context
        computer, path = self._computer, self.model.target
        self._planning = Task(lambda _: computer.plan(path, context), (EngineError,), self)
        self._planning.done.connect(self._planned)
        self._planning.failed.connect(self._failed)
        self._planning.start()

    def toggle_test(self) -> None:
        """Measure the speed, or call the measuring off."""
        if self._testing is not None:
            self._testing.cancel()
            return
        context = self._edits.settings.max_context
        computer, path = self._computer, self.model.target

        def work(report: Callable[[object], None]) -> Speed:
            return computer.speed(path, context, lambda: report(None))

        self._testing = Task(work, (SpeedTestError,), self)
        self._testing.done.connect(self._tested)
        self._testing.failed.connect(self._failed)
        self._say()
        self._testing.start()

    def refresh(self) -> None:
        """Say anew what depends on other settings."""
        self._say()

    def _planned(self, plan: MemoryPlan) -> None:
        self._plan = plan
        self._say()

    def _tested(self, speed: Speed) -> None:
        self._testing, self._speed, self._trouble = None, speed, ""
        self._say()

    def _failed(self, reason: str) -> None:
        self._testing, self._trouble = None, reason
        self._say()

    def _say(self) -> None:
        self.facts.setText(self._facts_text(self._words.tr))
        self.choice.setAccessibleDescription(self.facts.text())
        self.test.setText(self._test_text(self._words.tr))

    def _arrange(self) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(GAP // 4)
        texts.addWidget(self.choice)
        self.facts.setContentsMargins(Option.indent(), 0, 0, 0)
        texts.addWidget(self.facts)
        inside = QWidget()
        inside.setLayout(texts)
        texts.setContentsMargins(0, 0, 0, 0)
        row = side_by_side(inside, self.test, self.remove)
        row.setContentsMargins(GAP + 4, GAP + 4, GAP + 4, GAP + 4)
        self.setLayout(row)

    def _test_text(self, tr: Translate) -> str:
        return tr("Cancel") if self._testing is not None else tr("Test speed")

    def _facts_text(self, tr: Translate) -> str:
        if self.model.broken:
            return "⚠ " + tr("The file that this entry leads to is gone.")
        lines = [tr("On disk: {size}").format(size=size_text(self.model.size))]
        if self._plan is not None:
            lines.append(plan_text(tr, self._plan))
            seen = self._edits.settings.suggest.context_tokens
            if seen > self._plan.context:
                lines.append(window_text(tr, seen, self._plan.context))
        if self._testing is not None:
            lines.append(tr("Loads the model and asks it one question…"))
        elif self._speed is not None:
            lines.append(speed_text(tr, self._speed))
        if self._trouble:
            lines.append(f"⚠ {told(tr, self._trouble)}")
        return "\n".join(lines)


class ModelList(Card):
    """Every installed model. `changed` tells that one was removed."""

    changed = Signal()

    def __init__(self, computer: Computer, edits: Edits, words: Wording) -> None:
        super().__init__()
        self._computer = computer
        self._edits = edits
        self._words = words
        self._row_words = words.branch()
        self._group = QButtonGroup(self)
        self._context = edits.settings.max_context
        self._seen = edits.settings.suggest.context_tokens
        self.rows: list[ModelRow] = []
        edits.listen(self._edited)
        self.fill()

    def fill(self) -> None:
        """Read the store again."""
        self._row_words.close()
        self._row_words = self._words.branch()
        for row in self.rows:
            self._group.removeButton(row.choice)
        self.clear()
        self.rows = []
        for model in self._computer.store.list():
            row = ModelRow(model, self._computer, self._edits, self._row_words, self._remove)
            row.choice.toggled.connect(lambda on, row=row: self._choose(row, on))
            self._group.addButton(row.choice)
            self.rows.append(row)
            self.add(row)
        if not self.rows:
            empty: QLabel = label(
                self._row_words, lambda tr: tr("No model is installed yet: add one below.")
            )
            empty.setContentsMargins(GAP + 4, GAP + 4, GAP + 4, GAP + 4)
            self.add(empty)
        self._show_chosen()

    def _choose(self, row: ModelRow, is_on: bool) -> None:
        if is_on:
            self._edits.change(MODEL, Path(row.model.name))

    def _remove(self, model: InstalledModel) -> None:
        self._computer.store.remove(model.name)
        self.fill()
        self.changed.emit()

    def _edited(self) -> None:
        context = self._edits.settings.max_context
        seen = self._edits.settings.suggest.context_tokens
        if seen != self._seen:
            self._seen = seen
            for row in self.rows:
                row.refresh()
        if context != self._context:
            self._context = context
            for row in self.rows:
                if not row.model.broken:
                    row.plan()
        self._show_chosen()

    def _show_chosen(self) -> None:
        """Without a choice of the person's, the first one is used."""
        chosen = self._edits.settings.model
        for index, row in enumerate(self.rows):
            is_first = chosen is None and index == 0
            if is_first or str(chosen) == row.model.name or chosen == row.model.target:
                with QSignalBlocker(row.choice):
                    row.choice.setChecked(True)


def plan_text(tr: Translate, plan: MemoryPlan) -> str:
    """What the model needs against what there is."""
    needs = tr(
        "Memory: {needed} for {millions} million weights and {context} tokens; {free} of {total} are free."
    ).format(
        needed=size_text(plan.needed),
        millions=round(plan.parameters / 1e6),
        context=plan.context,
        free=size_text(plan.free),
        total=size_text(plan.total),
    )
    match plan.fit:
        case Fit.FITS:
            return needs
        case Fit.TIGHT:
            return f"{needs} " + tr("Close other programs first.")
        case Fit.TOO_LARGE:
            return f"⚠ {needs} " + tr("It does not fit this computer.")


def window_text(tr: Translate, seen: int, context: int) -> str:
    """What suggestions lack where the context is shorter than what they shall see."""
    return "⚠ " + tr(
        "Suggestions cannot see {seen} tokens with it: its context holds {context}."
    ).format(seen=seen, context=context)


def speed_text(tr: Translate, speed: Speed) -> str:
    """The figures of one measurement."""
    return tr(
        "Measured: loaded in {load:.1f} s, first word after {first:.0f} ms, then {rate:.0f} tokens/s."
    ).format(load=speed.load_s, first=speed.first_token_ms, rate=speed.tokens_per_s)
