# SPDX-License-Identifier: Apache-2.0
"""Raw HID in the builds of QMK: who answers what, and when the keyboard keeps silent."""

from __future__ import annotations

import random

import pytest

from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import NONCE_TRANSFORM, Caps, Hello, SetStatus, Status
from tests.helpers.qmk_board import (
    ACCEPT,
    CAPTURE,
    CLIENT,
    KEYS,
    MACROS,
    POLL,
    FakeBoard,
    events_of,
)
from tests.helpers.qmk_build import ACCEPT as ACCEPT_KEY
from tests.helpers.qmk_build import ALL_REPORTS, CHANNEL, KEYCHRON, OLED, PLAIN, RGB, VIA, VIAL

FULL = OLED + RGB
BUILDS = {
    "plain": PLAIN, "via": VIA, "vial": VIAL, "channel": CHANNEL, "vial, all": VIAL + ALL_REPORTS,
    "keychron, all": KEYCHRON + ALL_REPORTS,
}  # fmt: skip
SEES_ALL = ["plain", "via", "vial, all", "keychron, all"]
VIA_VERSION = bytes([1])
FRAME = Frame(FrameType.HELLO, CLIENT, 1, Hello(1, 1, 1).pack())


def board(build: str, *options: str) -> FakeBoard:
    return FakeBoard((*BUILDS[build], *FULL, *options), channel=build == "channel")


@pytest.mark.parametrize("build", BUILDS)
def test_hello_is_answered_with_what_the_board_has(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        answer = keyboard.say(Hello(0xCAFE, 1, 1))
        caps = Caps.unpack(answer.payload)
        found = caps.capabilities
        assert caps.proof == 0xCAFE ^ NONCE_TRANSFORM
        assert (found.report_length, found.width, found.height, found.rotation) == (32, 128, 32, 0)
        assert (found.columns, found.rows, found.led_count, found.ring_size) == (21, 4, 24, 32)
        features = answer.payload[20] | answer.payload[21] << 8
        own = {"channel": Feature.POLL, "plain": 0, "vial": 0}
        assert features == 63 | 64 | 512 | own.get(build, Feature.VIA_FORM)


def test_the_uid_comes_from_the_hardware_id_and_is_stable() -> None:
    uids = set()
    for _ in range(2):
        with board("plain") as keyboard:
            keyboard.start()
            uids.add(Caps.unpack(keyboard.say(Hello(1, 1, 1)).payload).capabilities.uid)
    (uid,) = uids
    assert len(set(uid)) > 2


@pytest.mark.parametrize("build", BUILDS)
def test_nothing_is_sent_before_a_host_spoke(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        for column in range(6):
            keyboard.tap(0, column, 4 + column)
        keyboard.turn(50, times=100)
        assert keyboard.taken() == []


@pytest.mark.parametrize("build", ["via", "vial", "channel"])
def test_via_commands_reach_via_and_only_via_answers_them(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        keyboard.hid(VIA_VERSION)
        assert (keyboard.via, keyboard.sent) == ([bytes([1, 0, 12]).ljust(32, b"\0")], [])


@pytest.mark.parametrize("build", ["via", "vial"])
def test_a_frame_with_a_wrong_crc_is_answered_by_via_as_unknown(build: str) -> None:
    report = bytearray(encode(FRAME, 32))
    report[31] ^= 1
    with board(build) as keyboard:
        keyboard.start()
        keyboard.hid(bytes(report))
        assert keyboard.sent == []
        assert [answer[0] for answer in keyboard.via] == [0xFF]


@pytest.mark.parametrize("build", ["vial", "channel"])
def test_where_via_sends_the_buffer_each_frame_gets_exactly_one_report(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.do("hid " + ("08" if build == "channel" else "e7") + encode(FRAME, 32).hex()[2:])
        keyboard.turn(times=5)
        assert (len(keyboard.via), keyboard.sent) == (1, [])


def test_a_channel_frame_keeps_the_command_that_it_came_with() -> None:
    with board("channel") as keyboard:
        keyboard.start()
        for command in (7, 8):
            keyboard.hid(bytes((command,)) + encode(FRAME, 32)[1:])
            (report,) = keyboard.via
            keyboard.via.clear()
            assert report[:2] == bytes((command, 0x4C))
            assert decode(b"\xe7" + report[1:]).type == FrameType.CAPS


@pytest.mark.parametrize(
    "report",
    [
        bytes((8, 0x4C)),  # no frame at all
        bytes((8, 0x4D)) + encode(FRAME, 32)[2:],  # another channel
        bytes((9,)) + encode(FRAME, 32)[1:],  # save: never ours
        encode(FRAME, 32),  # a bare frame: on this board nobody takes it
    ],
)
def test_what_is_not_a_channel_frame_is_unknown(report: bytes) -> None:
    with board("channel") as keyboard:
        keyboard.start()
        keyboard.hid(report)
        assert [answer[0] for answer in keyboard.via] == [0xFF]


def test_the_keyboards_own_hook_keeps_working_beside_the_channel() -> None:
    with board("channel") as keyboard:
        keyboard.start()
        keyboard.hid(b"\xaa")
        assert keyboard.other == ["keychron"]


def test_channel_events_are_fetched_and_never_sent() -> None:
    with board("channel") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        for column in range(4):
            keyboard.key(0, column, 4 + column, True)
        keyboard.turn(times=50)
        assert keyboard.sent == []
        fetched = []
        for expected_first in (0, 3):
            (frame,) = keyboard.raw(POLL)
            assert (frame.type, frame.seq) == (FrameType.KEY, keyboard.seq)
            assert frame.payload[0] == expected_first
            fetched += [event.keycode for event in events_of(frame)]
        assert fetched == [4, 5, 6, 7]
        keyboard.ack(POLL)  # nothing left: ACK instead of KEY


def test_poll_is_an_unknown_type_where_events_come_by_themselves() -> None:
    with board("via") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        (answer,) = keyboard.raw(POLL)
        assert (answer.type, answer.payload) == (FrameType.NAK, bytes((POLL, 2)))


def test_poll_needs_a_subscription_and_an_empty_payload() -> None:
    with board("channel") as keyboard:
        keyboard.start()
        assert keyboard.raw(POLL)[0].payload == bytes((POLL, 6))
        keyboard.subscribe()
        assert keyboard.raw(POLL, b"\0")[0].payload == bytes((POLL, 3))


def test_polled_events_are_a_choice_of_other_builds_too() -> None:
    with board("vial", "-DTHOCK_ENABLE_POLL=1") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.key(0, 0, 4, True)
        keyboard.turn(times=20)
        assert keyboard.taken() == []
        (frame,) = keyboard.raw(POLL)
        assert [event.keycode for event in events_of(frame)] == [4]


@pytest.mark.parametrize("build", SEES_ALL)
def test_events_are_held_for_3_seconds_after_another_program_spoke(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.hid(bytes((0x11,)).ljust(32, b"\0"))  # VIA: number of layers
        keyboard.via.clear()
        keyboard.key(0, 0, 4, True)
        keyboard.turn(100, times=25)
        assert keyboard.taken() == []
        keyboard.subscribe()  # our own frames are answered all the same
        keyboard.turn(100, times=4)
        assert keyboard.taken() == []
        keyboard.turn(100, times=2)
        (frame,) = keyboard.taken()
        assert [event.keycode for event in events_of(frame)] == [4]


@pytest.mark.parametrize("build", SEES_ALL)
def test_the_question_with_which_our_host_begins_holds_nothing(build: str) -> None:
    with board(build) as keyboard:
        keyboard.start()
        keyboard.hid(VIA_VERSION)
        keyboard.via.clear()
        keyboard.subscribe()
        keyboard.key(0, 0, 4, True)
        keyboard.turn(times=5)
        (frame,) = keyboard.taken()
        assert [event.keycode for event in events_of(frame)] == [4]


@pytest.mark.parametrize("build", SEES_ALL)
def test_answers_to_polls_are_never_held(build: str) -> None:
    with board(build, "-DTHOCK_ENABLE_POLL=1") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.hid(bytes((0x11,)).ljust(32, b"\0"))
        keyboard.via.clear()
        keyboard.key(0, 0, 4, True)
        keyboard.turn(times=5)
        (frame,) = keyboard.raw(POLL)
        assert [event.keycode for event in events_of(frame)] == [4]


def test_a_report_is_only_stored_by_the_handler_and_done_by_housekeeping() -> None:
    """More reports in one turn than the store has places for: the rest is lost, nothing breaks."""
    with board("via") as keyboard:
        keyboard.start()
        for seq in range(6):
            report = encode(Frame(FrameType.HELLO, CLIENT, seq, Hello(1, 1, 1).pack()), 32)
            keyboard.do(f"hid {report.hex()}")
        keyboard.turn()
        assert [frame.seq for frame in keyboard.taken()] == [0]  # one in a turn
        keyboard.turn(times=10)
        assert [frame.seq for frame in keyboard.taken()] == [1, 2, 3]


def test_at_most_one_key_frame_goes_out_in_a_turn() -> None:
    with board("plain") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        for column in range(6):
            keyboard.do(f"key 0 {column} {4 + column:x} 1 0 1")
            keyboard.do(f"key 1 {column} {10 + column:x} 1 0 1")
        counts = []
        for _ in range(5):
            keyboard.turn()
            counts.append(len(keyboard.taken()))
        assert counts == [1, 1, 1, 1, 0]


def test_a_board_with_its_own_hook_hands_reports_over() -> None:
    with board("plain", "-DTHOCK_DISABLE_RAW_HID_HANDLER") as keyboard:
        keyboard.start()
        keyboard.hid(encode(FRAME, 32))
        keyboard.hid(VIA_VERSION)
        assert keyboard.other == ["handled 1", "handled 0"]
        assert [frame.type for frame in keyboard.taken()] == [FrameType.CAPS]


def test_suspend_stops_everything_and_forgets_what_was_typed() -> None:
    with board("via") as keyboard:
        keyboard.start()
        keyboard.subscribe(KEYS | MACROS | CAPTURE)
        keyboard.show("private")
        keyboard.do("key 0 0 4 1 0 1")
        keyboard.do(f"hid {encode(FRAME, 32).hex()}")
        for _ in range(3):
            keyboard.do("suspend")  # QMK calls it again and again
        keyboard.turn(100, times=10)
        assert keyboard.taken() == []
        keyboard.do("wake")
        keyboard.turn(times=20)
        assert keyboard.taken() == []
        assert not any(keyboard.panel())
        (answer,) = keyboard.raw(FrameType.STATUS, SetStatus(Status.THINKING).pack())
        assert answer.payload == bytes((FrameType.STATUS, 6))  # no longer subscribed
        keyboard.subscribe()
        assert keyboard.events() == []


def test_silence_of_the_host_gives_everything_back() -> None:
    with board("plain") as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.ack(FrameType.LIGHTS, bytes((1, 0, 9, 8, 7)))
        keyboard.show("text")
        keyboard.turn(times=10)
        assert keyboard.leds()[0] == bytes((9, 8, 7))
        keyboard.turn(3000, times=2)
        keyboard.turn(times=20)
        assert not any(keyboard.panel())
        assert keyboard.leds()[0] == bytes((9, 9, 9))


@pytest.mark.parametrize("build", BUILDS)
def test_random_reports_and_keys(build: str) -> None:
    """Nothing of it may trip the sanitizers or the fake's own checks; the board still answers."""
    chance = random.Random(build)
    with board(build, *ACCEPT_KEY) as keyboard:
        keyboard.start()
        keyboard.subscribe(KEYS | MACROS | CAPTURE | ACCEPT)
        for _ in range(500):
            choice = chance.random()
            if choice < 0.3:
                payload = bytes(chance.choices(range(256), k=chance.randrange(25)))
                keyboard.raw(
                    chance.randrange(16), payload, chance.choice((CLIENT, CLIENT, 0, 8)),
                    chance.random() < 0.5, chance.random() < 0.5,
                )  # fmt: skip
            elif choice < 0.4:
                keyboard.taken()
                keyboard.hid(bytes(chance.choices(range(256), k=32)))
                keyboard.via.clear()  # whatever VIA made of it
            elif choice < 0.45:
                keyboard.do(f"turn {chance.choice((1, 50, 700, 4000, 2**31))}")
                keyboard.taken()
                keyboard.raw(FrameType.SUBSCRIBE, bytes((15,)))
            elif choice < 0.47:
                keyboard.do("suspend")
                keyboard.do("wake")
            else:
                keycode = chance.choice(
                    (chance.randrange(0x10000), 0x77C0 + chance.randrange(7), 4)
                )
                keyboard.key(
                    chance.choice((0, 3, 240, 255)), chance.choice((0, 5, 6, 255)), keycode,
                    chance.random() < 0.5, chance.randrange(3), chance.choice((1, 1, 2, 4)),
                )  # fmt: skip
        keyboard.do("turn 4000")
        keyboard.do("turn 2000")
        keyboard.taken()
        assert keyboard.say(Hello(1, 1, 1)).type == FrameType.CAPS
