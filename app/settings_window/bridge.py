# SPDX-License-Identifier: Apache-2.0
"""From the ports' threads to the window's: a table of signals, which Qt queues from one to the other."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.settings_window.ports import CompanionPort, CompanionView, Presence, SettingsPort


class Bridge(QObject):
    """Every signal arrives on the window's thread. `view` is the newest state that arrived.

    `companion_changed` is sent on from there: a page that is made while a state is under way hears of it too.
    """

    companion_changed = Signal(object)  # CompanionView
    settings_changed = Signal(object)  # Settings
    preview_came = Signal(object)  # Preview
    key_came = Signal(object)  # PressedKey
    answer_came = Signal(object)  # Answer
    asked_for = Signal(str)  # the name of a page that somebody wants to see
    _state_came = Signal(object)  # CompanionView

    def __init__(self, companion: CompanionPort, settings: SettingsPort) -> None:
        super().__init__()
        self.view = CompanionView()
        self._companion = companion
        self._watchers: list[object] = []
        self._state_came.connect(self._keep)
        companion.watch_state(self._state_came.emit)
        companion.watch_pages(self.asked_for.emit)
        settings.watch_settings(self.settings_changed.emit)

    def look(self, watcher: object) -> None:
        """`watcher` looks at the preview from now on: ask for it, unless somebody looks already."""
        if not self._watchers:
            self._companion.watch_preview(self.preview_came.emit)
        self._watchers.append(watcher)

    def look_away(self, watcher: object) -> None:
        """`watcher` looks no more; nothing is sent when nobody does."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)
            if not self._watchers:
                self._companion.watch_preview(None)

    def _keep(self, view: CompanionView) -> None:
        came_back = view.presence is Presence.HERE and self.view.presence is Presence.AWAY
        self.view = view
        if came_back and self._watchers:
            self._companion.watch_preview(self.preview_came.emit)
        self.companion_changed.emit(view)
