# SPDX-License-Identifier: Apache-2.0
"""The KMK module on a stand-in board: port, keys, display and lights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.light_messages import LightsFill, LightsOff, LightsRun
from firmware_bridge.protocol.messages import (
    NONCE_TRANSFORM,
    Caps,
    EventKinds,
    Hello,
    KeyReport,
    Parts,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)
from firmware_bridge.protocol.serial_framing import encode_report
from tests.helpers.kmk_board import Key, KeyboardKey, KmkBoard, ModifiedKey, ModifierKey

BOTH = Subscribe(EventKinds.KEYS | EventKinds.MACROS)
A = KeyboardKey(4)
SHIFT = ModifierKey(0x02)


class Screen:
    """Records what the callbacks were given."""

    def __init__(self) -> None:
        self.shown: list[tuple[list[str] | None, int]] = []
        self.lights: list[list[tuple[int, int, int] | None] | None] = []

    def show(self, rows: list[str] | None, status: int) -> None:
        self.shown.append((rows, status))

    def set_lights(self, colours: list[tuple[int, int, int] | None] | None) -> None:
        self.lights.append(colours)


def make_board(**arguments: Any) -> tuple[KmkBoard, Screen]:
    screen = Screen()
    board = KmkBoard()
    everything = {"show": screen.show, "set_lights": screen.set_lights, "led_count": 4, **arguments}
    board.start(lambda module: module.ThockCompanion(**everything))
    return board, screen


def events(board: KmkBoard, turns: int = 6) -> list[tuple[bool, int, int, int, bool]]:
    found = []
    for _ in range(turns):
        board.loop()
        for frame in board.frames():
            found += [
                (e.kind, e.row, e.column, e.keycode, e.pressed)
                for e in KeyReport.unpack(frame.payload).events
            ]
    return found


# ------------------------------------------------------------------ port


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


# ------------------------------------------------------------------ keys


def test_keys_are_told_with_their_place_and_typed_all_the_same() -> None:
    board, _ = make_board()
    board.do(BOTH)
    board.tap(A, 6)
    assert events(board) == [(False, 1, 2, 4, True), (False, 1, 2, 4, False)]
    assert board.typed == [(A, True), (A, False)]


@pytest.mark.parametrize(
    ("place", "told"), [(None, (255, 255)), (300, (255, 255)), (0, (0, 0)), (254, (63, 2))]
)
def test_places(place: int | None, told: tuple[int, int]) -> None:
    board, _ = make_board()
    board.do(BOTH)
    board.loop(key=(A, True, place))
    assert events(board) == [(False, *told, 4, True)]


def test_a_board_without_columns_has_one_row() -> None:
    board = KmkBoard()
    board.start(lambda module: module.ThockCompanion(), col_pins=None)
    board.do(BOTH)
    board.loop(key=(A, True, 7))
    assert events(board) == [(False, 0, 7, 4, True)]


def usages(board: KmkBoard, key: Key) -> list[tuple[int, bool]]:
    board.tap(key)
    return [(event[3], event[4]) for event in events(board, 12)]


def test_modifiers_and_modified_keys_are_told_as_they_are_typed() -> None:
    board, _ = make_board()
    board.do(BOTH)
    assert usages(board, SHIFT) == [(0xE1, True), (0xE1, False)]
    both = ModifierKey(0x81)
    assert usages(board, both) == [(0xE0, True), (0xE7, True), (0xE0, False), (0xE7, False)]
    assert usages(board, ModifiedKey(A, SHIFT)) == [
        (0xE1, True),
        (4, True),
        (0xE1, False),
        (4, False),
    ]
    assert usages(board, ModifiedKey(None, SHIFT)) == [(0xE1, True), (0xE1, False)]


def test_keys_that_are_no_usages_are_not_told() -> None:
    board, _ = make_board()
    board.do(BOTH)
    assert usages(board, Key()) == usages(board, KeyboardKey(0xB5)) == []
    assert len(board.typed) == 4


def test_companion_keys_and_named_macros() -> None:
    macro = Key()
    board, _ = make_board(macros=(macro,))
    board.do(BOTH)
    for number, name in enumerate(("THOCK_NEXT_MODE", "THOCK_ASK", "THOCK_PAUSE", "THOCK_CANCEL")):
        board.tap(board.made[name])
        assert events(board) == [(True, number, 0, 0, True), (True, number, 0, 0, False)]
    board.tap(macro)
    assert events(board)[0] == (True, 16, 0, 0, True)


# ------------------------------------------------------------------ display and lights


def test_text_and_status_reach_the_callback_at_most_every_100_ms() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.loop(200)
    for number in range(50):
        board.show_rows(f"text {number}")
    board.loop(200)
    times = len(screen.shown)
    assert times <= 3
    assert screen.shown[-1] == (["text 49", ""], 0)
    board.do(SetStatus(Status.THINKING))
    board.loop(200)
    assert screen.shown[-1] == (["text 49", ""], 2)


def test_an_unchanged_picture_is_not_drawn_again() -> None:
    board, screen = make_board()
    board.do(BOTH)
    for _ in range(3):
        board.show_rows("same")
        board.loop(200)
    assert screen.shown == [(["same", ""], 0)]


def test_rows_are_built_of_runs() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(TextRun(0, 5, "right"), last=False)
    board.do(TextRun(1, 0, "second"), first=False)
    board.loop(200)
    assert screen.shown == [(["     right", "second"], 0)]
    board.do(TextRun(0, 0, "abcdef"), last=False)
    board.do(TextRun(0, 3, "X"), first=False)  # what stood right of it is cleared
    board.loop(200)
    assert screen.shown[1:] == [(["abcX", ""], 0)]


def test_lights_reach_the_callback_and_end() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(LightsRun(1, (Rgb(1, 2, 3),)))
    board.loop(60)
    assert screen.lights[-1] == [None, (1, 2, 3), None, None]
    board.do(LightsFill(LightEffect.SOLID, Rgb(9, 9, 9)))
    board.loop(60)
    assert screen.lights[-1] == [(9, 9, 9), (1, 2, 3), (9, 9, 9), (9, 9, 9)]
    count = len(screen.lights)
    for _ in range(10):
        board.loop(50)
    assert len(screen.lights) == count  # nothing moves, nothing is drawn
    board.do(LightsOff())
    board.loop(60)
    assert screen.lights[count:] == [None]


def test_moving_lights_are_drawn_20_times_a_second_at_most() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(LightsFill(LightEffect.BREATHE, Rgb(200, 0, 0)))
    for _ in range(1000):
        board.loop(1)
    assert 15 <= len(screen.lights) <= 21
    assert len({str(colours) for colours in screen.lights}) > 10


def test_release_gives_the_display_back() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.show_rows("text")
    board.loop(200)
    board.do(Release(Parts.DISPLAY))
    board.loop(200)
    assert screen.shown == [(["text", ""], 0), (None, 0)]


# ------------------------------------------------------------------ KMK's own display and lights


def test_text_takes_the_place_of_the_displays_entries() -> None:
    board = KmkBoard()
    own = [object()]
    drawn: list[tuple[object, list[object]]] = []
    display = SimpleNamespace(entries=own, prev_layer=3)
    display.render = lambda layer: drawn.append((layer, display.entries))
    with board.installed() as load:
        show = load("thock_kmk_output").DisplayText(display, lambda **entry: entry)
    show(["first", "second"], 0)
    assert display.entries == [
        {"text": "first", "x": 0, "y": 0},
        {"text": "second", "x": 0, "y": 14},
    ]
    show(["first line is cut here", ""], 2)
    assert display.entries[0]["text"] == "first line is cut he*"
    show(None, 1)
    assert display.entries[0]["text"] == " " * 20 + "o"
    show(None, 0)
    assert display.entries is own
    assert [layer for layer, _ in drawn] == [3] * 4
    show(None, 0)
    assert len(drawn) == 4


@pytest.mark.parametrize(("mode", "restored"), [(3, 3), (2, 1)])
def test_the_overlay_stops_the_animation_and_lets_it_go_on(mode: int, restored: int) -> None:
    board = KmkBoard()
    painted: list[tuple[tuple[int, int, int], int]] = []
    rgb = SimpleNamespace(
        animation_mode=mode, set_rgb=lambda colour, led: painted.append((colour, led)), show=list
    )
    with board.installed() as load:
        overlay = load("thock_kmk_output").RgbOverlay(rgb)
    overlay(None)
    assert rgb.animation_mode == mode
    overlay([None, (1, 2, 3)])
    overlay([(4, 5, 6), None])
    assert painted == [((1, 2, 3), 1), ((4, 5, 6), 0)]
    assert rgb.animation_mode == 2
    overlay(None)
    assert rgb.animation_mode == restored
