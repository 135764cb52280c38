# SPDX-License-Identifier: Apache-2.0
"""The KMK module on a stand-in board: what goes over its port, and when it keeps silent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.messages import (
    NONCE_TRANSFORM,
    Caps,
    Hello,
)
from firmware_bridge.protocol.serial_framing import encode_report
from tests.helpers.kmk_board import (
    BOTH,
    KeyboardKey,
    KmkBoard,
    make_board,
)

A = KeyboardKey(4)


def test_hello_over_the_port() -> None:
    board, _ = make_board()
    caps = Caps.unpack(board.say(Hello(0xCAFE, 1, 1)).payload)
    found = caps.capabilities
    assert caps.proof == 0xCAFE ^ NONCE_TRANSFORM
    assert (found.report_length, found.columns, found.rows, found.led_count) == (32, 21, 2, 4)
    assert (found.width, found.height, found.ring_size) == (126, 16, 16)
    assert found.features == Feature(63) & ~Feature.BITMAP
    assert len(set(found.uid)) > 2


def test_without_callbacks_neither_display_nor_lights_are_offered() -> None:
    board, _ = make_board(show=None, set_lights=None)
    found = Caps.unpack(board.say(Hello(1, 1, 1)).payload).capabilities
    assert (found.has_display, found.columns, found.led_count) == (False, 0, 0)
    assert found.features == Feature.KEYS | Feature.MACROS | Feature.STATUS


def test_a_board_without_a_data_port_says_what_to_do() -> None:
    board = KmkBoard(port=None)
    with pytest.raises(RuntimeError, match="usb_cdc"):
        board.start(lambda module: module.ThockCompanion())
    board.module.deinit(board.keyboard)


def test_nothing_is_sent_before_a_host_spoke() -> None:
    board, _ = make_board()
    for _ in range(20):
        board.tap(A)
    assert board.open_port.collect() == b""


@pytest.mark.parametrize(
    "noise",
    [
        b"\r\nAuto-reload is on. Simply save files over USB to run them.\r\n>>> ",
        b"keyboard.tap_key(KC.A)\n",  # what KMK's serialace would evaluate
        b"__import__('os').system('x')\n" * 20,
        bytes(range(256)),
        b"\xab" + b"\x00" * 200,
        encode_report(bytes(32)),
        encode_report(bytes(40)),
    ],
)
def test_what_is_no_frame_is_skipped_and_never_run(noise: bytes) -> None:
    board, screen = make_board()
    board.open_port.received += noise
    for _ in range(20):
        board.loop()
    assert board.open_port.collect() == b""
    assert screen.shown == []
    assert board.say(Hello(1, 1, 1)).type == FrameType.CAPS


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=60), max_size=20))
def test_any_bytes_leave_the_board_working(pieces: list[bytes]) -> None:
    board, _ = make_board()
    for piece in pieces:
        board.open_port.received += piece
        board.loop()
    while board.open_port.in_waiting:
        board.loop()
    board.frames()
    assert board.say(Hello(1, 1, 1)).type == FrameType.CAPS


def test_a_computer_that_does_not_read_costs_events_and_never_time() -> None:
    board, _ = make_board()
    board.do(BOTH)
    board.open_port.room = 50
    for _ in range(60):
        board.tap(A)  # FakePort fails on a call that could wait
    assert len(board.typed) == 120
    board.open_port.room = 10_000
    reports = []
    for _ in range(20):
        board.loop()
        reports += [KeyReport.unpack(frame.payload) for frame in board.frames()]
    assert reports
    delivered = sum(len(report.events) for report in reports)
    assert delivered + sum(report.dropped for report in reports) == 120
    assert board.reader.skipped == 0  # no packet was cut


def test_a_packet_goes_out_in_pieces_as_the_port_has_room() -> None:
    board, _ = make_board()
    board.open_port.room = 10
    board.seq += 1
    answer = board.raw(FrameType.HELLO, Hello(1, 1, 1).pack())
    while not answer:
        board.loop()
        answer = board.frames()
    assert answer[0].type == FrameType.CAPS


def test_losing_dtr_ends_the_session() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.show_rows("text")
    board.loop(200)
    board.open_port.connected = False
    board.tap(A)
    board.loop(200)
    assert screen.shown[-1] == (None, 0)
    assert board.open_port.collect() == b""
    board.open_port.connected = True
    board.tap(A)
    assert board.open_port.collect() == b""


def test_half_a_packet_before_dtr_fell_does_not_spoil_the_next() -> None:
    board, _ = make_board()
    board.open_port.received += encode_report(bytes(32))[:10]
    board.loop()
    board.open_port.connected = False
    board.loop()
    board.open_port.connected = True
    assert board.say(Hello(1, 1, 1)).type == FrameType.CAPS


def test_powersave_and_deinit_give_back_and_keep_silent() -> None:
    for end in ("on_powersave_enable", "deinit"):
        board, screen = make_board()
        board.do(BOTH)
        board.show_rows("text")
        board.loop(200)
        getattr(board.module, end)(board.keyboard)
        assert screen.shown[-1] == (None, 0)
        board.tap(A)
        assert board.open_port.collect() == b""
    board.module.on_powersave_enable(board.keyboard)
    board.module.on_powersave_disable(board.keyboard)
    assert board.say(Hello(1, 1, 1)).type == FrameType.CAPS


@pytest.mark.parametrize("start", [1000, (1 << 29) - 1500, 0xFFFFFF])
def test_silence_ends_the_subscription_also_where_ticks_wrap(start: int) -> None:
    board, screen = make_board()
    board.now = start
    board.do(BOTH)
    board.show_rows("text")
    board.loop(2900)
    assert screen.shown == [(["text", ""], 0)]
    board.loop(200)
    assert screen.shown[1:] == [(None, 0)]
