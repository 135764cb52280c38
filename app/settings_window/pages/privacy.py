# SPDX-License-Identifier: Apache-2.0
"""Privacy: what is read, kept and sent, in plain words, and the two buttons that stop it."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout

from app.i18n import Translate
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.theme import GAP
from app.settings_window.widgets import Card, button, label, side_by_side


class PrivacyPage(PageView):
    """Facts first, then pause and forget, then the settings."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.PRIVACY, tools)
        facts = QVBoxLayout()
        facts.setSpacing(GAP)
        for make in (_what_is_read, _what_is_kept, _what_is_sent, _what_is_logged):
            facts.addWidget(label(self.words, make))
        card = Card()
        card.add(facts)
        self._state = label(self.words, self._state_text)
        self.pause = button(self.words, self._pause_text)
        self.pause.clicked.connect(self._pause_or_resume)
        card.add(side_by_side(self._state, self.pause))
        self.forget = button(self.words, lambda tr: tr("Forget now"))
        self.forget.clicked.connect(tools.companion.forget)
        wipe = label(
            self.words,
            lambda tr: tr("Wipe everything that was typed and answered, here and in the model."),
        )
        card.add(side_by_side(wipe, self.forget))
        self.add(card)
        self.add_form(self.fields())
        self.finish()
        tools.bridge.companion_changed.connect(self._refresh)
        self._refresh(tools.bridge.view)

    def _pause_or_resume(self) -> None:
        if self.tools.bridge.view.is_paused:
            self.tools.companion.resume()
        else:
            self.tools.companion.pause()

    def _refresh(self, view: CompanionView) -> None:
        is_here = view.presence is Presence.HERE
        self.pause.setEnabled(is_here)
        self.forget.setEnabled(is_here)
        self._state.setText(self._state_text(self.words.tr))
        self.pause.setText(self._pause_text(self.words.tr))
        self.pause.setAccessibleName(self.pause.text())

    def _state_text(self, tr: Translate) -> str:
        view = self.tools.bridge.view
        if view.presence is Presence.AWAY:
            return tr("Thock does not run, so no key is read.")
        if view.is_paused:
            return tr("Paused: no key is read.")
        return tr("Keys of the Thock keyboard are being read.")

    def _pause_text(self, tr: Translate) -> str:
        return tr("Resume") if self.tools.bridge.view.is_paused else tr("Pause")


def _what_is_read(tr: Translate) -> str:
    return tr(
        "Read: the keys of your Thock keyboard, which sends them itself. Thock sets no hook in the operating "
        "system and sees no other keyboard."
    )


def _what_is_kept(tr: Translate) -> str:
    return tr(
        "Kept: the end of what you typed, in memory only, until it is wiped. Nothing of it goes to the disk "
        "unless you switch on keeping it."
    )


def _what_is_sent(tr: Translate) -> str:
    return tr("Sent: nothing. The model runs on this computer, and Thock opens no network port.")


def _what_is_logged(tr: Translate) -> str:
    return tr("Logged: states and errors. Keys, questions and answers never are.")
