# SPDX-License-Identifier: Apache-2.0
"""What follows the host's state outside: the entry for autostart, the detail of the log, notifications."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from app.i18n import Translate, told
from app.lifecycle.host import HostState
from app.log import set_log_level
from app.platform.autostart import Autostart, thock_command
from engine.client import EngineState

_log = logging.getLogger(__name__)


class AutostartFollower:
    """The entry follows the setting: at the start, for the file may have been changed meanwhile, and later."""

    def __init__(self, autostart: Autostart) -> None:
        self._autostart = autostart
        self._wanted: bool | None = None
        self._writing = threading.Lock()

    def __call__(self, state: HostState) -> None:
        wanted, before = state.settings.general.autostart, self._wanted
        self._wanted = wanted
        if wanted is not before:
            # A disk may be slow, and this is the companion's thread.
            threading.Thread(target=self._follow, name="autostart").start()

    def _follow(self) -> None:
        with self._writing:  # two changes in a row: whoever is last does what is wanted last
            wanted = self._wanted
            try:
                if wanted and not self._autostart.is_on():
                    self._autostart.turn_on(thock_command())
                elif not wanted:
                    self._autostart.turn_off()
            except OSError as error:
                reason = error.strerror or error
                _log.warning("start with the computer cannot be changed: %s", reason)


class LogLevelFollower:
    """The log file has the detail of the settings."""

    def __init__(self) -> None:
        self._level = ""

    def __call__(self, state: HostState) -> None:
        level = state.settings.general.log_level.value.upper()
        if level != self._level:
            self._level = level
            set_log_level(level)


class Notifier:
    """Tells when the keyboard or the model is lost; not at the beginning, and nothing that was typed."""

    def __init__(
        self, notify: Callable[[str, str], None], translator: Callable[[HostState], Translate]
    ) -> None:
        self._notify = notify
        self._translator = translator
        self._had_keyboard = False
        self._had_engine = False

    def __call__(self, state: HostState) -> None:
        companion = state.companion
        has_keyboard = companion.keyboard is not None
        has_engine = companion.engine is not EngineState.FAILED
        lost_keyboard = self._had_keyboard and not has_keyboard
        lost_engine = self._had_engine and not has_engine
        self._had_keyboard, self._had_engine = has_keyboard, has_engine
        if not state.settings.general.notifications:
            return
        tr = self._translator(state)
        if lost_keyboard and state.away is not None:
            self._notify("Thock", told(tr, state.away.reason))
        elif lost_keyboard:
            self._notify("Thock", tr("The keyboard is gone"))
        if lost_engine:
            self._notify(tr("The model has stopped"), told(tr, companion.engine_detail))
