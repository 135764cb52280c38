# SPDX-License-Identifier: Apache-2.0
"""The KMK module on a stand-in board: the capture keys and the accept key."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind
from firmware_bridge.protocol.messages import (
    Caps,
    EventKinds,
    Hello,
    NakReason,
    Offer,
    SetStatus,
    Status,
    Subscribe,
)
from tests.helpers.kmk_board import (
    BOTH,
    ConsumerKey,
    Key,
    KeyboardKey,
    KeyTable,
    KmkBoard,
    ModifiedKey,
    ModifierKey,
    MouseKey,
    Screen,
    make_board,
)

ALL = Subscribe(EventKinds(15))
A, B = KeyboardKey(4), KeyboardKey(5)
SHIFT = ModifierKey(0x02)
SHIFT_BIT = 2
CHARACTERS = "".join(map(chr, range(0x20, 0x7F)))


class LayerKey(Key):
    """As kmk.modules.layers names its own."""


class CapsLock:
    on = False

    def __call__(self) -> bool:
        return self.on


def board_with_all(**arguments: object) -> tuple[KmkBoard, Screen]:
    board, screen = make_board(**{"capture": True, "caps_lock": CapsLock(), **arguments})
    board.do(ALL)
    board.loop(200)
    return board, screen


def records(board: KmkBoard) -> list[KeyRecord]:
    found: list[KeyRecord] = []
    for _ in range(8):
        board.loop()
        for frame in board.frames():
            assert frame.type is FrameType.KEY
            found += KeyReport.unpack(frame.payload).events
    return found


def kinds(board: KmkBoard) -> list[tuple[RecordKind, bool, bool]]:
    return [(event.kind, event.pressed, event.captured) for event in records(board)]


# ------------------------------------------------------------------ what is there


@pytest.mark.parametrize(
    ("arguments", "features"),
    [
        ({}, Feature(0)),
        ({"capture": True}, Feature.CAPTURE),
        ({"caps_lock": CapsLock()}, Feature.ACCEPT),
        ({"capture": True, "caps_lock": CapsLock(), "show": None}, Feature(0)),
    ],
)
def test_the_board_names_what_its_code_asked_for(
    arguments: dict[str, object], features: Feature
) -> None:
    board, _ = make_board(**arguments)
    caps = Caps.unpack(board.say(Hello(1, 1, 1)).payload).capabilities
    assert caps.features & (Feature.CAPTURE | Feature.ACCEPT) == features


# ------------------------------------------------------------------ capture


@pytest.mark.parametrize("name", ["THOCK_CAPTURE_HOLD", "THOCK_CAPTURE_TOGGLE"])
def test_captured_keys_go_to_the_host_only(name: str) -> None:
    board, screen = board_with_all()
    key = board.made[name]
    board.loop(key=(key, True, 0))
    if name.endswith("TOGGLE"):
        board.loop(key=(key, False, 0))
    board.tap(A)
    board.loop(200)
    assert screen.capturing[-1]
    board.loop(key=(key, name.endswith("TOGGLE"), 0))
    board.tap(B)
    assert board.typed == [(B, True), (B, False)]
    assert kinds(board) == [
        (RecordKind.CAPTURE, True, False),
        (RecordKind.KEY, True, True),
        (RecordKind.KEY, False, True),
        (RecordKind.CAPTURE, False, False),
        (RecordKind.KEY, True, False),
        (RecordKind.KEY, False, False),
    ]
    board.loop(200)
    assert not screen.capturing[-1]


def test_a_release_goes_where_its_press_went() -> None:
    board, _ = board_with_all()
    toggle = board.made["THOCK_CAPTURE_TOGGLE"]
    board.loop(key=(B, True, 6))
    board.tap(toggle, 0)
    board.loop(key=(A, True, 5))
    board.loop(key=(B, False, 6))
    board.tap(toggle, 0)
    other_layer = KeyboardKey(30)
    board.loop(key=(other_layer, False, 5))  # KMK looks it up anew, on the layer of now
    assert board.typed == [(B, True), (B, False)]
    board.loop()
    last = records(board)[-1]
    assert (last.keycode, last.pressed, last.captured) == (A.code, False, True)
    assert not board.keyboard.keys_pressed


@pytest.mark.parametrize(
    ("key", "passes"),
    [
        (A, False), (SHIFT, False), (ModifiedKey(A, SHIFT), False), (Key(), False), (LayerKey(), True),
        (ConsumerKey(0xB5), True), (MouseKey(1), True),
    ],
)  # fmt: skip
def test_only_keys_that_type_nothing_keep_working(key: Key, passes: bool) -> None:
    board, _ = board_with_all()
    board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
    board.tap(key)
    assert board.typed == ([(key, True), (key, False)] if passes else [])


def test_named_macros_are_told_and_do_not_type() -> None:
    macro = Key()
    board, _ = board_with_all(macros=(macro,))
    board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
    board.tap(macro)
    assert board.typed == []
    assert (RecordKind.MACRO, True, False) in kinds(board)


def test_a_capture_ends_with_the_subscription_and_nothing_sticks() -> None:
    board, _ = board_with_all()
    board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
    board.loop(key=(A, True, 5))
    board.loop(3000)
    board.loop()
    board.loop(key=(A, False, 5))
    board.tap(B)
    assert board.typed == [(B, True), (B, False)]


@pytest.mark.parametrize("wanted", [BOTH, None])
def test_without_a_host_that_asked_for_it_the_keys_capture_nothing(
    wanted: Subscribe | None,
) -> None:
    board, _ = make_board(capture=True)
    if wanted is not None:
        board.do(wanted)
    board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
    board.tap(A)
    assert board.typed == [(A, True), (A, False)]


# ------------------------------------------------------------------ accept


def offered(text: str, **arguments: object) -> KmkBoard:
    board, _ = board_with_all(**arguments)
    board.show_rows(text)
    board.loop(200)
    board.do(Offer(0, 0, len(text)))
    return board


def typed_after(board: KmkBoard, turns: int = 250) -> list[tuple[int, tuple[int, ...]]]:
    board.tap(board.made["THOCK_ACCEPT"], 0)
    for _ in range(turns):
        board.loop()
    reports, board.keyboard.reports = board.keyboard.reports, []
    return reports


def text_of(reports: list[tuple[int, tuple[int, ...]]]) -> str:
    """What a computer with the US layout makes of it."""
    shifted = {plain: name for name, plain in KeyTable.SHIFTED.items()}
    text = ""
    for mods, codes in reports:
        for code in codes:
            plain = KeyTable.PLAIN[code - 4].lower()
            text += (shifted.get(plain) or plain.upper()) if mods == SHIFT_BIT else plain
    return text


def test_the_key_types_what_is_offered_once() -> None:
    board = offered("Hello, World")
    assert text_of(typed_after(board)) == "Hello, World"
    assert typed_after(board) == []


@given(st.text(CHARACTERS, min_size=1, max_size=21))
def test_every_character_is_typed_as_it_is_shown(text: str) -> None:
    board = offered(text)
    assert text_of(typed_after(board)) == text


def test_the_host_is_told_how_many_and_of_which_offer() -> None:
    board = offered("six of")
    number = board.seq
    board.loop(key=(board.made["THOCK_ACCEPT"], True, 0))
    told = records(board)
    assert [(e.kind, e.row, e.column) for e in told] == [
        (RecordKind.MACRO, 4, 0),
        (RecordKind.ACCEPT, 6, number),
    ]


def test_held_modifiers_are_lifted_and_pressed_again() -> None:
    board = offered("ab")
    board.loop(key=(SHIFT, True, 9))
    reports = typed_after(board)
    assert [report for report in reports if report[1]] == [(0, (4,)), (0, (5,))]
    assert board.keyboard.keys_pressed == {SHIFT}
    records(board)
    board.do(Offer(0, 0, 2))
    board.tap(board.made["THOCK_ACCEPT"], 0)
    board.loop()
    board.loop(key=(SHIFT, False, 9))
    for _ in range(10):
        board.loop()
    assert not board.keyboard.keys_pressed


@pytest.mark.parametrize("why", ["caps lock", "dark", "key", "status", "captured", "not drawn"])
def test_it_types_nothing_that_the_person_cannot_mean(why: str) -> None:
    caps_lock = CapsLock()
    screen = Screen()
    show = SimpleNamespace(is_lit=lambda: why != "dark")

    class Show:
        is_lit = staticmethod(show.is_lit)

        def __call__(self, *shown: object) -> None:
            screen.shown.append((None, 0))

    board = offered("x" * 21, caps_lock=caps_lock, show=Show())
    caps_lock.on = why == "caps lock"
    if why == "key":
        board.tap(A)
        board.keyboard.reports.clear()
    elif why == "status":
        board.do(SetStatus(Status.THINKING))
        board.loop(200)
    elif why == "captured":
        board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
    elif why == "not drawn":
        board.do(SetStatus(Status.THINKING))
        board.do(SetStatus(Status.IDLE))
        assert len(screen.shown) < 3
    assert typed_after(board) == []


def test_an_offer_that_a_key_outran_is_refused() -> None:
    board, _ = board_with_all()
    board.show_rows("text")
    board.loop(200)
    board.loop(key=(A, True, 5))
    board.loop()
    board.frames()
    (answer,) = board.raw(FrameType.ACCEPT, Offer(0, 0, 4).pack())
    assert (answer.type, answer.payload[1]) == (FrameType.NAK, NakReason.BUSY)


def test_capture_and_sleep_end_the_typing() -> None:
    for end in ("capture", "sleep"):
        board = offered("a text that lasts")
        board.tap(board.made["THOCK_ACCEPT"], 0)
        if end == "capture":
            board.tap(board.made["THOCK_CAPTURE_TOGGLE"], 0)
        else:
            board.module.on_powersave_enable(board.keyboard)
        board.keyboard.send()
        board.keyboard.reports.clear()
        for _ in range(50):
            board.loop()
        assert board.keyboard.reports == []
        assert not board.keyboard.keys_pressed
