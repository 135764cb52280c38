# SPDX-License-Identifier: Apache-2.0
"""KEY frames -> events, gaps noticed, and the set of keys that are down."""

from __future__ import annotations

from firmware_bridge.events import (
    BridgeEvent,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    MacroTriggered,
)
from firmware_bridge.link_state import LinkProblem, LinkStats, SessionEndedError
from firmware_bridge.protocol.messages import KeyRecord, KeyReport

_INDEX_RANGE = 0x10000


class KeyFeed:
    """The events of one subscription after another."""

    def __init__(self, stats: LinkStats) -> None:
        self._stats = stats
        self._next_index = 0
        self._down: dict[tuple[int, int], KeyRecord] = {}

    def begin(self) -> None:
        """A new subscription: the keyboard counts from 0."""
        self._next_index = 0

    def take(self, report: KeyReport, now: float) -> list[BridgeEvent]:
        """The events of a KEY frame, in order. Lost reports are told before, overflow after them,
        because the firmware dropped what came when its ring was full of these.

        Raises:
            SessionEndedError: the index went back, so the keyboard has begun anew.
        """
        gap = (report.first_index - self._next_index) % _INDEX_RANGE
        if gap >= _INDEX_RANGE // 2:
            raise SessionEndedError(LinkProblem.RESTARTED)
        self._next_index = (report.first_index + len(report.events)) % _INDEX_RANGE
        events: list[BridgeEvent] = []
        if gap:
            events.append(EventsDropped(gap))
        for record in report.events:
            event = self._event(record, now)
            if event is not None:
                events.append(event)
        if report.dropped:
            events.append(EventsDropped(report.dropped))
        self._stats.events += len(report.events)
        self._stats.dropped += gap + report.dropped
        return events

    def lift_all(self, now: float) -> list[KeyReleased]:
        """Releases of all keys that are down; afterwards none is."""
        lifted = [
            KeyReleased(record.keycode, record.row, record.column, record.device_ms, now)
            for record in self._down.values()
        ]
        self._down.clear()
        return lifted

    def _event(self, record: KeyRecord, now: float) -> BridgeEvent | None:
        if record.macro:
            return MacroTriggered(record.row, record.device_ms, now) if record.pressed else None
        place = (record.row, record.column)
        kind: type[KeyPressed] | type[KeyReleased]
        if record.pressed:
            self._down[place] = record
            kind = KeyPressed
        else:
            self._down.pop(place, None)
            kind = KeyReleased
        return kind(record.keycode, record.row, record.column, record.device_ms, now)
