# SPDX-License-Identifier: Apache-2.0
"""The KMK module on a stand-in board: which keys are told, and as what."""

from __future__ import annotations

import pytest

from tests.helpers.kmk_board import (
    BOTH,
    Key,
    KeyboardKey,
    KmkBoard,
    ModifiedKey,
    ModifierKey,
    make_board,
    told_events,
)

A = KeyboardKey(4)
SHIFT = ModifierKey(0x02)


def test_keys_are_told_with_their_place_and_typed_all_the_same() -> None:
    board, _ = make_board()
    board.do(BOTH)
    board.tap(A, 6)
    assert told_events(board) == [(False, 1, 2, 4, True), (False, 1, 2, 4, False)]
    assert board.typed == [(A, True), (A, False)]


@pytest.mark.parametrize(
    ("place", "told"), [(None, (255, 255)), (300, (255, 255)), (0, (0, 0)), (254, (63, 2))]
)
def test_places(place: int | None, told: tuple[int, int]) -> None:
    board, _ = make_board()
    board.do(BOTH)
    board.loop(key=(A, True, place))
    assert told_events(board) == [(False, *told, 4, True)]


def test_a_board_without_columns_has_one_row() -> None:
    board = KmkBoard()
    board.start(lambda module: module.ThockCompanion(), col_pins=None)
    board.do(BOTH)
    board.loop(key=(A, True, 7))
    assert told_events(board) == [(False, 0, 7, 4, True)]


def usages(board: KmkBoard, key: Key) -> list[tuple[int, bool]]:
    board.tap(key)
    return [(event[3], event[4]) for event in told_events(board, 12)]


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
    names = ("NEXT_MODE", "ASK", "PAUSE", "CANCEL", "ACCEPT")
    for number, name in enumerate(f"THOCK_{name}" for name in names):
        board.tap(board.made[name])
        assert told_events(board) == [(True, number, 0, 0, True), (True, number, 0, 0, False)]
    board.tap(macro)
    assert told_events(board)[0] == (True, 16, 0, 0, True)
