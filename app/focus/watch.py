# SPDX-License-Identifier: Apache-2.0
"""The program in front, on any system that tells it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping

from app.focus.source import FocusSource, FocusUnknownError

_log = logging.getLogger(__name__)

MAX_NAME = 64


def system_source(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> FocusSource:
    """The source of this system.

    Raises:
        FocusUnknownError: there is none.
    """
    if platform == "win32":
        from app.focus.windows import WindowsFocus

        return WindowsFocus()
    if platform == "darwin":
        from app.focus.macos import MacFocus

        return MacFocus()
    # XWayland knows of the windows of X programs only, and would call the others by a wrong name.
    if environment.get("WAYLAND_DISPLAY"):
        raise FocusUnknownError("Wayland tells no program which one is in front")
    if not environment.get("DISPLAY"):
        raise FocusUnknownError("there is no display")
    from app.focus.x11 import XFocus

    return XFocus()


class FocusWatch:
    """Calls `changed` with the name of the program in front: at the start, and when it is another one.

    `changed` runs on the thread of the watch. With no source, or one that ends, it is called with "".
    """

    def __init__(
        self,
        changed: Callable[[str], None],
        open_source: Callable[[], FocusSource] = system_source,
    ) -> None:
        self._changed = changed
        self._open_source = open_source
        self._source: FocusSource | None = None
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="focus", daemon=True)
        self._name: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the thread. Safe to call twice, and before `start`."""
        self._stopping.set()
        with self._lock:
            if self._source is not None:
                self._source.wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            source = self._open_source()
        except FocusUnknownError as error:
            _log.info("which program is in front is not known: %s", error)
            self._tell("")
            return
        with self._lock:
            self._source = source
        try:
            while not self._stopping.is_set():
                self._tell(source.application()[:MAX_NAME])
                source.wait()
        except FocusUnknownError as error:
            _log.warning("which program is in front is no longer known: %s", error)
            self._tell("")
        finally:
            with self._lock:
                self._source = None
            source.close()

    def _tell(self, name: str) -> None:
        if name != self._name:
            self._name = name
            self._changed(name)
