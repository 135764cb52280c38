# SPDX-License-Identifier: Apache-2.0
"""When the companion goes to sleep, because nobody types, and what wakes it."""

from __future__ import annotations

from app.companion.messages import CompanionCommand, EngineChanged, Message
from firmware_bridge.events import BridgeEvent, KeyPressed, MacroTriggered


class Rest:
    """Sleeps `idle_s` seconds after the last key or command. All times are seconds of one clock."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._sleep_at: float | None = None
        self.is_asleep = False

    def configure(self, idle_s: float, now: float) -> None:
        """Sleep after another time from now on."""
        self._idle_s = idle_s
        self._sleep_at = now + idle_s

    @property
    def deadline(self) -> float | None:
        """When it falls asleep."""
        return self._sleep_at

    def stay_awake(self, message: Message, now: float) -> None:
        """Keys and commands put sleep off; news of keyboard and engine only bring the display back."""
        if not isinstance(message, BridgeEvent | CompanionCommand | EngineChanged):
            return
        self.is_asleep = False
        is_of_a_person = isinstance(message, KeyPressed | MacroTriggered | CompanionCommand)
        if is_of_a_person or self._sleep_at is None:
            self._sleep_at = now + self._idle_s

    def falls_asleep(self, now: float) -> bool:
        """Whether it falls asleep just now."""
        if self._sleep_at is None or now < self._sleep_at:
            return False
        self._sleep_at = None
        self.is_asleep = True
        return True
