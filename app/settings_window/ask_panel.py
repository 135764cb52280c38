# SPDX-License-Identifier: Apache-2.0
"""A question to the model, and its answer as it grows. Both live in this widget only."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QClipboard, QGuiApplication, QHideEvent
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app.companion.messages import MAX_ASK_CHARS
from app.i18n import Translate, told
from app.platform.text_sources import TextSource, question_about, shortened
from app.settings_window.bridge import Bridge
from app.settings_window.ports import Answer, CompanionPort, CompanionView, Presence
from app.settings_window.texts import engine_text
from app.settings_window.widgets import Card, button, label, side_by_side
from app.settings_window.wording import Wording
from engine.texts import Text

_CLIPBOARDS = {
    TextSource.CLIPBOARD: QClipboard.Mode.Clipboard,
    TextSource.SELECTION: QClipboard.Mode.Selection,
}
_NO_ANSWER = ("stopped", "failed")  # states of the engine in which nobody answers


class AskPanel(QWidget):
    """While an answer is under way, the button stops it."""

    def __init__(self, companion: CompanionPort, bridge: Bridge, words: Wording) -> None:
        super().__init__()
        self._companion = companion
        self._bridge = bridge
        self._words = words
        self._answer = Answer("")
        self._is_waiting = False
        self.question = QLineEdit()
        self.question.setMaxLength(MAX_ASK_CHARS)
        words.say(self.question.setAccessibleName, lambda tr: tr("Question"))
        words.say(self.question.setPlaceholderText, lambda tr: tr("Ask something"))
        self.question.returnPressed.connect(self.ask)
        self.send = button(words, self._send_text)
        self.send.clicked.connect(self._send_or_stop)
        self.answer = label(words, self._answer_text)
        self.answer.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        words.say(self.answer.setAccessibleName, lambda tr: tr("Answer"))
        self.copy = button(words, lambda tr: tr("Copy"))
        words.say(self.copy.setAccessibleName, lambda tr: tr("Copy the answer"))
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._answer.text))
        self.sources = {
            TextSource.CLIPBOARD: button(words, lambda tr: tr("About the clipboard")),
            TextSource.SELECTION: button(words, lambda tr: tr("About the selection")),
        }
        for source, ask_about in self.sources.items():
            ask_about.clicked.connect(lambda _=False, source=source: self.ask_about(source))
        clipboard = QGuiApplication.clipboard()
        self.sources[TextSource.SELECTION].setVisible(clipboard.supportsSelection())
        card = Card()
        card.add(side_by_side(self.question, self.send))
        card.add(side_by_side(*self.sources.values(), stretch_first=False))
        card.add(side_by_side(self.answer, self.copy))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(card)
        bridge.answer_came.connect(self._came)
        bridge.companion_changed.connect(self._companion_changed)
        self._say()

    def ask(self) -> None:
        """Send the question."""
        self._ask(self.question.text().strip())

    def ask_about(self, source: TextSource) -> None:
        """Send the text that is there now, with the question if there is one."""
        text = QGuiApplication.clipboard().text(_CLIPBOARDS[source]).strip()
        if text:
            about = question_about(shortened(text), self.question.text())
            self._ask(about[:MAX_ASK_CHARS])
            return
        trouble = Text("the {source} holds no text", source=Text(source.value))
        self._is_waiting, self._answer = False, Answer("", trouble=trouble)
        self._say()

    def _ask(self, text: str) -> None:
        if not text or not self._may_ask:
            return
        self._is_waiting, self._answer = True, Answer("")
        self._say()
        self._companion.ask(text, self._bridge.answer_came.emit)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._companion.stop_asking()
        self._is_waiting, self._answer = False, Answer("")
        self._say()

    def _send_or_stop(self) -> None:
        if self._is_waiting:
            self._companion.cancel()
        else:
            self.ask()

    def _came(self, answer: Answer) -> None:
        if self._is_waiting:  # another panel may have asked
            self._answer = answer
            self._is_waiting = not answer.is_finished
            self._say()

    @property
    def _may_ask(self) -> bool:
        """There is somebody to answer, now or as soon as the model is loaded."""
        view = self._bridge.view
        return view.presence is Presence.HERE and view.engine not in _NO_ANSWER

    def _companion_changed(self, _view: CompanionView) -> None:
        if not self._may_ask:
            self._is_waiting = False
        self._say()

    def _say(self) -> None:
        tr = self._words.tr
        self.answer.setText(self._answer_text(tr))
        self.send.setText(self._send_text(tr))
        self.send.setAccessibleName(self.send.text())
        self.send.setEnabled(self._may_ask)
        for ask_about in self.sources.values():
            ask_about.setEnabled(self._may_ask and not self._is_waiting)
        self.copy.setVisible(bool(self._answer.text))

    def _send_text(self, tr: Translate) -> str:
        return tr("Cancel") if self._is_waiting else tr("Ask")

    def _answer_text(self, tr: Translate) -> str:
        if self._bridge.view.presence is Presence.AWAY:
            return tr("Thock does not run. Start it, then come back here.")
        if self._answer.trouble:
            return f"⚠ {told(tr, self._answer.trouble)}"
        if self._answer.text:
            return self._answer.text
        if not self._may_ask:
            return engine_text(tr, self._bridge.view)
        return tr("Thinking…") if self._is_waiting else tr("The answer will stand here.")
