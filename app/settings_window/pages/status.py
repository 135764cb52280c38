# SPDX-License-Identifier: Apache-2.0
"""Status: what Thock is doing, and the commands of the tray menu, for desktops where the tray has none."""

from __future__ import annotations

import math

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QPushButton

from app.i18n import Translate, told
from app.settings import ModeName
from app.settings_window.ask_panel import AskPanel
from app.settings_window.fields import Choice
from app.settings_window.labels import Place, choice_label
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.texts import engine_text
from app.settings_window.widgets import Card, button, label, side_by_side
from app.settings_window.wording import Make

_MINUTES = (15.0, 60.0, None)


class StatusPage(PageView):
    """Rows of state with what can be done about each, then a question."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.STATUS, tools)
        card = Card()
        self.keyboard = label(self.words, self._keyboard_text)
        self.engine = label(self.words, self._engine_text)
        self.latency = label(self.words, self._latency_text, "hint")
        self.latency.setWordWrap(False)
        self.keys = label(self.words, self._keys_text)
        self.mode = self._mode_box()
        self.pauses = [self._pause_button(minutes) for minutes in _MINUTES]
        self.resume = button(self.words, lambda tr: tr("Resume"))
        self.resume.clicked.connect(tools.companion.resume)
        card.add(side_by_side(self.keyboard))
        card.add(side_by_side(self.engine, self.latency))
        card.add(side_by_side(label(self.words, lambda tr: tr("Mode")), self.mode))
        card.add(side_by_side(self.keys, *self.pauses, self.resume))
        self.copy = button(self.words, lambda tr: tr("Copy"))
        self.words.say(self.copy.setAccessibleName, lambda tr: tr("Copy the last answer"))
        self.copy.clicked.connect(self._copy_reply)
        card.add(side_by_side(label(self.words, lambda tr: tr("Last answer")), self.copy))
        self.add(card)
        self.add_heading(lambda tr: tr("Ask"))
        self.ask = AskPanel(tools.companion, tools.bridge, self.words)
        self.add(self.ask)
        self.finish()
        tools.bridge.companion_changed.connect(self._refresh)
        self._refresh(tools.bridge.view)

    def begin(self) -> None:
        self.ask.question.setFocus()

    def _copy_reply(self) -> None:
        text = self.tools.companion.reply()
        if text:
            QGuiApplication.clipboard().setText(text)

    def _mode_box(self) -> QComboBox:
        box = QComboBox()
        self.words.say(box.setAccessibleName, lambda tr: tr("Mode"))
        for index, mode in enumerate(ModeName):
            box.addItem("")

            def put(text: str, index: int = index) -> None:
                box.setItemText(index, text)

            self.words.say(put, _mode_text(mode))
        box.activated.connect(lambda index: self.tools.companion.set_mode(list(ModeName)[index]))
        self.tools.guard.guard(box)
        return box

    def _pause_button(self, minutes: float | None) -> QPushButton:
        widget = button(self.words, _pause_text(minutes))
        widget.clicked.connect(lambda: self.tools.companion.pause(minutes))
        return widget

    def _refresh(self, view: CompanionView) -> None:
        tr = self.words.tr
        is_here = view.presence is Presence.HERE
        self.keyboard.setText(self._keyboard_text(tr))
        self.engine.setText(self._engine_text(tr))
        self.latency.setText(self._latency_text(tr))
        self.keys.setText(self._keys_text(tr))
        self.latency.setVisible(view.latency_ms is not None)
        if is_here:
            self.mode.setCurrentIndex(list(ModeName).index(ModeName(view.mode)))
        self.mode.setEnabled(is_here)
        self.copy.setEnabled(is_here)
        for pause in self.pauses:
            pause.setVisible(not view.waits_for_person)
            pause.setEnabled(is_here)
        self.resume.setVisible(view.waits_for_person)

    def _keyboard_text(self, tr: Translate) -> str:
        view = self.tools.bridge.view
        if view.presence is Presence.AWAY:
            return tr("Thock does not run.")
        if view.away:
            return told(tr, view.away)
        if view.keyboard:
            return tr("Keyboard: {name}").format(name=told(tr, view.keyboard))
        return tr("No keyboard is connected.")

    def _engine_text(self, tr: Translate) -> str:
        return engine_text(tr, self.tools.bridge.view)

    def _latency_text(self, tr: Translate) -> str:
        latency = self.tools.bridge.view.latency_ms
        if latency is None:
            return ""
        return tr("last answer after {milliseconds:.0f} ms").format(milliseconds=latency)

    def _keys_text(self, tr: Translate) -> str:
        view = self.tools.bridge.view
        if not view.is_paused:
            is_read = view.presence is Presence.HERE and not view.away
            return tr("Keys are read.") if is_read else tr("No key is read.")
        if view.paused_s is None:
            return tr("Paused: no key is read.")
        minutes = max(1, math.ceil(view.paused_s / 60))
        return tr("Paused for {minutes} min: no key is read.").format(minutes=minutes)


def _mode_text(mode: ModeName) -> Make:
    return lambda tr: choice_label(tr, Choice(mode, mode.value))


def _pause_text(minutes: float | None) -> Make:
    if minutes is None:
        return lambda tr: tr("Pause")
    return lambda tr: tr("Pause {minutes} min").format(minutes=round(minutes))
