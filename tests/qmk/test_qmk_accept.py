# SPDX-License-Identifier: Apache-2.0
"""The accept key types a piece of the text that the display shows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.messages import SetStatus, Status
from tests.helpers.qmk_board import (
    ACCEPT,
    CAPTURE,
    CLIENT,
    KEYS,
    MACROS,
    OFFER,
    FakeBoard,
    with_right_crc,
)
from tests.helpers.qmk_build import ACCEPT as ACCEPT_KEY
from tests.helpers.qmk_build import CHANNEL, OLED, PLAIN, RGB, VIA

ACCEPT_CODE, TOGGLE = 0x77C4, 0x77C6
EVERYTHING = KEYS | MACROS | CAPTURE | ACCEPT


@pytest.fixture(params=[PLAIN, VIA], ids=["plain", "via"])
def keyboard(request: pytest.FixtureRequest) -> Iterator[FakeBoard]:
    with FakeBoard(request.param + OLED + RGB + ACCEPT_KEY) as board:
        board.start()
        board.subscribe(EVERYTHING)
        yield board


def offer(keyboard: FakeBoard, row: int, column: int, count: int) -> None:
    keyboard.ack(OFFER, bytes((row, column, count)))


def accepted(keyboard: FakeBoard) -> str:
    """Press the accept key; what was typed. The host, if it allows the key, was told how much."""
    keyboard.characters.clear()
    keyboard.tap(3, 3, ACCEPT_CODE)
    keyboard.turn(times=30)
    text = "".join(character for character, _ in keyboard.characters)
    counts = [event.row for event in keyboard.events(8) if event.kind == 3]
    assert sum(counts) == len(text)
    return text


def show_offer(keyboard: FakeBoard) -> None:
    keyboard.show("the quick", "1 brown  2 black")
    offer(keyboard, 1, 1, 6)
    keyboard.turn(times=30)


def test_accept_types_the_offered_piece_of_the_shown_text_once(keyboard: FakeBoard) -> None:
    show_offer(keyboard)
    keyboard.key(3, 3, ACCEPT_CODE, True)
    told = [(e.kind, e.row) for e in keyboard.events(12) if e.pressed]
    assert told == [(1, 4), (3, 6)]
    assert "".join(character for character, _ in keyboard.characters) == " brown"
    assert keyboard.typed == []
    keyboard.key(3, 3, ACCEPT_CODE, False)
    assert accepted(keyboard) == ""


def test_one_character_is_typed_in_a_turn(keyboard: FakeBoard) -> None:
    show_offer(keyboard)
    keyboard.key(3, 3, ACCEPT_CODE, True)
    for count in range(1, 7):
        assert len(keyboard.characters) == count
        keyboard.turn()


def test_held_and_one_shot_modifiers_do_not_change_what_is_typed(keyboard: FakeBoard) -> None:
    show_offer(keyboard)
    keyboard.do("set mods 2")
    keyboard.do("set oneshot 2")
    keyboard.key(3, 3, ACCEPT_CODE, True)
    keyboard.turn(times=10)
    assert {mods for _, mods in keyboard.characters} == {0}


def test_a_new_picture_takes_the_offer_away(keyboard: FakeBoard) -> None:
    show_offer(keyboard)
    keyboard.show("the quick", "1 brown  2 black")
    keyboard.turn(times=30)
    assert accepted(keyboard) == ""


@pytest.mark.parametrize(
    "hidden",
    ["not drawn yet", "bitmap", "given back", "dark", "caps lock", "capturing", "withdrawn"],
)
def test_what_the_person_does_not_see_is_not_typed(keyboard: FakeBoard, hidden: str) -> None:
    if hidden == "not drawn yet":
        keyboard.show("the quick", "1 brown  2 black")
        keyboard.turn(times=30)
        keyboard.show("the other", "1 brown  2 black")
        report_turns = keyboard.seq
        # the offer and the key in one turn: the changed rows cannot be on the panel yet
        keyboard.do("hid " + offer_report(keyboard, report_turns + 1).hex())
        keyboard.do(f"key 3 3 {ACCEPT_CODE:x} 1 0 1")
        keyboard.turn()
        assert keyboard.characters == []
        return
    show_offer(keyboard)
    match hidden:
        case "bitmap":
            keyboard.ack(FrameType.BITMAP, b"\0\0\xff")
        case "given back":
            keyboard.ack(FrameType.RELEASE, b"\1")
        case "dark":
            for _ in range(65):
                keyboard.turn(1000)
                keyboard.subscribe(EVERYTHING)
            assert not keyboard.lit()
        case "caps lock":
            keyboard.do("set caps_lock 1")
        case "capturing":
            keyboard.key(2, 2, TOGGLE, True)
        case _:
            offer(keyboard, 1, 1, 0)
    keyboard.turn(times=30)
    keyboard.taken()
    assert accepted(keyboard) == ""


def offer_report(keyboard: FakeBoard, seq: int) -> bytes:
    report = bytearray(encode(Frame(FrameType.HELLO, CLIENT, seq & 255, b"\1\1\6"), 32))
    report[2] = 0x10 | OFFER
    return with_right_crc(report)


@pytest.mark.parametrize(
    ("code", "typed"), [(0x04, ""), (0x7703, ""), (0xE1, " brown"), (0x5220, " brown"), (0x4104, " brown")],
    ids=["a", "VIA macro", "shift", "layer", "layer-tap, held"],
)  # fmt: skip
def test_a_key_or_macro_since_takes_the_offer_back(
    keyboard: FakeBoard, code: int, typed: str
) -> None:
    show_offer(keyboard)
    keyboard.tap(1, 1, code)
    keyboard.turn(times=5)
    keyboard.events(8)
    assert accepted(keyboard) == typed


def test_characters_under_the_status_glyph_are_not_typed(keyboard: FakeBoard) -> None:
    keyboard.show("0123456789abcdefghijk")
    offer(keyboard, 0, 15, 6)
    keyboard.turn(times=30)
    keyboard.ack(FrameType.STATUS, SetStatus(Status.THINKING).pack())
    keyboard.turn(times=30)
    assert accepted(keyboard) == ""
    offer(keyboard, 0, 15, 5)
    assert accepted(keyboard) == "fghij"


def test_the_host_must_allow_the_accept_key(keyboard: FakeBoard) -> None:
    keyboard.subscribe(KEYS | MACROS | CAPTURE)
    keyboard.show("the quick")
    (answer,) = keyboard.raw(OFFER, bytes((0, 0, 3)))
    assert answer.payload == bytes((OFFER, 6))
    keyboard.turn(times=30)
    assert accepted(keyboard) == ""


def test_an_offer_that_was_made_before_is_void_when_the_host_stops_allowing(
    keyboard: FakeBoard,
) -> None:
    show_offer(keyboard)
    keyboard.subscribe(KEYS | MACROS)
    assert accepted(keyboard) == ""


@pytest.mark.parametrize("payload", [b"\4\0\1", b"\0\x15\0", b"\0\0\x16", b"\3\x14\2"])
def test_an_offer_outside_the_text_is_refused(keyboard: FakeBoard, payload: bytes) -> None:
    keyboard.show("x")
    assert keyboard.raw(OFFER, payload)[0].payload == bytes((OFFER, 4))


@pytest.mark.parametrize("payload", [b"", b"\0\0", b"\0\0\1\0"])
def test_an_offer_of_another_length_is_refused(keyboard: FakeBoard, payload: bytes) -> None:
    keyboard.show("x")
    assert keyboard.raw(OFFER, payload)[0].payload == bytes((OFFER, 3))


def test_an_offer_without_text_on_the_display_is_refused(keyboard: FakeBoard) -> None:
    assert keyboard.raw(OFFER, bytes((0, 0, 1)))[0].payload == bytes((OFFER, 4))


def test_suspend_ends_the_typing(keyboard: FakeBoard) -> None:
    show_offer(keyboard)
    keyboard.key(3, 3, ACCEPT_CODE, True)
    keyboard.turn(times=2)
    keyboard.do("suspend")
    keyboard.do("wake")
    typed = len(keyboard.characters)
    keyboard.turn(times=20)
    assert len(keyboard.characters) == typed == 3


def test_a_build_without_the_accept_key_knows_no_offers() -> None:
    with FakeBoard(CHANNEL + OLED, channel=True) as keyboard:
        keyboard.start()
        keyboard.subscribe()
        keyboard.show("text")
        (answer,) = keyboard.raw(OFFER, bytes((0, 0, 4)))
        assert answer.payload == bytes((OFFER, 2))
        assert keyboard.raw(FrameType.SUBSCRIBE, bytes((ACCEPT,)))[0].payload[1] == 7
