# SPDX-License-Identifier: Apache-2.0
"""What every system's way of telling of shortcuts has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from app.hotkey.bindings import Combination, HotkeyAction

Bindings = Mapping[HotkeyAction, Combination]
Press = Callable[[HotkeyAction], None]


class HotkeysUnavailableError(Exception):
    """This system does not tell of shortcuts; the message says why, and what to do."""


class HotkeySource(Protocol):
    """Lives from `start` to `stop`; calls `press` on a thread of its own."""

    def start(self, wanted: Bindings, press: Press) -> None:
        """Begin.

        Raises:
            HotkeysUnavailableError: it cannot.
        """
        ...

    def stop(self) -> None: ...
