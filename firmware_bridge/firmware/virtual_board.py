# SPDX-License-Identifier: Apache-2.0
"""What a board does around the firmware core when keys are pressed: the part of a QMK module that decides
what goes to the computer. It keeps little of what went there, for tests to look at, and in memory only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore

ACCEPT_KEY = 4  # its number among the companion keys
_REMEMBERED_CHARACTERS = 256
_REMEMBERED_KEYS = 64


class VirtualBoard:
    """A core and its keys. Not thread-safe. Times are milliseconds, see `FirmwareCore`."""

    def __init__(self, config: BoardConfig, send: Callable[[bytes], bool]) -> None:
        """See `FirmwareCore`."""
        self.core = FirmwareCore(config, send)
        self._swallowed: set[tuple[int, int]] = set()
        self._typed: deque[str] = deque(maxlen=_REMEMBERED_CHARACTERS)
        self._computer: deque[tuple[int, bool]] = deque(maxlen=_REMEMBERED_KEYS)

    def key(self, row: int, column: int, keycode: int, pressed: bool, now_ms: int) -> bool:
        """A key goes down or up. False: nobody asked for keys, or the ring is full."""
        core = self.core
        if self._is_captured((row, column), pressed):
            return core.captured_key_event(row, column, keycode, pressed, now_ms)
        self._computer.append((keycode, pressed))
        return core.key_event(row, column, keycode, pressed, now_ms)

    def macro(self, number: int, now_ms: int) -> bool:
        """Companion key `number` goes down and up; see `key`. The accept key types what was offered."""
        core = self.core
        down = core.macro_event(number, True, now_ms)
        if number == ACCEPT_KEY:
            core.panel()  # a real panel has been drawn long before a finger comes down
            self._typed.extend(core.accept(now_ms))
        return core.macro_event(number, False, now_ms) and down

    @property
    def typed(self) -> str:
        """What the accept key has typed into the computer, the newest 256 characters."""
        return "".join(self._typed)

    @property
    def computer_keys(self) -> list[tuple[int, bool]]:
        """What the computer got as an ordinary keyboard's keys: keycode and whether down, the newest 64."""
        return list(self._computer)

    def _is_captured(self, place: tuple[int, int], pressed: bool) -> bool:
        """A release goes where its press went."""
        if pressed and self.core.capturing:
            self._swallowed.add(place)
            return True
        captured = not pressed and place in self._swallowed
        self._swallowed.discard(place)
        return captured
