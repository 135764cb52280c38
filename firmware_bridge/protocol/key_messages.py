# SPDX-License-Identifier: Apache-2.0
"""The payload of KEY frames (docs/PROTOCOL.md, "KEY payload")."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import ClassVar, Self

from firmware_bridge.errors import FrameError
from firmware_bridge.protocol.fields import pack_fields, unpack_fields
from firmware_bridge.protocol.frames import FrameType

_KEY_EVENT = struct.Struct("<BBBHH")
_FIRST_EVENT = struct.Struct("<HBBBBH")  # the head, and the first event without its time


class RecordKind(enum.IntEnum):
    """What an event of a KEY frame tells of."""

    KEY = 0
    MACRO = 1
    CAPTURE = 2
    ACCEPT = 3


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

    @staticmethod
    def first_press(payload: bytes, index: int) -> tuple[RecordKind, int] | None:
        """What the first event of a report presses: (KEY, its key code) or (MACRO, its number).

        None if it is something else, or not the event number `index`, or events were lost. Cheaper than
        `unpack`, for the only thing that cannot wait.
        """
        if len(payload) < _FIRST_EVENT.size:
            return None
        first_index, dropped, flags, row, _, keycode = _FIRST_EVENT.unpack_from(payload)
        if first_index != index or dropped or not flags & 1:
            return None
        match flags >> 1 & 7:
            case RecordKind.KEY:
                return RecordKind.KEY, keycode
            case RecordKind.MACRO:
                return RecordKind.MACRO, row
            case _:
                return None

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
