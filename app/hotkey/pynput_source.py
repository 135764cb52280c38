# SPDX-License-Identifier: Apache-2.0
"""Shortcuts through pynput: X11, Windows and macOS. It has to look at every key to find them; nothing of
what it sees is kept, and nothing but the name of an action leaves this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pynput import keyboard  # type: ignore[import-untyped]

from app.hotkey.bindings import HotkeyAction
from app.hotkey.source import Bindings, HotkeysUnavailableError, Press
from engine.texts import Text

_READY_S = 5.0


class PynputHotkeys:
    """One listener at a time."""

    def __init__(self) -> None:
        self._listener: keyboard.GlobalHotKeys | None = None

    def start(self, wanted: Bindings, press: Press) -> None:
        calls: dict[str, Callable[[], None]] = {
            str(combination): partial(_pressed, press, action)
            for action, combination in wanted.items()
        }
        try:
            listener = keyboard.GlobalHotKeys(calls)
        except ValueError as error:
            raise HotkeysUnavailableError(
                Text("pynput does not know a key of them: {error}", error=error)
            ) from error
        listener.daemon = True
        listener.start()
        listener.wait()
        self._listener = listener

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener.join(_READY_S)
            self._listener = None


def _pressed(press: Press, action: HotkeyAction) -> None:
    press(action)
