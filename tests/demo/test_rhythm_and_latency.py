# SPDX-License-Identifier: Apache-2.0
"""The typist keeps the pace that was asked for, and percentiles are what they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.demo.latency import LatencyTable
from app.demo.rhythm import TypingRhythm

TEXT = "the quick brown fox jumps over the lazy dog and then it sleeps " * 60


@pytest.mark.parametrize("speed", [40, 90, 200])
def test_mean_pace_is_the_speed(speed: int) -> None:
    gaps = list(TypingRhythm(speed).gaps(TEXT))
    words_per_minute = len(TEXT) / 5 / (sum(gaps) / 60)
    assert words_per_minute == pytest.approx(speed, rel=0.06)
    assert max(gaps) > 2 * min(gaps)


def test_same_seed_same_typist() -> None:
    assert list(TypingRhythm(60, 7).gaps(TEXT)) == list(TypingRhythm(60, 7).gaps(TEXT))
    assert list(TypingRhythm(60, 7).gaps(TEXT)) != list(TypingRhythm(60, 8).gaps(TEXT))


@pytest.mark.parametrize("speed", [0, -5, 1e9])
def test_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="words per minute"):
        TypingRhythm(speed)


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(1, 100))
def test_percentile_leaves_its_share_below(samples: list[float], percent: float) -> None:
    table = LatencyTable()
    for sample in samples:
        table.record("x", sample)
    value = table.percentile("x", percent)
    assert value in samples
    assert sum(s <= value for s in samples) >= len(samples) * percent / 100 - 1e-9
    assert sum(s < value for s in samples) < len(samples) * percent / 100 + 1e-9


def test_table_has_a_row_for_each_name() -> None:
    table = LatencyTable()
    table.record("one", 0.001)
    table.record("two", 0.002)
    rows = table.rows()
    assert len(rows) == 3
    assert "1.00" in rows[1]
    with pytest.raises(ValueError, match="no sample"):
        table.percentile("three", 50)
