# SPDX-License-Identifier: Apache-2.0
"""The payload of KEY frames (docs/PROTOCOL.md, "KEY payload")."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import ClassVar, Self

from firmware_bridge.errors import FrameError
from firmware_bridge.protocol.fields import pack_fields, unpack_fields
from firmware_bridge.protocol.frames import (
    LENGTH,
    OVERHEAD,
    PROTOCOL_VERSION,
    FrameType,
    is_intact,
    shift_of,
)

_KEY_EVENT = struct.Struct("<BBBHH")
# A report from its version and type up to the key code of its first event: client, length and marks, number of
# the first event, lost events, then kind, row and key code.
_FIRST_EVENT = struct.Struct("<BBxBHBBBxH")
_HEAD = 2  # bytes before that: magic
_SHORTEST = 10  # bytes of payload: the head and one event


class RecordKind(enum.IntEnum):
    """What an event of a KEY frame tells of."""

    KEY = 0
    MACRO = 1
    CAPTURE = 2
    ACCEPT = 3


_KEY_FRAME = PROTOCOL_VERSION << 4 | FrameType.KEY
_KEY_PRESS = RecordKind.KEY << 1 | 1
_MACRO_PRESS = RecordKind.MACRO << 1 | 1


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One event of a KEY frame. `captured`: the key went to the host only.

    A macro has its number in `row`; an accept how many characters were typed, and in `column` the seq of
    the ACCEPT frame that offered them. All else is 0 where there is no key. CAPTURE: pressed is its beginning.
    """

    pressed: bool
    kind: RecordKind
    row: int = field(repr=False)
    column: int = field(repr=False)
    keycode: int = field(repr=False)
    device_ms: int
    captured: bool = False


def first_press(report: bytes, client: int, index: int) -> tuple[RecordKind, int] | None:
    """What the first event of a KEY report presses: (KEY, its key code) or (MACRO, its number).

    None for any other report: not whole, not of our version or for another client, or its first event is
    no press or not number `index`, or events were lost. `decode` and `unpack` say more, and take longer.
    """
    at = shift_of(report)
    if at is None or len(report) - at < OVERHEAD + _SHORTEST:
        return None
    kind, owner, marks, first, lost, flags, row, code = _FIRST_EVENT.unpack_from(report, at + _HEAD)
    if kind != _KEY_FRAME or owner != client or first != index or lost:
        return None
    if not _SHORTEST <= marks & LENGTH <= len(report) - at - OVERHEAD or not is_intact(report):
        return None
    if flags & 0xF == _KEY_PRESS:
        return RecordKind.KEY, code
    return (RecordKind.MACRO, row) if flags & 0xF == _MACRO_PRESS else None


@dataclass(frozen=True, slots=True)
class KeyReport:
    """Keyboard: 1..3 events (at N = 32). `first_index` numbers the events of a subscription."""

    type: ClassVar[FrameType] = FrameType.KEY
    _layout: ClassVar[struct.Struct] = struct.Struct("<HB")

    first_index: int
    dropped: int
    events: tuple[KeyRecord, ...]

    def pack(self) -> bytes:
        return pack_fields(self._layout, "key", self.first_index, self.dropped) + b"".join(
            pack_fields(
                _KEY_EVENT, "key event", e.pressed | e.kind << 1 | e.captured << 4, e.row, e.column,
                e.keycode, e.device_ms,
            )
            for e in self.events
        )  # fmt: skip

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        first_index, dropped = unpack_fields(cls._layout, "key", payload)
        rest = payload[cls._layout.size :]
        if not rest or len(rest) % _KEY_EVENT.size:
            raise FrameError("key", f"{len(rest)} bytes hold no whole number of events")
        events = []
        for flags, row, column, keycode, device_ms in _KEY_EVENT.iter_unpack(rest):
            kind = flags >> 1 & 7
            if flags > 0x1F or kind > max(RecordKind):
                raise FrameError("key kind", f"{flags} is reserved")
            events.append(
                KeyRecord(
                    bool(flags & 1), RecordKind(kind), row, column, keycode, device_ms,
                    captured=bool(flags & 0x10),
                )
            )  # fmt: skip
        return cls(first_index, dropped, tuple(events))
