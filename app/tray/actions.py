# SPDX-License-Identifier: Apache-2.0
"""What the rows of the menu do: the same commands that `thock` has."""

from __future__ import annotations

import logging
from collections.abc import Callable

from app.config.paths import log_folder
from app.lifecycle.host import CompanionHost
from app.platform.desktop import NoProgramError, copy_text, open_folder
from app.tray.menu import MINUTES_OF, MODE_OF, Action, ChooseProfile

_log = logging.getLogger(__name__)


class TrayActions:
    """Called on the toolkit's thread; returns soon."""

    def __init__(self, host: CompanionHost, tell: Callable[[str], None]) -> None:
        """`tell` shows the person what went wrong, in the person's language."""
        self._host = host
        self._tell = tell

    def __call__(self, action: Action | ChooseProfile) -> None:
        """Do it."""
        host = self._host
        match action:
            case ChooseProfile(name=name):
                host.choose_profile(name)
            case Action.OPEN:
                host.show_page("status")
            case Action.ASK:
                host.show_page("ask")
            case Action.SETTINGS:
                host.show_page("keyboard")
            case Action.DIAGNOSTICS:
                host.show_page("diagnostics")
            case Action.CANCEL:
                host.cancel()
            case Action.SUGGEST | Action.CHAT | Action.REACT:
                host.set_mode(MODE_OF[action])
            case Action.PAUSE | Action.PAUSE_15 | Action.PAUSE_60:
                host.pauses.pause(MINUTES_OF[action])
            case Action.RESUME:
                host.resume()
            case Action.LOAD_MODEL:
                host.load_model()
            case Action.UNLOAD_MODEL:
                host.unload_model()
            case Action.COPY_REPLY:
                self._outside(lambda: copy_text(host.reply()))
            case Action.LOG_FOLDER:
                self._outside(lambda: open_folder(log_folder()))
            case Action.QUIT:
                host.quit()

    def _outside(self, work: Callable[[], None]) -> None:
        try:
            work()
        except NoProgramError as error:
            _log.warning("%s", error)
            self._tell(str(error))
