# SPDX-License-Identifier: Apache-2.0
"""When the display goes dark and when the companion sleeps, because nobody types, and what wakes them."""

from __future__ import annotations

from app.companion.messages import CompanionCommand, EngineChanged, Message
from firmware_bridge.events import BridgeEvent, KeyPressed, MacroTriggered


class Rest:
    """Dark `dark_s` seconds after the last key or command, whatever is shown; asleep after `sleep_s`.

    Asleep is dark too. All times are seconds of one clock.
    """

    def __init__(self, dark_s: float, sleep_s: float) -> None:
        self._dark_s = dark_s
        self._sleep_s = sleep_s
        self._dark_at: float | None = None
        self._sleep_at: float | None = None
        self.is_dark = False

    def configure(self, dark_s: float, sleep_s: float, now: float) -> None:
        """Rest after other times from now on."""
        self._dark_s = dark_s
        self._sleep_s = sleep_s
        self._dark_at = now + min(dark_s, sleep_s)
        self._sleep_at = now + sleep_s

    @property
    def deadline(self) -> float | None:
        """When the next of the two is due."""
        return min((at for at in (self._dark_at, self._sleep_at) if at is not None), default=None)

    def stay_awake(self, message: Message, now: float) -> None:
        """Keys and commands put rest off; news of keyboard and engine only bring the display back."""
        if not isinstance(message, BridgeEvent | CompanionCommand | EngineChanged):
            return
        self.is_dark = False
        is_of_a_person = isinstance(message, KeyPressed | MacroTriggered | CompanionCommand)
        if is_of_a_person or self._dark_at is None:
            self._dark_at = now + min(self._dark_s, self._sleep_s)
        if is_of_a_person or self._sleep_at is None:
            self._sleep_at = now + self._sleep_s

    def falls_asleep(self, now: float) -> bool:
        """Whether it falls asleep just now."""
        if self._sleep_at is None or now < self._sleep_at:
            return False
        self._sleep_at = None
        return True

    def falls_dark(self, now: float, *, is_busy: bool) -> bool:
        """Whether the display goes dark just now; not while an answer `is_busy` coming, until sleep."""
        if self._dark_at is None or now < self._dark_at:
            return False
        if is_busy and self._sleep_at is not None:
            self._dark_at = min(now + self._dark_s, self._sleep_at)
            return False
        self._dark_at = None
        self.is_dark = True
        return True
