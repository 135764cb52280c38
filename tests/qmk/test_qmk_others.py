# SPDX-License-Identifier: Apache-2.0
"""The VIA app beside us on a board with VIA: VIA form, and who answers the app's first question when."""

from __future__ import annotations

import pytest

from firmware_bridge.protocol.frames import FrameType, decode, is_frame
from tests.helpers.qmk_board import KEYS, MACROS, FakeBoard, events_of
from tests.helpers.qmk_build import ALL_REPORTS, CHANNEL, KEYCHRON, PLAIN, VIA, VIAL

VIA_FORM = 16
VIA_VERSION = b"\x01\x00\x0c"  # of shims/via.h
FIRST_QUESTION = b"\x01\xaa\xbb\xcc".ljust(32, b"\0")
ASKS_ON = b"\x0d".ljust(32, b"\0")
LATE = (VIA_VERSION + b"\xcc").ljust(32, b"\0")
WITH_VIA_FORM = {
    "VIA": VIA,
    "Vial": VIAL + ALL_REPORTS,
    "Keychron": KEYCHRON + ALL_REPORTS,
}


@pytest.fixture(params=WITH_VIA_FORM)
def build(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return WITH_VIA_FORM[request.param]


def begin(keyboard: FakeBoard) -> None:
    """A host is subscribed, and nothing was sent for a while."""
    keyboard.start()
    keyboard.subscribe(KEYS | MACROS | VIA_FORM)
    keyboard.turn(100)


def told_press(keyboard: FakeBoard) -> None:
    """A key that the host has just been told of."""
    keyboard.key(0, 0, 4, True)
    keyboard.turn()
    (frame,) = keyboard.taken()
    assert events_of(frame)


def outcome(keyboard: FakeBoard) -> tuple[list[bytes], list[bytes]]:
    """What went out since the last call: by us, by via.c."""
    sent, via = keyboard.sent, keyboard.via
    keyboard.sent, keyboard.via = [], []
    return sent, via


@pytest.mark.parametrize(
    ("build", "has_it"),
    [
        (PLAIN, False), (VIA, True), (VIAL, False), (CHANNEL, False), (VIA + ALL_REPORTS, True),
        (VIAL + ALL_REPORTS, True), (KEYCHRON + ALL_REPORTS, True),
    ],
)  # fmt: skip
def test_only_a_module_that_sees_vias_commands_has_via_form(
    build: tuple[str, ...], has_it: bool
) -> None:
    with FakeBoard(build, channel=build is CHANNEL) as keyboard:
        keyboard.start()
        (answer,) = keyboard.raw(FrameType.SUBSCRIBE, bytes((KEYS | VIA_FORM,)))
        assert (answer.type is FrameType.ACK) == has_it


def test_what_we_send_begins_like_vias_answer(build: tuple[str, ...]) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        keyboard.key(0, 0, 4, True)
        keyboard.turn()
        (report,) = keyboard.sent
        assert report[:4] == VIA_VERSION + b"\x4c"
        assert decode(report).type is FrameType.KEY


def test_the_first_question_is_answered_at_once_when_nothing_of_ours_is_under_way(
    build: tuple[str, ...],
) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        keyboard.hid(FIRST_QUESTION)
        assert outcome(keyboard) == ([], [LATE])
        keyboard.turn(10, times=50)
        assert outcome(keyboard) == ([], [])


def test_else_it_is_answered_once_later(build: tuple[str, ...]) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        told_press(keyboard)
        keyboard.hid(FIRST_QUESTION)
        keyboard.turn(10, times=9)
        assert outcome(keyboard) == ([], [])
        keyboard.turn(10, times=20)
        assert outcome(keyboard) == ([LATE], [])


@pytest.mark.parametrize("request_", [ASKS_ON, FIRST_QUESTION])
def test_or_not_at_all_when_the_next_question_shows_that_it_was(
    request_: bytes, build: tuple[str, ...]
) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        told_press(keyboard)
        keyboard.hid(FIRST_QUESTION)
        keyboard.turn(10)
        keyboard.hid(request_)
        sent, via = outcome(keyboard)
        assert (sent, len(via)) == ([], 1)  # to the second question
        keyboard.turn(10, times=50)
        assert outcome(keyboard) == ([], [])


def test_frames_and_keys_wait_for_the_other_program(build: tuple[str, ...]) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        keyboard.hid(FIRST_QUESTION)
        outcome(keyboard)
        keyboard.key(0, 0, 4, True)
        assert keyboard.raw(FrameType.STATUS, b"\2") == []
        keyboard.turn(100)
        assert [frame.type for frame in keyboard.raw(FrameType.STATUS, b"\2")] == [FrameType.ACK]
        keyboard.turn(100, times=20)
        keyboard.ack(FrameType.SUBSCRIBE, bytes((KEYS | MACROS | VIA_FORM,)))
        keyboard.turn(100, times=10)
        (frame,) = keyboard.taken()
        assert [event.keycode for event in events_of(frame)] == [4]


def test_sleep_forgets_the_answer_that_waits(build: tuple[str, ...]) -> None:
    with FakeBoard(build) as keyboard:
        begin(keyboard)
        told_press(keyboard)
        keyboard.hid(FIRST_QUESTION)
        keyboard.do("suspend")
        keyboard.turn(100, times=3)
        keyboard.do("wake")
        keyboard.turn(100, times=3)
        assert not [report for report in outcome(keyboard)[0] if not is_frame(report)]


def test_what_is_no_frame_goes_on_to_the_boards_own_programs() -> None:
    with FakeBoard(KEYCHRON + ALL_REPORTS) as keyboard:
        keyboard.start()
        keyboard.hid(b"\xaa")
        assert keyboard.other == ["keychron"]
        keyboard.hid(b"\x08\x03\x01")
        assert [answer[0] for answer in keyboard.via] == [0xFF]
