# SPDX-License-Identifier: Apache-2.0
"""What each of the first steps shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import Translate, told
from app.settings_window.ask_panel import AskPanel
from app.settings_window.downloads import DownloadRow
from app.settings_window.first_steps import Step
from app.settings_window.form import SettingRow
from app.settings_window.pages.base import PageTools
from app.settings_window.pages.engine import use_new_model
from app.settings_window.ports import CompanionView
from app.settings_window.preview_pane import PreviewPane
from app.settings_window.theme import ROW_GAP
from app.settings_window.widgets import Card, button, heading, label, side_by_side
from app.settings_window.wording import Make, Wording
from firmware_bridge.discovery.candidates import HID, Candidate

UDEV_COMMAND = "thock doctor --install-udev"


class StepView(QWidget):
    """A title, a text, and what the step needs below them."""

    def __init__(self, tools: PageTools, words: Wording, title: Make, text: Make) -> None:
        super().__init__()
        self.tools = tools
        self.words = words
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(ROW_GAP)
        self.column.addWidget(heading(words, title, 1.5))
        self.column.addWidget(label(words, text))

    def show_keyboards(self, locked: Sequence[Candidate]) -> None:
        """The keyboards that may not be opened, as they are now. Most steps do not care."""


class WelcomeStep(StepView):
    """What Thock is, what it does with keys, and in which language to go on."""

    def __init__(self, tools: PageTools, words: Wording) -> None:
        super().__init__(
            tools,
            words,
            lambda tr: tr("Welcome to Thock"),
            lambda tr: tr(
                "Thock turns your keyboard into a companion: a small language model on this computer reads "
                "what you type on it, and answers on its display and lights."
            ),
        )
        facts = Card()
        for make in (_only_keyboard, _only_memory, _only_here):
            texts = QVBoxLayout()
            texts.addWidget(label(words, make))
            facts.add(texts)
        self.column.addWidget(facts)
        card = Card()
        field = tools.edits.field(("language",))
        self.language = SettingRow(field, tools.edits, words, tools.guard)
        card.add(self.language)
        self.column.addWidget(card)
        self.column.addStretch(1)


class PermissionStep(StepView):
    """Linux: the udev rule."""

    def __init__(self, tools: PageTools, words: Wording) -> None:
        super().__init__(
            tools,
            words,
            lambda tr: tr("Let Thock open your keyboard"),
            lambda tr: tr(
                "Linux lets only programs with permission talk to this keyboard. One rule, made for exactly "
                "this keyboard's own channel, gives it to the person at this computer."
            ),
        )
        self._locked: tuple[Candidate, ...] = ()
        self.names = label(words, self._names_text)
        self.command = label(words, self._command_text)
        self.command.setTextInteractionFlags(
            self.command.textInteractionFlags().TextSelectableByMouse
            | self.command.textInteractionFlags().TextSelectableByKeyboard
        )
        self.copy = button(words, lambda tr: tr("Copy the command"))
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(UDEV_COMMAND))
        card = Card()
        texts = QVBoxLayout()
        texts.addWidget(self.names)
        card.add(texts)
        card.add(side_by_side(self.command, self.copy))
        self.column.addWidget(card)
        self.column.addWidget(label(words, _rule_text, "hint"))
        self.column.addStretch(1)

    def show_keyboards(self, locked: Sequence[Candidate]) -> None:
        self._locked = tuple(locked)
        self.names.setText(self._names_text(self.words.tr))
        self.command.setText(self._command_text(self.words.tr))

    def _names_text(self, tr: Translate) -> str:
        if not self._locked:
            return "✓ " + tr("Every keyboard may be opened.")
        names = ", ".join(c.identity.product or c.path for c in self._locked)
        return "⚠ " + tr("May not be opened: {names}").format(names=names)

    def _command_text(self, tr: Translate) -> str:
        if self._locked and all(c.identity.transport != HID for c in self._locked):
            return tr("Join the group that owns the port (dialout or uucp), then log in again.")
        return UDEV_COMMAND


class KeyboardStep(StepView):
    """Plug one in, or take the virtual one."""

    def __init__(self, tools: PageTools, words: Wording) -> None:
        super().__init__(
            tools,
            words,
            lambda tr: tr("Your keyboard"),
            lambda tr: tr(
                "Plug in a keyboard with the Thock module in its firmware; it is found by itself. Without "
                "one, the virtual keyboard shows everything that Thock can do."
            ),
        )
        self.state = label(words, self._state_text)
        self.virtual = button(words, lambda tr: tr("Use the virtual keyboard"))
        self.virtual.clicked.connect(self._take_virtual)
        card = Card()
        card.add(side_by_side(self.state, self.virtual))
        self.column.addWidget(card)
        self.column.addStretch(1)
        tools.bridge.companion_changed.connect(self._companion_changed)

    def _take_virtual(self) -> None:
        self.tools.edits.change(("keyboard",), "virtual")
        self._companion_changed(self.tools.bridge.view)

    def _companion_changed(self, _view: CompanionView) -> None:
        self.state.setText(self._state_text(self.words.tr))

    def _state_text(self, tr: Translate) -> str:
        name = self.tools.bridge.view.keyboard
        if name:
            return "✓ " + tr("Connected: {name}").format(name=told(tr, name))
        if self.tools.edits.settings.keyboard == "virtual":
            return "✓ " + tr("The virtual keyboard is chosen.")
        return tr("Waiting for a keyboard…")


class ModelStep(StepView):
    """The default model, one click away."""

    def __init__(self, tools: PageTools, words: Wording) -> None:
        super().__init__(
            tools,
            words,
            lambda tr: tr("A model"),
            lambda tr: tr(
                "The model answers on this computer. It is fetched once, checked against its known "
                "fingerprint, and works without a network from then on."
            ),
        )
        card = Card()
        self.rows: list[DownloadRow] = []
        for name, entry in tools.computer.catalogue().items():
            row = DownloadRow(name, entry, tools.computer, words)
            row.installed.connect(self._came)
            row.is_there(any(m.name == name for m in tools.computer.store.list()))
            self.rows.append(row)
            card.add(row)
        self.column.addWidget(card)
        self.column.addWidget(
            label(
                words,
                lambda tr: tr("A GGUF file of your own can be added later, under Model & engine."),
                "hint",
            )
        )
        self.column.addStretch(1)

    def _came(self, name: str) -> None:
        use_new_model(self.tools, name)


class TrialStep(StepView):
    """One sentence, and what the keyboard shows for it."""

    def __init__(self, tools: PageTools, words: Wording) -> None:
        super().__init__(
            tools,
            words,
            lambda tr: tr("Try it"),
            lambda tr: tr(
                "Ask something short. The answer comes here and on the keyboard's display."
            ),
        )
        self.ask = AskPanel(tools.companion, tools.bridge, words)
        words.say(self.ask.question.setText, lambda tr: tr("What is a keyboard?"))
        self.column.addWidget(self.ask)
        self.column.addWidget(PreviewPane(tools.bridge, words, with_lights=False))
        self.column.addStretch(1)


def _only_keyboard(tr: Translate) -> str:
    return tr("It reads the keys of this one keyboard, and of no other.")


def _only_memory(tr: Translate) -> str:
    return tr("What you type stays in memory and is forgotten when you rest. Keeping it is off.")


def _only_here(tr: Translate) -> str:
    return tr("Nothing leaves this computer.")


def _rule_text(tr: Translate) -> str:
    return tr("Run this in a terminal. It shows the rule and asks before it installs it.")


STEP_VIEWS: Mapping[Step, type] = {
    Step.WELCOME: WelcomeStep,
    Step.PERMISSION: PermissionStep,
    Step.KEYBOARD: KeyboardStep,
    Step.MODEL: ModelStep,
    Step.TEST: TrialStep,
}
