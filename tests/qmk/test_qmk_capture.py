# SPDX-License-Identifier: Apache-2.0
"""Capture (keys to the host only) and the accept key (types what the display shows)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.messages import SetStatus, Status
from tests.helpers.qmk_board import (
    ACCEPT,
    CAPTURE,
    COMBO_EVENT,
    ENCODER_EVENT,
    KEYS,
    MACROS,
    FakeBoard,
)
from tests.helpers.qmk_build import ACCEPT as ACCEPT_KEY
from tests.helpers.qmk_build import OLED, PLAIN, RGB, VIA

ACCEPT_CODE, HOLD, TOGGLE = 0x77C4, 0x77C5, 0x77C6
A, B, LSFT = 4, 5, 0xE1
MO_1, VOLUME_UP, MACRO = 0x5221, 0xA9, 0x7700
GLYPH = bytes((0x3C, 0x7E, 0x7E, 0x7E, 0x3C, 0x00))
GLYPH_PLACE = slice(19 * 6, 20 * 6)
EVERYTHING = KEYS | MACROS | CAPTURE | ACCEPT


@pytest.fixture(params=[PLAIN, VIA], ids=["plain", "via"])
def keyboard(request: pytest.FixtureRequest) -> Iterator[FakeBoard]:
    with FakeBoard(request.param + OLED + RGB + ACCEPT_KEY) as board:
        board.start()
        board.subscribe(EVERYTHING)
        yield board


def begin(keyboard: FakeBoard, key: int = TOGGLE) -> None:
    keyboard.key(2, 2, key, True)
    assert keyboard.capturing()
    assert [(e.kind, e.pressed) for e in keyboard.events()] == [(2, True)]


def test_captured_keys_go_to_the_host_only(keyboard: FakeBoard) -> None:
    begin(keyboard)
    keyboard.key(2, 2, TOGGLE, False)
    keyboard.tap(0, 0, A)
    keyboard.tap(0, 1, 0x0200 | B)
    keyboard.tap(0, 2, 0x4104, taps=1)  # a layer tap, tapped
    keyboard.tap(0, 3, 0x2104)  # a mod tap, held
    keyboard.tap(0, 4, MACRO)
    assert keyboard.typed == []
    events = keyboard.events(8)
    assert [e.keycode for e in events if e.pressed and e.kind == 0] == [A, LSFT, B, A, 0xE0]
    assert all(event.captured for event in events if event.kind == 0)
    assert [e.row for e in events if e.kind == 1] == [16, 16]
    keyboard.tap(2, 2, TOGGLE)
    assert [(e.kind, e.pressed) for e in keyboard.events()] == [(2, False)]
    keyboard.tap(0, 0, A)
    assert keyboard.typed == [(A, True), (A, False)]
    assert not any(event.captured for event in keyboard.events())


def test_hold_captures_while_it_is_down(keyboard: FakeBoard) -> None:
    begin(keyboard, HOLD)
    keyboard.tap(0, 0, A)
    keyboard.key(2, 2, HOLD, False)
    assert not keyboard.capturing()
    keyboard.tap(0, 0, B)
    assert keyboard.typed == [(B, True), (B, False)]
    assert [(e.kind, e.pressed) for e in keyboard.events()] == [
        (0, True),
        (0, False),
        (2, False),
        (0, True),
        (0, False),
    ]


def test_either_key_can_end_what_the_other_began(keyboard: FakeBoard) -> None:
    begin(keyboard, HOLD)
    keyboard.tap(2, 3, TOGGLE)
    assert not keyboard.capturing()
    keyboard.key(2, 2, HOLD, False)
    keyboard.events()
    begin(keyboard, TOGGLE)
    keyboard.key(2, 3, HOLD, True)
    assert keyboard.capturing()
    keyboard.key(2, 3, HOLD, False)
    assert not keyboard.capturing()


def test_a_release_goes_where_its_press_went(keyboard: FakeBoard) -> None:
    """Otherwise Shift or a letter would stick on the computer."""
    keyboard.key(0, 0, LSFT, True)
    begin_events = keyboard.events()
    assert len(begin_events) == 1
    begin(keyboard)
    keyboard.key(0, 0, LSFT, False)
    assert keyboard.typed == [(LSFT, True), (LSFT, False)]
    keyboard.key(0, 1, A, True)
    keyboard.tap(2, 2, TOGGLE)
    assert not keyboard.capturing()
    keyboard.key(0, 1, A, False)
    assert keyboard.typed == [(LSFT, True), (LSFT, False)]
    released = keyboard.events()[-1]
    assert (released.keycode, released.pressed, released.captured) == (A, False, True)


@pytest.mark.parametrize("kind", [ENCODER_EVENT, COMBO_EVENT])
def test_events_outside_the_matrix_never_leave_a_key_stuck(keyboard: FakeBoard, kind: int) -> None:
    keyboard.key(253, 0, A, True, kind=kind)
    keyboard.events()
    begin(keyboard)
    keyboard.key(253, 0, A, False, kind=kind)
    keyboard.key(253, 0, B, True, kind=kind)
    assert keyboard.typed == [(A, True), (A, False)]


@pytest.mark.parametrize("keycode", [MO_1, VOLUME_UP, 0x4104, 0x7800, 0x7480, 0x7C00])
def test_layers_lights_and_media_keep_working(keyboard: FakeBoard, keycode: int) -> None:
    begin(keyboard)
    keyboard.tap(0, 0, keycode)
    assert keyboard.typed == [(keycode, True), (keycode, False)]


@pytest.mark.parametrize("keycode", [0x52A2, 0x5700, 0x7C16, 0x7E40, 0x8001])
def test_everything_that_might_type_is_kept_from_the_computer(
    keyboard: FakeBoard, keycode: int
) -> None:
    begin(keyboard)
    keyboard.tap(0, 0, keycode)
    assert keyboard.typed == []


def test_capture_needs_a_host_that_asked_for_it(keyboard: FakeBoard) -> None:
    keyboard.subscribe(KEYS | MACROS)
    keyboard.tap(2, 2, TOGGLE)
    assert not keyboard.capturing()
    keyboard.tap(0, 0, A)
    assert keyboard.typed == [(A, True), (A, False)]


@pytest.mark.parametrize("end", ["silence", "release", "suspend", "hello"])
def test_capture_ends_with_the_subscription(keyboard: FakeBoard, end: str) -> None:
    begin(keyboard)
    if end == "silence":
        keyboard.turn(3000, times=2)
    elif end == "release":
        keyboard.ack(FrameType.RELEASE, b"\x08")
    elif end == "suspend":
        keyboard.do("suspend")
        keyboard.do("wake")
    else:
        keyboard.raw(FrameType.HELLO, bytes((1, 0, 0, 0, 1, 1)))
    assert not keyboard.capturing()
    keyboard.typed.clear()
    keyboard.tap(0, 0, A)
    assert keyboard.typed == [(A, True), (A, False)]


def test_no_frame_begins_a_capture(keyboard: FakeBoard) -> None:
    for kind in range(16):
        for payload in (b"", b"\1", b"\1\1", b"\x0f", b"\0\0\1"):
            if not (kind == FrameType.RELEASE and payload == b"\x0f"):
                keyboard.raw(kind, payload)
            assert not keyboard.capturing()


def test_the_end_of_a_capture_reaches_the_host_when_the_ring_is_full(keyboard: FakeBoard) -> None:
    keyboard.do(f"key 2 2 {TOGGLE:x} 1 0 1")
    for number in range(60):
        keyboard.do(f"key 0 0 4 {(number + 1) % 2} 0 1")
    keyboard.do(f"key 2 2 {TOGGLE:x} 0 0 1")
    keyboard.do(f"key 2 2 {TOGGLE:x} 1 0 1")
    keyboard.turn()
    kinds = [(event.kind, event.pressed) for event in keyboard.events(12)]
    assert len(kinds) == 32
    assert (kinds[0], kinds[-1]) == ((2, True), (2, False))


def test_a_capture_that_cannot_be_told_does_not_begin(keyboard: FakeBoard) -> None:
    for number in range(31):
        keyboard.do(f"key 0 0 4 {(number + 1) % 2} 0 1")
    keyboard.do(f"key 2 2 {TOGGLE:x} 1 0 1")
    keyboard.turn()
    assert not keyboard.capturing()


def test_the_person_sees_that_keys_are_captured(keyboard: FakeBoard) -> None:
    begin(keyboard)
    keyboard.turn(times=30)
    assert keyboard.panel()[GLYPH_PLACE] == GLYPH
    assert keyboard.leds()[2 * 6 + 2] == bytes((255, 0, 0))
    keyboard.tap(2, 2, TOGGLE)
    keyboard.turn(times=30)
    assert not any(keyboard.panel())
    assert keyboard.leds()[2 * 6 + 2] == bytes((9, 9, 9))


def test_the_glyph_lies_over_text_and_beside_the_status(keyboard: FakeBoard) -> None:
    keyboard.show("M" * 21)
    keyboard.ack(FrameType.STATUS, SetStatus(Status.LISTENING).pack())
    keyboard.turn(times=30)
    before = keyboard.panel()
    begin(keyboard)
    keyboard.turn(times=30)
    during = keyboard.panel()
    assert during[GLYPH_PLACE] == GLYPH
    assert during[: 19 * 6] + during[20 * 6 :] == before[: 19 * 6] + before[20 * 6 :]
    keyboard.tap(2, 2, TOGGLE)
    keyboard.turn(times=30)
    assert keyboard.panel() == before


def test_without_display_and_lights_there_is_no_capture() -> None:
    with FakeBoard(PLAIN) as keyboard:
        keyboard.start()
        (answer,) = keyboard.raw(FrameType.SUBSCRIBE, bytes((KEYS | CAPTURE,)))
        assert answer.payload == bytes((FrameType.SUBSCRIBE, 7))  # unsupported
