# SPDX-License-Identifier: Apache-2.0
"""The Python codec and the C core agree on what is a frame of ours, and read each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.errors import FrameError
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.protocol.frames import (
    MAGIC,
    Frame,
    FrameType,
    checksum,
    decode,
    encode,
    payload_room,
)
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport
from firmware_bridge.protocol.messages import (
    EventKinds,
    Subscribe,
)

LENGTHS = st.sampled_from([32, 48, 64])
CLIENT = 9


class Wire:
    """A core and what it sent."""

    def __init__(self, report_length: int) -> None:
        self.sent: list[bytes] = []
        self.core = FirmwareCore(BoardConfig(report_length=report_length), self._send)
        self.length = report_length

    def _send(self, report: bytes) -> bool:
        self.sent.append(report)
        return True

    def subscribe(self) -> None:
        payload = Subscribe(EventKinds.KEYS).pack()
        report = encode(Frame(FrameType.SUBSCRIBE, CLIENT, 0, payload), self.length)
        assert self.core.receive(report, 0)
        self.sent.clear()


@given(
    LENGTHS, st.sampled_from(list(FrameType)), st.integers(1, 255), st.integers(0, 255), st.data()
)
def test_the_core_takes_what_python_encodes_and_its_answer_is_a_frame(
    length: int, kind: FrameType, client: int, seq: int, data: st.DataObject
) -> None:
    wire = Wire(length)
    payload = data.draw(st.binary(max_size=payload_room(length)))
    report = encode(Frame(kind, client, seq, payload), length)
    assert wire.core.receive(report, 0)
    if kind in (FrameType.KEY, FrameType.ACK, FrameType.NAK):
        assert not wire.sent  # only keyboards send these
        return
    (answer,) = wire.sent
    frame = decode(answer)
    assert (frame.client, frame.seq, frame.version) == (client, seq, 1)
    assert frame.type in (FrameType.CAPS, FrameType.ACK, FrameType.NAK)
    assert encode(frame, length) == answer


@given(LENGTHS, st.data())
def test_both_refuse_the_same_reports(length: int, data: st.DataObject) -> None:
    """Bodies with a right magic and CRC are common here; length, type and version are anything."""
    body = bytearray(data.draw(st.binary(min_size=length - 2, max_size=length - 2)))
    if data.draw(st.booleans()):
        body[:2] = MAGIC
    crc = checksum(bytes(body)) ^ data.draw(st.sampled_from([0, 0, 0, 1]))
    report = bytes(body) + crc.to_bytes(2, "little")
    try:
        decode(report)
    except FrameError as error:
        ours = error.field == "type"  # a frame of ours that gets NAK
    else:
        ours = True
    assert Wire(length).core.receive(report, 0) is ours


EVENTS = st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 0xFFFF), st.booleans())


@given(LENGTHS, st.lists(EVENTS, max_size=20))
def test_key_events_of_the_core_arrive_in_python(
    length: int, events: list[tuple[int, int, int, bool]]
) -> None:
    wire = Wire(length)
    wire.subscribe()
    for at_ms, event in enumerate(events, 1):
        row, column, keycode, pressed = event
        assert wire.core.key_event(row, column, keycode, pressed, at_ms)
    for _ in events:
        wire.core.task(0)
    records: list[KeyRecord] = []
    for report in wire.sent:
        keys = KeyReport.unpack(decode(report).payload)
        assert keys.first_index == len(records)
        records += keys.events
    found = [(r.row, r.column, r.keycode, r.pressed, r.device_ms) for r in records]
    assert found == [(*event, at_ms) for at_ms, event in enumerate(events, 1)]


@pytest.mark.parametrize("position", range(32))
def test_a_report_cut_and_padded_is_foreign_to_both(position: int) -> None:
    report = encode(Frame(FrameType.TEXT, CLIENT, 1, b"\0\0" + b"x" * 22), 32)
    cut = report[:position].ljust(32, b"\0")
    with pytest.raises(FrameError):
        decode(cut)
    assert not Wire(32).core.receive(cut, 0)
