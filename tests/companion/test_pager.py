# SPDX-License-Identifier: Apache-2.0
"""Pages turn when they are read, not before, and never past the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.pager import Pager


def test_a_page_turns_when_it_is_read() -> None:
    pager = Pager(characters_per_second=10)
    pager.update(["x" * 20, "y" * 20, "z"], 2, now=100)
    assert pager.lines == ("x" * 20, "y" * 20)
    assert pager.deadline == pytest.approx(104)
    pager.turn_if_due(103.9)
    assert pager.has_more
    pager.turn_if_due(104)
    assert pager.lines == ("z",)
    assert pager.deadline is None


def test_a_short_page_stays_for_a_second_and_a_half() -> None:
    pager = Pager(characters_per_second=60)
    pager.update(["a", "b"], 1, now=0)
    assert pager.deadline == 1.5


def test_the_reader_waits_for_a_page_that_grows() -> None:
    pager = Pager(characters_per_second=10)
    pager.update(["x" * 10], 2, now=0)
    pager.update(["x" * 10, "y" * 10, "z"], 2, now=30)
    assert pager.deadline == pytest.approx(31)


def test_turning_by_hand_goes_round() -> None:
    pager = Pager(characters_per_second=10)
    pager.update(["a", "b", "c"], 1, now=0)
    seen = []
    for now in range(4):
        seen.append(pager.lines[0])
        pager.turn(now)
    assert seen == ["a", "b", "c", "a"]


def test_a_display_with_more_rows_has_fewer_pages() -> None:
    pager = Pager(characters_per_second=10)
    pager.update(["a", "b", "c"], 1, now=0)
    pager.turn(0)
    pager.turn(0)
    pager.update(["a", "b", "c"], 4, now=1)
    assert pager.lines == ("a", "b", "c")


def test_a_text_without_lines_has_one_empty_page() -> None:
    pager = Pager(characters_per_second=10)
    pager.update([], 4, now=0)
    pager.turn(1)
    assert pager.lines == ()
    assert pager.deadline is None


@given(st.lists(st.text("ab", min_size=1, max_size=8), max_size=30), st.integers(1, 8))
def test_reading_on_shows_every_line_once_and_in_order(lines: list[str], rows: int) -> None:
    pager = Pager(characters_per_second=15)
    pager.update(lines, rows, now=0)
    seen = list(pager.lines)
    while (deadline := pager.deadline) is not None:
        pager.turn_if_due(deadline)
        seen += pager.lines
    assert seen == lines
