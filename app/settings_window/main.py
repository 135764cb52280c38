# SPDX-License-Identifier: Apache-2.0
"""The process of the settings window: `python -m app.settings_window [--page NAME]`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.log import set_up_logging
from app.settings_window.application import SettingsApp
from app.settings_window.companion_link import CompanionLink
from app.settings_window.first_steps import FirstRun
from app.settings_window.labels import Place
from app.settings_window.ports import SettingsRefusedError
from app.settings_window.window import ASK

FIRST_STEPS = "first-steps"
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
    parser.add_argument("--page", choices=[*Place, ASK, FIRST_STEPS], default=Place.STATUS)
    page = parser.parse_args(argv).page
    set_up_logging("WARNING")
    app = make_application()
    link = CompanionLink()
    try:
        window = SettingsApp(link, link)
    except SettingsRefusedError as error:
        print(f"thock settings: {error}", file=sys.stderr)
        return 1
    link.start()
    first_run = FirstRun()
    window.window.open_place(page)
    if page == FIRST_STEPS or first_run.is_due:
        first_run.note()
        window.start_assistant()
    signal.signal(signal.SIGINT, lambda _n, _f: app.quit())
    signal.signal(signal.SIGTERM, lambda _n, _f: app.quit())
    awake = QTimer()  # Qt's loop runs no Python, and so no signal handler, while nothing happens
    awake.timeout.connect(lambda: None)
    awake.start(_SIGNALS_MS)
    status = app.exec()
    link.close()
    return status
