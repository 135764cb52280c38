# SPDX-License-Identifier: Apache-2.0
"""Frames <-> reports (docs/PROTOCOL.md, "Frame" and "Types")."""

from __future__ import annotations

import binascii
import enum
from dataclasses import dataclass, field

from firmware_bridge.errors import FrameError

MAGIC = b"\xe7\x4c"
VIA_VERSION = 0x01  # VIA's question for its version; a frame in VIA form begins with the answer
VIA_FORM_BYTES = 2  # by which VIA form is longer
PROTOCOL_VERSION = 1
OVERHEAD = 8  # bytes of a report that are not payload: 6 of head, 2 of CRC
MAX_PAYLOAD = 63  # the length field has 6 bits

_FIRST = 0x80
_LAST = 0x40
LENGTH = 0x3F  # of the payload, beside the marks


class FrameType(enum.IntEnum):
    """Low nibble of byte 2. A type 0 frame is HELLO from the host and CAPS from the keyboard."""

    HELLO = 0
    CAPS = 0
    SUBSCRIBE = 1
    KEY = 2
    TEXT = 3
    BITMAP = 4
    LIGHTS = 5
    STATUS = 6
    RELEASE = 7
    ACK = 8
    NAK = 9
    POLL = 10
    ACCEPT = 11


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `first` and `last` mark the borders of a group of frames that belong together."""

    type: FrameType
    client: int
    seq: int
    payload: bytes = field(repr=False)
    first: bool = True
    last: bool = True
    version: int = PROTOCOL_VERSION


def checksum(data: bytes) -> int:
    """CRC-16/CCITT-FALSE: polynomial 1021, start FFFF, no reflection, no final XOR.

    `binascii.crc_hqx` is the same polynomial with a start value of the caller's choice.
    """
    return binascii.crc_hqx(data, 0xFFFF)


def payload_room(report_length: int) -> int:
    """How many payload bytes a report of `report_length` bytes can carry."""
    return min(report_length - OVERHEAD, MAX_PAYLOAD)


def encode(frame: Frame, report_length: int, *, via_version: int | None = None) -> bytes:
    """The report of `report_length` bytes that carries `frame`; in VIA form if VIA's version is given.

    Raises:
        FrameError: a number does not fit its field, or the payload does not fit the report.
    """
    if not 0 <= frame.version <= 0x0F:
        raise FrameError("version", f"{frame.version} is not 0..15")
    if not 0 <= frame.client <= 0xFF:
        raise FrameError("client", f"{frame.client} is not 0..255")
    if not 0 <= frame.seq <= 0xFF:
        raise FrameError("seq", f"{frame.seq} is not 0..255")
    start = MAGIC
    if via_version is not None:
        start = bytes((VIA_VERSION,)) + via_version.to_bytes(2, "big") + MAGIC[1:]
    room = payload_room(report_length + len(MAGIC) - len(start))
    if len(frame.payload) > room:
        raise FrameError("length", f"{len(frame.payload)} bytes of payload, room for {room}")
    flags = (_FIRST if frame.first else 0) | (_LAST if frame.last else 0)
    head = bytes((frame.version << 4 | frame.type, frame.client, frame.seq))
    body = start + head + bytes((flags | len(frame.payload),)) + frame.payload
    body = body.ljust(report_length - 2, b"\0")
    return body + checksum(body).to_bytes(2, "little")


def shift_of(report: bytes) -> int | None:
    """By how many bytes the fields of a frame lie further back: 0, or VIA_FORM_BYTES in VIA form.

    None: no frame. The CRC is not looked at.
    """
    if report[:2] == MAGIC:
        return 0
    is_via_form = len(report) >= OVERHEAD + VIA_FORM_BYTES and report[0] == VIA_VERSION
    return VIA_FORM_BYTES if is_via_form and report[3] == MAGIC[1] else None


def type_of(report: bytes) -> int | None:
    """The number of the type of a frame, without a look at the rest of it; None: no frame."""
    at = shift_of(report) if len(report) >= OVERHEAD else None
    return None if at is None else report[at + 2] & 0x0F


def is_frame(report: bytes) -> bool:
    """Whether `report` is whole and a frame of ours, whoever it is for."""
    return len(report) >= OVERHEAD and shift_of(report) is not None and is_intact(report)


def is_intact(report: bytes) -> bool:
    """Whether the CRC at the end of `report` is right."""
    return int.from_bytes(report[-2:], "little") == checksum(report[:-2])


def decode(report: bytes) -> Frame:
    """The frame in `report`, of any version; the report's length is that of `report`.

    Raises:
        FrameError: too short, another magic, a wrong CRC, a length over the report's, a reserved
            type. Of these only `type` is a frame of ours.
    """
    if len(report) < OVERHEAD:
        raise FrameError("report", f"{len(report)} bytes hold no frame")
    at = shift_of(report)
    if at is None:
        raise FrameError("magic", "not a frame of ours")
    if not is_intact(report):
        raise FrameError("crc", "wrong")
    version_and_type, client, seq, marks = report[at + 2 : at + 6]
    length = marks & LENGTH
    if length > payload_room(len(report) - at):
        raise FrameError("length", f"{length} does not fit a report of {len(report)} bytes")
    try:
        kind = FrameType(version_and_type & 0x0F)
    except ValueError:
        raise FrameError("type", f"{version_and_type & 0x0F} is reserved") from None
    return Frame(
        type=kind,
        client=client,
        seq=seq,
        payload=bytes(report[at + 6 : at + 6 + length]),
        first=bool(marks & _FIRST),
        last=bool(marks & _LAST),
        version=version_and_type >> 4,
    )
