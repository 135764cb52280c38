# SPDX-License-Identifier: Apache-2.0
"""The settings window: a process of its own, started on demand, brought to the front if it is there."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

# A window that was just started and has not connected yet is not started a second time.
_STARTING_S = 5.0

_log = logging.getLogger(__name__)


class NoWindowError(Exception):
    """The toolkit of the window is not installed, or there is no display for it."""


def can_open_window() -> bool:
    """The toolkit of the window is installed."""
    return importlib.util.find_spec("PySide6") is not None


def window_command(page: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command that opens the window at `page`.

    Raises:
        NoWindowError: PySide6 is missing, or there is no display.
    """
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform not in ("win32", "darwin") and not any(map(environment.get, displays)):
        raise NoWindowError(
            "there is no graphical session here: use `thock settings get` and `thock settings set`."
        )
    if not can_open_window():
        raise NoWindowError("the window needs PySide6: install Thock with its extra `desktop`.")
    # -P: no module of the folder that Thock was started in, such as an unbuilt checkout of it.
    return [sys.executable, "-P", "-m", "app.settings_window", "--page", page]


class SettingsWindow:
    """`ask_open` asks an open window to show a page, and tells whether there was one."""

    def __init__(
        self,
        ask_open: Callable[[str], bool],
        command: Callable[[str], Sequence[str]] = window_command,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask_open = ask_open
        self._command = command
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = float("-inf")

    def show(self, page: str) -> None:
        """Show `page`. What goes wrong is logged: nobody waits for a window."""
        with self._lock:
            if self._ask_open(page) or self._is_starting():
                return
            try:
                self._process = subprocess.Popen(
                    self._command(page), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                )
            except (OSError, NoWindowError) as error:
                _log.warning("the window cannot be opened: %s", error)
                return
            self._started_at = self._clock()
            threading.Thread(
                target=_attend, args=(self._process,), name="window-end", daemon=True
            ).start()

    def close(self) -> None:
        """The companion ends: so does a window that it started."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def _is_starting(self) -> bool:
        process = self._process
        return (
            process is not None
            and process.poll() is None
            and self._clock() - self._started_at < _STARTING_S
        )


def _attend(window: subprocess.Popen[bytes]) -> None:
    """Wait for its end: no zombie is left, and a window that breaks is known of."""
    code = window.wait()
    if code not in (0, -signal.SIGTERM):
        _log.warning("the window ended with code %d", code)
