# SPDX-License-Identifier: Apache-2.0
"""Password fields of macOS: while one has the keyboard, programs that watch it are shut out ("Secure Input").

Our keys come from the keyboard itself, past that, so we have to look (Carbon, IsSecureEventInputEnabled;
nothing tells of a change). Other systems have nothing that one could ask.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import threading
from collections.abc import Callable

_LOOK_S = 0.5


def secure_input_question() -> Callable[[], bool] | None:
    """Asks macOS; None elsewhere, and where the library is not found."""
    path = ctypes.util.find_library("Carbon") if sys.platform == "darwin" else None
    if path is None:
        return None
    ask = ctypes.cdll.LoadLibrary(path).IsSecureEventInputEnabled
    ask.restype = ctypes.c_bool
    return lambda: bool(ask())


class SecureInputWatch:
    """Says when secure input begins and ends. A look takes microseconds."""

    def __init__(
        self, say: Callable[[bool], None], is_on: Callable[[], bool], look_s: float = _LOOK_S
    ) -> None:
        self._say = say
        self._is_on = is_on
        self._look_s = look_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thock-secure-input", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Safe to call twice, and without `start`."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        was_on = False
        while not self._stopping.is_set():
            is_on = self._is_on()
            if is_on is not was_on:
                was_on = is_on
                self._say(is_on)
            self._stopping.wait(self._look_s)
