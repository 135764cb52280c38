# SPDX-License-Identifier: Apache-2.0
"""The process of the settings window: `python -m app.settings_window [--page NAME]`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.first_run import FirstRun
from app.log import set_up_logging
from app.places import FIRST_STEPS, PAGES, Place
from app.settings_window.application import SettingsApp
from app.settings_window.companion_link import CompanionLink
from app.settings_window.ports import SettingsRefusedError

_SIGNALS_MS = 200  # how long Ctrl-C waits for Python to look at it


def make_application(argv: Sequence[str] = ("thock",)) -> QApplication:
    """The QApplication, with one style on every system, so that every page looks as it was looked at."""
    app = QApplication(list(argv))
    app.setApplicationName("thock")
    app.setApplicationDisplayName("Thock")
    app.setDesktopFileName("thock")
    app.setStyle("fusion")
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the window is closed. The exit status: 0, or 1 if the settings cannot be read."""
    parser = argparse.ArgumentParser(prog="thock settings")
    parser.add_argument("--page", choices=PAGES, default=Place.STATUS)
    page = parser.parse_args(argv).page
    set_up_logging("WARNING")
    app = make_application()
    link = CompanionLink()
    first_run = FirstRun()
    try:
        window = SettingsApp(link, link, first_run=first_run)
    except SettingsRefusedError as error:
        print(f"thock settings: {error}", file=sys.stderr)
        return 1
    link.start()
    window.window.open_place(page)
    if page == FIRST_STEPS or first_run.is_due:
        window.start_assistant()
    # Not quit(), which closes every window first: the first steps would be closed by nobody's wish.
    # By a timer: before `exec` has begun, a call of it would do nothing.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _n, _f: QTimer.singleShot(0, lambda: app.exit(0)))
    awake = QTimer()  # Qt's loop runs no Python, and so no signal handler, while nothing happens
    awake.timeout.connect(lambda: None)
    awake.start(_SIGNALS_MS)
    status = app.exec()
    link.close()
    return status
