# SPDX-License-Identifier: Apache-2.0
"""Payloads <-> messages, one class per row of the table "Types" in docs/PROTOCOL.md.

`pack` raises FrameError when a number does not fit its field, `unpack` when bytes are missing or a
value is reserved. Bytes after the known ones are ignored: a later firmware may send more.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

from firmware_bridge.errors import FrameError
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.fields import first_byte, pack_fields, unpack_fields
from firmware_bridge.protocol.frames import FrameType

NONCE_TRANSFORM = 0x4B434F54
"""CAPS carries the nonce of HELLO XOR this, so that an echo is never taken for an answer."""

_CAPS = struct.Struct("<IBB6sBBBBBBHHBB")
_PAIR = struct.Struct("<BB")


class EventKinds(enum.IntFlag):
    """What a host subscribes to. TYPING: the accept key may type, and is told of. VIA_FORM: frames have it."""

    KEYS = 1
    MACROS = 2
    CAPTURES = 4
    TYPING = 8
    VIA_FORM = 16


class NakReason(enum.IntEnum):
    """Why a keyboard refused a frame."""

    VERSION = 1
    TYPE = 2
    LENGTH = 3
    RANGE = 4
    BUSY = 5
    NOT_SUBSCRIBED = 6
    UNSUPPORTED = 7


class Status(enum.IntEnum):
    """What the status glyph says."""

    IDLE = 0
    LISTENING = 1
    THINKING = 2
    STREAMING = 3
    PAUSED = 4
    ERROR = 5


class Parts(enum.IntFlag):
    """What RELEASE gives back to the keyboard's own firmware."""

    DISPLAY = 1
    LIGHTS = 2
    STATUS = 4
    SUBSCRIPTION = 8


class Message(Protocol):
    """What every class below has."""

    @property
    def type(self) -> FrameType: ...

    def pack(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Hello:
    """Host: who is there? `low` and `high` are the protocol versions that the host speaks."""

    type: ClassVar[FrameType] = FrameType.HELLO
    _layout: ClassVar[struct.Struct] = struct.Struct("<IBB")

    nonce: int
    low: int
    high: int

    def pack(self) -> bytes:
        return pack_fields(self._layout, "hello", self.nonce, self.low, self.high)

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        return cls(*unpack_fields(cls._layout, "hello", payload))


@dataclass(frozen=True, slots=True)
class Caps:
    """Keyboard: the answer to HELLO. `proof` is the nonce of the HELLO XOR NONCE_TRANSFORM."""

    type: ClassVar[FrameType] = FrameType.CAPS

    proof: int
    capabilities: Capabilities

    def pack(self) -> bytes:
        c = self.capabilities
        if not (0 <= c.protocol_low <= 15 and 0 <= c.protocol_high <= 15):
            raise FrameError("caps protocol", "a protocol version is 0..15")
        return pack_fields(
            _CAPS, "caps", self.proof, c.protocol_low << 4 | c.protocol_high, c.report_length,
            c.uid, 1 if c.has_display else 0, c.width, c.height, c.rotation, c.columns, c.rows,
            c.led_count, c.features, c.ring_size, c.build,
        )  # fmt: skip

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        if len(payload) < _CAPS.size:
            raise FrameError("caps", f"{len(payload)} bytes of payload, needs {_CAPS.size}")
        (
            proof, protocols, report_length, uid, display, width, height, rotation, columns, rows,
            led_count, features, ring_size, build,
        ) = _CAPS.unpack_from(payload)  # fmt: skip
        if display not in (0, 1):
            raise FrameError("caps display", f"kind {display} is reserved")
        if height % 8 or rotation > 3:
            raise FrameError("caps display", f"height {height}, rotation {rotation}")
        shown = display == 1
        known = features & int(~Feature(0))  # later features are none of this host's business
        return cls(
            proof,
            Capabilities(
                protocol_low=protocols >> 4,
                protocol_high=protocols & 0x0F,
                report_length=report_length,
                uid=uid,
                width=width if shown else 0,
                height=height if shown else 0,
                rotation=rotation,
                columns=columns,
                rows=rows,
                led_count=led_count,
                features=Feature(known),
                ring_size=ring_size,
                build=build,
            ),
        )


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Host: send me events; also the keepalive."""

    type: ClassVar[FrameType] = FrameType.SUBSCRIBE

    kinds: EventKinds

    def pack(self) -> bytes:
        return bytes((self.kinds,))

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        return cls(EventKinds(first_byte("subscribe", payload) & 0x1F))


@dataclass(frozen=True, slots=True)
class TextRun:
    """Host: characters from `column` on in `row`; the rest of the row is cleared."""

    type: ClassVar[FrameType] = FrameType.TEXT

    row: int
    column: int
    text: str = field(repr=False)

    def pack(self) -> bytes:
        if not (self.text.isascii() and self.text.isprintable()):  # 20..7E
            raise FrameError("text", "printable ASCII only")
        return pack_fields(_PAIR, "text", self.row, self.column) + self.text.encode("ascii")

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        row, column = unpack_fields(_PAIR, "text", payload)
        characters = payload[_PAIR.size :]
        if not all(0x20 <= c <= 0x7E for c in characters):
            raise FrameError("text", "printable ASCII only")
        return cls(row, column, characters.decode("ascii"))


@dataclass(frozen=True, slots=True)
class BitmapRun:
    """Host: SSD1306 page bytes from `x` on in `page`."""

    type: ClassVar[FrameType] = FrameType.BITMAP

    page: int
    x: int
    data: bytes = field(repr=False)

    def pack(self) -> bytes:
        return pack_fields(_PAIR, "bitmap", self.page, self.x) + self.data

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        page, x = unpack_fields(_PAIR, "bitmap", payload)
        return cls(page, x, payload[_PAIR.size :])


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Host: what the status glyph says."""

    type: ClassVar[FrameType] = FrameType.STATUS

    status: Status

    def pack(self) -> bytes:
        return bytes((self.status,))

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        value = first_byte("status", payload)
        if value > max(Status):
            raise FrameError("status", f"{value} is reserved")
        return cls(Status(value))


@dataclass(frozen=True, slots=True)
class Release:
    """Host: give `parts` back to the keyboard's own firmware."""

    type: ClassVar[FrameType] = FrameType.RELEASE

    parts: Parts

    def pack(self) -> bytes:
        return bytes((self.parts,))

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        return cls(Parts(first_byte("release", payload) & 0x0F))


@dataclass(frozen=True, slots=True)
class Poll:
    """Host, to boards with `Feature.POLL`: the oldest events as a KEY frame, or ACK if there are none."""

    type: ClassVar[FrameType] = FrameType.POLL

    def pack(self) -> bytes:
        return b""

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        return cls()


@dataclass(frozen=True, slots=True)
class Offer:
    """Host, to boards with `Feature.ACCEPT`: the accept key may type `count` characters of the text that
    is shown, from `column` of `row` on, once. 0 characters withdraw the offer."""

    type: ClassVar[FrameType] = FrameType.ACCEPT
    _layout: ClassVar[struct.Struct] = struct.Struct("<BBB")

    row: int
    column: int
    count: int

    def pack(self) -> bytes:
        return pack_fields(self._layout, "accept", self.row, self.column, self.count)

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        return cls(*unpack_fields(cls._layout, "accept", payload))


@dataclass(frozen=True, slots=True)
class Ack:
    """Keyboard: the frame of type `done` was carried out.

    `began_ms`, of SUBSCRIBE only: the firmware's clock when the subscription began. Another value than before
    means that the keyboard has forgotten the one before.
    """

    type: ClassVar[FrameType] = FrameType.ACK
    _layout: ClassVar[struct.Struct] = struct.Struct("<BH")

    done: FrameType
    began_ms: int = 0

    def pack(self) -> bytes:
        if self.done is FrameType.SUBSCRIBE:
            return pack_fields(self._layout, "ack", self.done, self.began_ms)
        return bytes((self.done,))

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        value = first_byte("ack", payload)
        if value > max(FrameType):
            raise FrameError("ack type", f"{value} is reserved")
        if value != FrameType.SUBSCRIBE:
            return cls(FrameType(value))
        return cls(FrameType.SUBSCRIBE, unpack_fields(cls._layout, "ack", payload)[1])


@dataclass(frozen=True, slots=True)
class Nak:
    """Keyboard: the frame of type number `refused` was not carried out."""

    type: ClassVar[FrameType] = FrameType.NAK

    refused: int
    reason: NakReason

    def pack(self) -> bytes:
        return pack_fields(_PAIR, "nak", self.refused, self.reason)

    @classmethod
    def unpack(cls, payload: bytes) -> Self:
        refused, reason = unpack_fields(_PAIR, "nak", payload)
        try:
            return cls(refused, NakReason(reason))
        except ValueError:
            raise FrameError("nak reason", f"{reason} is reserved") from None
