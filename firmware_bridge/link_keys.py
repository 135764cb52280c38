# SPDX-License-Identifier: Apache-2.0
"""KEY frames -> events, gaps noticed; the keys that are down, and whether keys are captured."""

from __future__ import annotations

from collections.abc import Callable

from firmware_bridge.events import (
    BridgeEvent,
    CaptureEnded,
    CaptureStarted,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    MacroTriggered,
    SuggestionAccepted,
)
from firmware_bridge.link_state import LinkProblem, LinkStats, SessionEndedError
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind

_INDEX_RANGE = 0x10000
# Keys that type nothing by themselves: modifiers (HID usages) and layer keys (QMK keycodes).
_MODIFIERS = range(0xE0, 0xE8)
_LAYER_KEYS = range(0x4000, 0x5300)
_FIRST_OWN_MACRO = 16  # of the keymap, which may type; below are the companion keys


class KeyFeed:
    """The events of one subscription after another."""

    def __init__(
        self,
        stats: LinkStats,
        accepted: Callable[[int, int], str],
        typed: Callable[[], None],
    ) -> None:
        """`accepted`, `typed`: see `OfferChannel.pressed` and `outdated`."""
        self._stats = stats
        self._accepted = accepted
        self._typed = typed
        self.next_index = 0
        """Of the event that is due."""
        self._down: dict[tuple[int, int], KeyRecord] = {}
        self._capture: KeyRecord | None = None

    def begin(self) -> None:
        """A new subscription: the keyboard counts from 0."""
        self.next_index = 0

    def take(self, report: KeyReport, now: float) -> list[BridgeEvent]:
        """The events of a KEY frame, in order. Lost reports are told before, overflow after them,
        because the firmware dropped what came when its ring was full of these.

        Raises:
            SessionEndedError: the index went back, so the keyboard has begun anew.
        """
        gap = (report.first_index - self.next_index) % _INDEX_RANGE
        if gap >= _INDEX_RANGE // 2:
            raise SessionEndedError(LinkProblem.RESTARTED)
        self.next_index = (report.first_index + len(report.events)) % _INDEX_RANGE
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

    def lift_all(self, now: float) -> list[BridgeEvent]:
        """Releases of all keys that are down, and the end of the capture; afterwards there is none."""
        lifted: list[BridgeEvent] = [
            _key_event(KeyReleased, key, now) for key in self._down.values()
        ]
        self._down.clear()
        return lifted + self.end_capture(now)

    def end_capture(self, now: float) -> list[BridgeEvent]:
        """The end of a capture that the keyboard will not tell."""
        capture, self._capture = self._capture, None
        return [] if capture is None else [CaptureEnded(capture.device_ms, now)]

    def _event(self, record: KeyRecord, now: float) -> BridgeEvent | None:
        match record.kind:
            case RecordKind.KEY:
                return self._key(record, now)
            case RecordKind.MACRO if record.pressed:
                if record.row >= _FIRST_OWN_MACRO:
                    self._typed()
                return MacroTriggered(record.row, record.device_ms, now)
            case RecordKind.CAPTURE if record.pressed:
                self._capture = record
                return CaptureStarted(record.device_ms, now)
            case RecordKind.CAPTURE:
                self._capture = None
                return CaptureEnded(record.device_ms, now)
            case RecordKind.ACCEPT:
                text = self._accepted(record.column, record.row)
                count = record.row
                return SuggestionAccepted(text, count, record.device_ms, now) if count else None
        return None

    def _key(self, record: KeyRecord, now: float) -> BridgeEvent:
        place = (record.row, record.column)
        if record.pressed:
            self._down[place] = record
            code = record.keycode
            if not (record.captured or code in _MODIFIERS or code in _LAYER_KEYS):
                self._typed()
            return _key_event(KeyPressed, record, now)
        self._down.pop(place, None)
        return _key_event(KeyReleased, record, now)


def _key_event(
    kind: type[KeyPressed] | type[KeyReleased], record: KeyRecord, now: float
) -> KeyPressed | KeyReleased:
    return kind(record.keycode, record.row, record.column, record.device_ms, now, record.captured)
