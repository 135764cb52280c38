# SPDX-License-Identifier: Apache-2.0
"""The frame codec: round trips, refusals, the CRC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.errors import FrameError
from firmware_bridge.protocol.frames import (
    MAGIC,
    OVERHEAD,
    Frame,
    FrameType,
    checksum,
    decode,
    encode,
    payload_room,
    type_of,
)

REPORT_LENGTHS = st.sampled_from([32, 33, 64, 71, 90])


@st.composite
def frames(draw: st.DrawFn) -> tuple[Frame, int]:
    report_length = draw(REPORT_LENGTHS)
    frame = Frame(
        type=draw(st.sampled_from(list(FrameType))),
        client=draw(st.integers(0, 255)),
        seq=draw(st.integers(0, 255)),
        payload=draw(st.binary(max_size=payload_room(report_length))),
        first=draw(st.booleans()),
        last=draw(st.booleans()),
        version=draw(st.integers(0, 15)),
    )
    return frame, report_length


@given(st.sampled_from(list(FrameType)), st.sampled_from([None, 9, 12]))
def test_the_type_of_a_frame_is_told_in_either_form(kind: FrameType, version: int | None) -> None:
    report = encode(Frame(kind, 7, 1, b"\x05"), 32, via_version=version)
    assert type_of(report) == kind


@pytest.mark.parametrize(
    "report", [b"", b"\xe7\x4c", b"\x01\0\x0c" + bytes(29), b"\x12\0\x4c\x4c" + bytes(28)]
)
def test_what_is_no_frame_has_no_type(report: bytes) -> None:
    assert type_of(report) is None


def test_checksum_has_the_standard_check_value() -> None:
    # Check value of CRC-16/CCITT-FALSE (in RevEng's catalogue CRC-16/IBM-3740).
    assert checksum(b"123456789") == 0x29B1


@given(frames())
def test_a_frame_survives_the_wire(case: tuple[Frame, int]) -> None:
    frame, report_length = case
    report = encode(frame, report_length)
    assert len(report) == report_length
    assert decode(report) == frame


@given(frames(), st.data())
def test_one_flipped_bit_is_noticed(case: tuple[Frame, int], data: st.DataObject) -> None:
    frame, report_length = case
    report = bytearray(encode(frame, report_length))
    bit = data.draw(st.integers(0, report_length * 8 - 1))
    report[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FrameError):
        decode(bytes(report))


@given(st.binary(max_size=80))
def test_random_bytes_are_a_frame_error_or_a_frame(report: bytes) -> None:
    try:
        frame = decode(report)
    except FrameError:
        return
    assert encode(frame, len(report))[:6] == report[:6]


@given(st.binary(min_size=OVERHEAD - 2, max_size=70))
def test_bytes_with_a_right_crc_never_crash_the_decoder(body: bytes) -> None:
    body = MAGIC + body[2:]
    report = body + checksum(body).to_bytes(2, "little")
    field = ""
    try:
        frame = decode(report)
    except FrameError as error:
        field = error.field
    else:
        assert len(frame.payload) <= len(report) - OVERHEAD
    assert field in ("", "length", "type")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"client": 256}, "client"),
        ({"client": -1}, "client"),
        ({"seq": 256}, "seq"),
        ({"version": 16}, "version"),
        ({"payload": bytes(25)}, "length"),
    ],
)
def test_numbers_that_do_not_fit_are_named(change: dict[str, object], field: str) -> None:
    values: dict[str, object] = {"type": FrameType.ACK, "client": 1, "seq": 2, "payload": b""}
    with pytest.raises(FrameError) as caught:
        encode(Frame(**{**values, **change}), 32)  # type: ignore[arg-type]
    assert caught.value.field == field


def _sealed(body: bytearray) -> bytes:
    return bytes(body[:-2]) + checksum(bytes(body[:-2])).to_bytes(2, "little")


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [(0, 0xE6, "magic"), (1, 0x4D, "magic"), (5, 25, "length"), (2, 0x1C, "type")],
)
def test_foreign_frames_are_named_even_with_a_right_crc(place: int, value: int, field: str) -> None:
    report = bytearray(encode(Frame(FrameType.ACK, 1, 2, b""), 32))
    report[place] = value
    with pytest.raises(FrameError) as caught:
        decode(_sealed(report))
    assert caught.value.field == field


def test_short_reports_hold_no_frame() -> None:
    for length in range(OVERHEAD):
        with pytest.raises(FrameError, match="report"):
            decode(MAGIC.ljust(length, b"\0")[:length])


def test_repr_shows_no_payload() -> None:
    assert "secret" not in repr(Frame(FrameType.TEXT, 1, 2, b"secret"))
