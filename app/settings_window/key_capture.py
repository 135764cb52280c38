# SPDX-License-Identifier: Apache-2.0
"""Asks for a key of the keyboard and says which one it was. The key is shown and forgotten."""

from __future__ import annotations

import enum

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QWidget

from app.companion.macros import MacroKey
from app.i18n import Translate
from app.settings_window.bridge import Bridge
from app.settings_window.ports import CompanionPort, CompanionView, PressedKey
from app.settings_window.theme import ROW_GAP
from app.settings_window.widgets import button, label, side_by_side
from app.settings_window.wording import Wording

WAIT_MS = 15_000


class Capture(enum.Enum):
    """Where the asking is."""

    IDLE = "idle"
    WAITING = "waiting"
    CAME = "came"
    TIMED_OUT = "timed out"


class KeyCapture(QWidget):
    """`state` and `key` are what is shown."""

    def __init__(self, companion: CompanionPort, bridge: Bridge, words: Wording) -> None:
        super().__init__()
        self._companion = companion
        self._bridge = bridge
        self._words = words
        self.state = Capture.IDLE
        self.key: PressedKey | None = None
        self.text = label(words, self._text)
        self.begin = button(words, self._button_text)
        self.begin.clicked.connect(self.toggle)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(WAIT_MS)
        self._timer.timeout.connect(lambda: self._end(Capture.TIMED_OUT))
        row = side_by_side(self.text, self.begin)
        row.setContentsMargins(ROW_GAP, ROW_GAP, ROW_GAP, ROW_GAP)
        self.setLayout(row)
        bridge.key_came.connect(self._came)
        bridge.companion_changed.connect(self._companion_changed)
        self._companion_changed(bridge.view)

    def toggle(self) -> None:
        """Ask for a key, or stop asking."""
        if self.state is Capture.WAITING:
            self._end(Capture.IDLE)
            return
        self.key = None
        self.state = Capture.WAITING
        self._timer.start()
        self._companion.capture_key(self._bridge.key_came.emit)
        self._say()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self.state is Capture.WAITING or self.key is not None:
            self._end(Capture.IDLE)

    def _came(self, key: PressedKey) -> None:
        if self.state is Capture.WAITING:
            self._end(Capture.CAME, key)

    def _end(self, state: Capture, key: PressedKey | None = None) -> None:
        self._timer.stop()
        if self.state is Capture.WAITING:
            self._companion.capture_key(None)
        self.state, self.key = state, key
        self._say()

    def _companion_changed(self, view: CompanionView) -> None:
        self.begin.setEnabled(bool(view.keyboard))
        self._say()

    def _say(self) -> None:
        self.text.setText(self._text(self._words.tr))
        self.begin.setText(self._button_text(self._words.tr))
        self.begin.setAccessibleName(self.begin.text())

    def _button_text(self, tr: Translate) -> str:
        return tr("Cancel") if self.state is Capture.WAITING else tr("Try a key")

    def _text(self, tr: Translate) -> str:
        match self.state:
            case Capture.WAITING:
                return tr("Press the key on your keyboard…")
            case Capture.TIMED_OUT:
                return tr("No key came. Is the keyboard connected, and are its keys read?")
            case Capture.CAME if self.key is not None:
                return _key_text(tr, self.key)
            case _:
                return tr("Which key is which? Press one, and Thock says what it does.")


def _key_text(tr: Translate, key: PressedKey) -> str:
    if key.macro is None:
        return tr("An ordinary key, in row {row} and column {column} of the keyboard.").format(
            row=key.row, column=key.column
        )
    return tr("Companion key {number}: {purpose}").format(
        number=key.macro + 1, purpose=purpose_of(tr, key.macro)
    )


def purpose_of(tr: Translate, macro: int) -> str:
    """What a companion key of the firmware does."""
    match macro:
        case MacroKey.NEXT_MODE:
            return tr("next mode")
        case MacroKey.ASK:
            return tr("ask")
        case MacroKey.PAUSE:
            return tr("pause or resume")
        case MacroKey.CANCEL:
            return tr("cancel")
        case _:
            return tr("a cause for a mood")
