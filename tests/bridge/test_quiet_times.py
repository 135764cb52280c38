# SPDX-License-Identifier: Apache-2.0
"""Whose answers are whose, and when to be silent for the sake of others."""

from __future__ import annotations

import pytest

from firmware_bridge.neighbours import (
    QuietTimes,
    Sign,
    load_neighbours,
    program_of,
)
from firmware_bridge.protocol.frames import MAGIC
from tests.helpers.others import FakeOthers

VIA_VERSION = b"\x01\x00\x0c".ljust(32, b"\0")
KEYMAP = b"\x12\x00\x00\x1c".ljust(32, b"\4")
UNKNOWN = b"\x90".ljust(32, b"\7")
LIGHTS_PROGRAM = b"\x21".ljust(32, b"\0")


def test_every_row_of_the_map_has_a_source_and_no_byte_has_two_owners() -> None:
    rows = load_neighbours()
    taken: set[int] = set()
    for row in rows:
        assert 0 <= row.low <= row.high <= 0xFF
        assert row.source
        assert row.program
        assert taken.isdisjoint(range(row.low, row.high + 1))
        taken |= set(range(row.low, row.high + 1))
    assert MAGIC[0] not in taken


@pytest.mark.parametrize(
    ("first", "program"),
    [
        (0x01, "VIA"), (0x15, "VIA"), (0x16, None), (0x17, None), (0x24, "SignalRGB"), (0xFE, "Vial"),
        (0xA8, "a Keychron program"), (0xF1, "KeyPeek"), (0xDD, "a Viable program"), (0xFF, "VIA"),
        (0xE7, None), (0x90, None),
    ],
)  # fmt: skip
def test_an_answer_tells_whose_it_is(first: int, program: str | None) -> None:
    assert program_of(bytes((first,)) + bytes(31), load_neighbours()) == program


def test_no_report_is_nobodys() -> None:
    assert program_of(b"", load_neighbours()) is None


def test_one_question_is_a_hush_and_two_are_a_conversation() -> None:
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, others=FakeOthers())
    assert not quiet.notice(VIA_VERSION, 10)
    assert quiet.silent_until == 10.25
    assert quiet.program is None
    assert not quiet.notice(VIA_VERSION, 16)  # the next search for keyboards
    assert quiet.silent_until == 16.25
    assert quiet.notice(KEYMAP, 16.1)
    assert quiet.program == "VIA"
    assert quiet.silent_until == 21.1
    assert not quiet.notice(UNKNOWN, 18)  # Vial's answers look like anything
    assert quiet.silent_until == 23
    assert not quiet.notice(UNKNOWN, 24)
    assert quiet.silent_until == 23
    assert quiet.program is None


def test_where_nobody_tells_what_may_be_left_open_is_left_alone_until_the_person_says_so() -> None:
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, open_hush_s=1.8, stay_s=600)
    assert not quiet.notice(VIA_VERSION, 10)
    assert quiet.silent_until == 11.8  # VIA may take 1.5 s to its second question
    assert quiet.notice(KEYMAP, 11.5)
    assert quiet.is_left_open
    assert quiet.told == "VIA is using the keyboard. Close it, then resume."
    assert not quiet.notice(UNKNOWN, 400)
    assert not quiet.is_over(999.9)
    quiet.forget()
    assert quiet.is_over(999.9)
    assert quiet.silent_until < 0
    assert not quiet.is_left_open


def test_where_nobody_tells_a_program_that_only_sends_is_waited_for() -> None:
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, stay_s=600)
    assert not quiet.notice(LIGHTS_PROGRAM, 10)
    assert quiet.silent_until == 10.25
    assert quiet.notice(LIGHTS_PROGRAM, 11)
    assert (quiet.is_left_open, quiet.silent_until) == (False, 16)
    assert quiet.told == "SignalRGB is using the keyboard. Thock goes on after it."
    assert not quiet.notice(KEYMAP, 12)  # another one came
    assert (quiet.program, quiet.is_left_open, quiet.silent_until) == ("VIA", True, 612)
    assert not quiet.notice(LIGHTS_PROGRAM, 13)
    assert quiet.program == "VIA"


def test_a_look_at_the_list_of_keyboards_is_a_short_hush() -> None:
    others = FakeOthers()
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, open_hush_s=1.5, others=others)
    assert not quiet.look(10)
    for now in (11.0, 12.0):
        others.come = Sign.LISTED
        assert not quiet.look(now)
        assert quiet.silent_until == now + 0.25
    assert quiet.program is None
    assert others.asked == 1


def test_a_program_that_opens_the_keyboard_and_leaves_is_a_hush() -> None:
    others = FakeOthers()
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, open_hush_s=1.5, others=others)
    assert not quiet.look(10)
    others.come = Sign.OPENED
    assert not quiet.look(11)
    assert quiet.silent_until == 12.5
    assert not quiet.look(12.6)
    assert quiet.program is None
    assert others.asked == 2


@pytest.mark.parametrize("stays", [True, False])
def test_one_that_stays_or_comes_again_is_a_conversation(stays: bool) -> None:
    others = FakeOthers()
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, open_hush_s=1.5, others=others)
    assert not quiet.look(10)
    others.come = Sign.OPENED
    assert not quiet.look(11)
    if stays:
        others.program = "vial"
        assert not quiet.look(12.4)
        assert quiet.look(12.5)
    else:  # Vial opens each keyboard once a second, and the chosen one once more
        others.come = Sign.OPENED
        assert quiet.look(12.5)
    assert quiet.program == ("vial" if stays else "another program")
    assert quiet.silent_until == 17.5
    assert quiet.is_over(17.5) is not stays
    assert quiet.is_over(30) is not stays


def test_a_program_that_starts_and_will_open_the_keyboard_is_given_way_at_once() -> None:
    others = FakeOthers()
    quiet = QuietTimes(others=others)
    assert not quiet.look(10)
    others.come, others.program = Sign.STARTED, "Vial"
    assert quiet.look(11)
    assert quiet.program == "Vial"
    assert not quiet.is_over(100)
    others.program = None
    assert quiet.is_over(106)


def test_a_program_that_had_it_open_before_us_is_noticed_at_once() -> None:
    quiet = QuietTimes(others=FakeOthers("vial"))
    assert quiet.look(10)
    assert quiet.program == "vial"
