# SPDX-License-Identifier: Apache-2.0
"""Packets in a byte stream: whole or not at all, and always back in step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.protocol.frames import checksum
from firmware_bridge.protocol.serial_framing import END, ESCAPE, START, FrameReader, encode_report

LENGTH = 32
reports = st.binary(min_size=LENGTH, max_size=LENGTH)
# bytes that matter to the framing come often
noise = st.lists(
    st.one_of(st.sampled_from((START, ESCAPE, END, 0x8B, 0x8C, 0x8D)), st.integers(0, 255)),
    max_size=120,
).map(bytes)


def read(stream: bytes, length: int = LENGTH) -> list[bytes]:
    return FrameReader(length).feed(stream)


def test_the_example_of_the_protocol_text() -> None:
    report = bytes.fromhex("01abacad")
    crc = checksum(report)
    assert crc == 0x834D
    assert encode_report(report) == bytes.fromhex("ab 01 ac8b ac8c ac8d 4d 83 ad")


def test_the_checksum_may_need_escapes_too() -> None:
    report = next(
        report
        for report in (bytes((0, i)) for i in range(256))
        if {checksum(report) & 0xFF, checksum(report) >> 8} & {START, ESCAPE, END}
    )
    packet = encode_report(report)
    assert len(packet) > len(report) + 4
    assert read(packet, 2) == [report]


@given(st.binary(min_size=1, max_size=71))
def test_what_went_in_comes_out(report: bytes) -> None:
    packet = encode_report(report)
    assert packet[0] == START
    assert packet[-1] == END
    assert START not in packet[1:]
    assert END not in packet[:-1]
    assert len(packet) <= 2 * (len(report) + 2) + 2
    assert read(packet, len(report)) == [report]


@given(st.lists(reports, max_size=4), st.lists(st.integers(1, 40), min_size=1))
def test_pieces_of_any_size(sent: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(map(encode_report, sent))
    reader = FrameReader(LENGTH)
    found = []
    place = number = 0
    while place < len(stream):
        size = sizes[number % len(sizes)]
        found += reader.feed(stream[place : place + size])
        place, number = place + size, number + 1
    assert found == sent
    assert reader.skipped == 0


@given(noise, reports, noise, reports)
def test_noise_before_and_between_costs_no_packet(
    before: bytes, first: bytes, between: bytes, second: bytes
) -> None:
    """Noise that is itself a valid packet would be found too; that has a chance of 2^-16."""
    stream = before + encode_report(first) + between + encode_report(second)
    assert [report for report in read(stream) if report in (first, second)] == [first, second]


@given(reports, st.data())
def test_a_cut_packet_is_not_delivered_and_the_next_one_is(
    report: bytes, data: st.DataObject
) -> None:
    packet = encode_report(report)
    cut = data.draw(st.integers(0, len(packet) - 1))
    reader = FrameReader(LENGTH)
    assert reader.feed(packet[:cut]) == []
    assert reader.feed(packet) == [report]


@given(reports, st.data())
def test_a_packet_with_one_wrong_bit_is_not_delivered(report: bytes, data: st.DataObject) -> None:
    packet = bytearray(encode_report(report))
    packet[data.draw(st.integers(0, len(packet) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert read(bytes(packet)) == []


@pytest.mark.parametrize("length", [0, 1, LENGTH - 1, LENGTH + 1, 200])
def test_a_packet_of_another_length_is_skipped_and_counted(length: int) -> None:
    reader = FrameReader(LENGTH)
    assert reader.feed(encode_report(bytes(length))) == []
    assert reader.skipped == 1
    assert reader.feed(encode_report(bytes(LENGTH))) == [bytes(LENGTH)]


@pytest.mark.parametrize("after", [0x00, 0x8A, 0x8E, ESCAPE])
def test_a_wrong_escape_ends_the_packet(after: int) -> None:
    packet = encode_report(bytes(LENGTH))
    broken = packet[:5] + bytes((ESCAPE, after)) + packet[5:]
    assert read(broken) == []


def test_an_escape_at_the_end_is_no_report() -> None:
    assert read(encode_report(bytes(LENGTH))[:-1] + bytes((ESCAPE, END))) == []


@given(st.binary(max_size=300))
def test_memory_stays_bounded(data: bytes) -> None:
    reader = FrameReader(LENGTH)
    reader.feed(bytes((START,)) + data.replace(bytes((END,)), b"") * 3)
    assert len(reader._body or b"") <= LENGTH + 2
