# SPDX-License-Identifier: Apache-2.0
"""The OLED, the lights, and the copy of both on the other half of a split board."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.messages import BitmapRun, Caps, Hello
from tests.helpers.bench import Bench
from tests.helpers.qmk_board import KEYS, MACROS, FakeBoard
from tests.helpers.qmk_build import OLED, RGB, SPLIT, VIA

TEXT = ("The five boxing wizards", "jump quickly.", "", "0123456789")
ROWS = tuple(row[:21] for row in TEXT)
OWN = 0x5A


def expected_panel(*rows: str, width: int = 128, height: int = 32) -> bytes:
    """What the core draws, from the virtual board."""
    bench = Bench(BoardConfig(panel_width=width, panel_height=height))
    bench.subscribe()
    bench.show(*rows)
    return bench.core.panel().pages


@pytest.fixture
def keyboard() -> Iterator[FakeBoard]:
    with FakeBoard(OLED + RGB + VIA) as board:
        board.start()
        board.subscribe()
        yield board


def keep_alive(keyboard: FakeBoard, seconds: int) -> None:
    for _ in range(seconds):
        keyboard.turn(1000)
        keyboard.subscribe()


def test_text_appears_on_the_panel(keyboard: FakeBoard) -> None:
    keyboard.show(*ROWS)
    keyboard.turn(times=20)
    assert keyboard.panel() == expected_panel(*ROWS)


def test_only_pages_that_changed_are_written(keyboard: FakeBoard) -> None:
    keyboard.show("same", "old", "same")
    keyboard.turn(times=20)
    keyboard.show("same", "new", "same")
    keyboard.turn(times=3)  # one page in one call, a page of 128 bytes is 4 blocks
    assert keyboard.panel()[128:160] == expected_panel("same", "new")[128:160]


def test_bitmaps_appear_on_the_panel(keyboard: FakeBoard) -> None:
    run = BitmapRun(2, 100, bytes(range(1, 23)))
    keyboard.ack(run.type, run.pack())
    keyboard.turn(times=30)
    assert keyboard.panel()[2 * 128 + 100 :][:22] == run.data


def test_a_panel_turned_by_90_degrees(tmp_path: object) -> None:
    with FakeBoard(OLED) as keyboard:
        keyboard.do("set turned 1")
        keyboard.start()
        caps = Caps.unpack(keyboard.say(Hello(1, 1, 1)).payload).capabilities
        assert (caps.width, caps.height, caps.columns, caps.rows) == (32, 128, 5, 16)
        keyboard.subscribe()
        keyboard.show("tall", "", "text")
        keyboard.turn(times=60)
        assert keyboard.panel() == expected_panel("tall", "", "text", width=32, height=128)


def test_the_boards_own_screen_shows_when_the_host_has_none(keyboard: FakeBoard) -> None:
    keyboard.do(f"set own_screen {OWN}")
    keyboard.turn(times=20)
    assert set(keyboard.panel()) == {OWN}
    keyboard.show("host")
    keyboard.turn(times=30)
    assert keyboard.panel() == expected_panel("host")
    keyboard.ack(FrameType.RELEASE, b"\1")
    keyboard.turn(times=30)
    assert set(keyboard.panel()) == {OWN}


def test_nothing_of_the_hosts_picture_stays_behind(keyboard: FakeBoard) -> None:
    keyboard.show("secret")
    keyboard.turn(times=20)
    keyboard.ack(FrameType.RELEASE, b"\1")
    keyboard.turn(times=30)
    assert not any(keyboard.panel())


def test_the_display_goes_dark_after_the_last_key_whatever_is_drawn(keyboard: FakeBoard) -> None:
    """QMK's own time-out starts anew with every change; a long answer would light it for ever."""
    for second in range(119):
        keyboard.show(f"second {second}")
        keyboard.turn(960)
        keyboard.subscribe()
    assert keyboard.lit()
    for second in range(6):
        keyboard.show(f"after {second}")
        keyboard.turn(960)
        keyboard.subscribe()
    assert not keyboard.lit()
    keyboard.key(0, 0, 4, True)
    keyboard.turn(times=20)
    assert keyboard.lit()
    assert keyboard.panel() == expected_panel("after 5")


def test_the_overlay_lies_over_the_boards_own_light(keyboard: FakeBoard) -> None:
    keyboard.ack(FrameType.LIGHTS, bytes((2, 5, 0, 1, 2, 3, 4, 5, 6)))
    keyboard.turn()
    colours = keyboard.leds()
    assert colours[5:7] == [bytes((1, 2, 3)), bytes((4, 5, 6))]
    assert colours[:5] + colours[7:] == [bytes((9, 9, 9))] * 22
    keyboard.ack(FrameType.LIGHTS, b"\0")
    keyboard.turn()
    assert keyboard.leds() == [bytes((9, 9, 9))] * 24


def test_keys_are_lit_by_their_place_where_they_have_an_led(keyboard: FakeBoard) -> None:
    """Row 3, column 5 of the board has none, row 9 no key."""
    keys = ((1, 2, 1, 2, 3), (3, 5, 4, 5, 6), (9, 0, 4, 5, 6))
    keyboard.ack(FrameType.LIGHTS, bytes((4, *itertools.chain(*keys))))
    keyboard.turn()
    colours = keyboard.leds()
    lit = {led: colour for led, colour in enumerate(colours) if colour != bytes((9, 9, 9))}
    assert lit == {8: bytes((1, 2, 3))}


def test_lights_that_the_person_switched_off_stay_off(keyboard: FakeBoard) -> None:
    keyboard.ack(FrameType.LIGHTS, bytes((1, 0, 200, 0, 0)))
    keyboard.do("set rgb_on 0")
    keyboard.turn()
    assert not any(map(any, keyboard.leds()))


def test_a_board_without_display_and_lights_says_so() -> None:
    with FakeBoard(()) as keyboard:
        keyboard.start()
        answer = keyboard.say(Hello(1, 1, 1))
        caps = Caps.unpack(answer.payload).capabilities
        assert (caps.width, caps.led_count) == (0, 0)
        assert answer.payload[20] | answer.payload[21] << 8 == KEYS | MACROS | 32


# ------------------------------------------------------------------ split boards

BOTH_HALVES = OLED + RGB + SPLIT + VIA


def carry(master: FakeBoard, other: FakeBoard) -> None:
    """The wire between the halves."""
    for frame in master.rpc:
        other.do(f"rpc {frame}")
        other.turn()
    master.rpc.clear()


def test_the_other_half_shows_the_same_and_sends_nothing() -> None:
    with FakeBoard(BOTH_HALVES) as master, FakeBoard(BOTH_HALVES) as other:
        other.do("set master 0")
        for half in (master, other):
            half.start()
        master.subscribe()
        carry(master, other)
        for row in range(4):
            master.ack(3, bytes((row, 0)) + ROWS[row].encode(), row == 0, row == 3)
            carry(master, other)
        master.ack(FrameType.LIGHTS, bytes((1, 0, 7, 8, 9)))
        carry(master, other)
        for half in (master, other):
            half.turn(50, times=30)
            assert half.panel() == expected_panel(*ROWS)
            assert half.leds()[0] == bytes((7, 8, 9))
        assert other.taken() == []
        other.turn(3000, times=2)
        other.turn(50, times=30)
        assert not any(other.panel())


def test_a_frame_that_the_other_half_did_not_take_is_asked_for_again() -> None:
    with FakeBoard(BOTH_HALVES) as master:
        master.start()
        master.subscribe()
        master.do("set rpc_works 0")
        assert master.raw(FrameType.STATUS, b"\2") == []
        master.do("set rpc_works 1")
        master.ack(FrameType.STATUS, b"\2")


def test_one_half_alone_works() -> None:
    with FakeBoard(BOTH_HALVES) as master:
        master.do("set connected 0")
        master.do("set rpc_works 0")
        master.start()
        master.subscribe()
        master.show("alone")
        master.turn(50, times=30)
        assert master.panel() == expected_panel("alone")
        assert master.rpc == []
