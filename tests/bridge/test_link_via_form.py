# SPDX-License-Identifier: Apache-2.0
"""Keyboards with VIA: the host asks for frames that begin like VIA's answer, and reads them as any others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.errors import FrameError
from firmware_bridge.events import KeyPressed, LinkLost, LinkReady
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.neighbours import load_neighbours, program_of
from firmware_bridge.protocol.frames import MAGIC, Frame, FrameType, decode, encode, payload_room
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind, first_press
from firmware_bridge.protocol.messages import Ack, EventKinds, Subscribe
from tests.helpers.session_lab import SessionLab, ready_lab

VIA = 12
BOARD = BoardConfig(via_version=VIA)
CLIENT = 7
VIA_ANSWER = b"\x01\x00\x0c".ljust(32, b"\0")


def heard(lab: SessionLab) -> list[bytes]:
    """What the session reads from now on."""
    reports: list[bytes] = []

    def overhear(report: bytes) -> list[bytes]:
        reports.append(report)
        return [report]

    lab.to_host = overhear
    return reports


@pytest.mark.parametrize(("board", "start"), [(BoardConfig(), MAGIC), (BOARD, VIA_ANSWER[:3])])
def test_it_is_asked_for_where_the_keyboard_has_it(board: BoardConfig, start: bytes) -> None:
    lab = SessionLab(board)
    reports = heard(lab)
    lab.settle()
    kinds = Subscribe.unpack(lab.sent[-1].payload).kinds
    assert (EventKinds.VIA_FORM in kinds) == (board is BOARD)
    lab.output.show(TextFrame(("hello",)), lab.now)
    lab.run(1.5)
    lab.press(4)
    lab.settle()
    assert {report[: len(start)] for report in reports[1:]} == {start}
    assert [type(event) for event in lab.events] == [LinkReady, KeyPressed]
    assert (lab.stats.foreign, lab.stats.retries, lab.stats.naks) == (0, 0, 0)


def test_vias_own_answer_is_still_known_for_what_it_is() -> None:
    lab = ready_lab(BOARD)
    for _ in range(2):
        lab.give(VIA_ANSWER)
    assert isinstance(lab.events[-1], LinkLost)
    assert lab.events[-1].reason.startswith("VIA")


def test_frames_for_a_host_before_us_are_no_sign_of_another_program() -> None:
    lab = ready_lab(BOARD)
    frame = Frame(FrameType.ACK, CLIENT + 1, 1, Ack(FrameType.STATUS).pack())
    report = encode(frame, 32, via_version=VIA)
    assert program_of(report, load_neighbours()) is None
    before = len(lab.events)
    for _ in range(3):
        lab.give(report)
    lab.output.show(TextFrame(("hello",)), lab.now)
    lab.settle()
    assert len(lab.events) == before
    assert lab.sent[-1].type is FrameType.TEXT


@given(
    st.sampled_from([None, 0, VIA, 0xFFFF]), st.sampled_from([32, 33, 48, 64]),
    st.sampled_from(list(FrameType)), st.integers(0, 255), st.integers(0, 255), st.data(),
)  # fmt: skip
def test_every_frame_survives_both_forms(
    via_version: int | None,
    length: int,
    kind: FrameType,
    client: int,
    seq: int,
    data: st.DataObject,
) -> None:
    room = payload_room(length if via_version is None else length - 2)
    payload = data.draw(st.binary(max_size=room))
    first, last = data.draw(st.booleans()), data.draw(st.booleans())
    frame = Frame(kind, client, seq, payload, first, last)
    report = encode(frame, length, via_version=via_version)
    assert decode(report) == frame
    if via_version is not None:
        assert report[:3] == bytes((1, via_version >> 8, via_version & 0xFF))
    at = data.draw(st.integers(0, length * 8 - 1))
    changed = bytearray(report)
    changed[at // 8] ^= 1 << at % 8
    with pytest.raises(FrameError):
        decode(bytes(changed))


def test_the_form_leaves_two_bytes_less() -> None:
    with pytest.raises(FrameError, match="room for 22"):
        encode(Frame(FrameType.KEY, CLIENT, 0, bytes(23)), 32, via_version=VIA)


RECORDS = st.builds(
    KeyRecord, st.booleans(), st.sampled_from(RecordKind), st.integers(0, 255), st.integers(0, 255),
    st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.booleans(),
)  # fmt: skip


@given(
    st.sampled_from([None, VIA]), st.lists(RECORDS, min_size=1, max_size=2), st.integers(0, 2),
    st.integers(0, 1), st.sampled_from([CLIENT, CLIENT + 1]),
)  # fmt: skip
def test_the_first_press_is_seen_in_both_forms(
    via_version: int | None, records: list[KeyRecord], index: int, dropped: int, client: int
) -> None:
    payload = KeyReport(index, dropped, tuple(records)).pack()
    report = encode(Frame(FrameType.KEY, client, 3, payload), 32, via_version=via_version)
    first = records[0]
    expected: tuple[RecordKind, int] | None = None
    if client == CLIENT and index == 1 and not dropped and first.pressed:
        if first.kind is RecordKind.KEY:
            expected = RecordKind.KEY, first.keycode
        elif first.kind is RecordKind.MACRO:
            expected = RecordKind.MACRO, first.row
    assert first_press(report, CLIENT, 1) == expected
    assert first_press(report[:-1], CLIENT, 1) is None
