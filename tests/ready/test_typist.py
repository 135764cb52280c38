# SPDX-License-Identifier: Apache-2.0
"""The bench's typists keep their pace, hesitate and mistype as they are said to, and write the question."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bench.typist import Pause, Trace, Typist, questions
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.usage import Usage

US = load_layout("us")


def written(trace: Trace) -> str:
    """What the presses leave on the screen."""
    text = ""
    for press in trace.presses:
        if press.key.usage == Usage.BACKSPACE:
            text = text[:-1]
        else:
            sign = US.sign(press.key.usage, shift=False, altgr=False, caps_lock=False)
            assert isinstance(sign, str)
            text += sign
    return text


@given(st.integers(0, 10_000), st.sampled_from(questions()), st.sampled_from([60, 90, 120]))
def test_every_typo_is_taken_back(seed: int, question: str, speed: int) -> None:
    trace = Typist(speed, US, seed=seed).trace(question)
    assert written(trace) == question
    assert all(press.gap_s > 0 and 0.05 < press.hold_s < 0.2 for press in trace.presses)
    assert trace.trigger_gap_s > 0


@pytest.mark.parametrize("speed", [60, 90, 120])
def test_the_pace_is_the_one_that_was_asked_for(speed: int) -> None:
    """Of keys that are typed without a hesitation; bursts make some words quicker."""
    typist = Typist(speed, US)
    presses = [p for q in questions() * 5 for p in typist.trace(q).presses]
    fluent = [p.gap_s for p in presses if p.gap_s < 0.5 and p.key.usage != Usage.BACKSPACE]
    assert 60 / (5 * statistics.fmean(fluent)) == pytest.approx(speed, rel=0.12)
    assert any(p.gap_s > 0.5 for p in presses)
    share = sum(p.key.usage == Usage.BACKSPACE for p in presses) / len(presses)
    assert 0.01 < share < 0.1


def test_keys_of_one_hand_come_later_than_those_of_two() -> None:
    typist = Typist(60, US)
    mixed = [typist.trace("dkdkdkasdfasdf").presses for _ in range(300)]
    alternating = statistics.fmean(p[i].gap_s for p in mixed for i in range(1, 6) if len(p) == 14)
    one_hand = statistics.fmean(p[i].gap_s for p in mixed for i in range(8, 14) if len(p) == 14)
    assert one_hand > 1.1 * alternating


@pytest.mark.parametrize(
    ("pause", "low_s", "high_s"),
    [(Pause.RHYTHM, 0.08, 0.2), (Pause.THINK, 0.6, 1.2), (Pause.MIXED, 0.3, 0.7)],
)
def test_the_pause_before_the_trigger(pause: Pause, low_s: float, high_s: float) -> None:
    typist = Typist(120, US, pause)
    gaps = [typist.trace("why").trigger_gap_s for _ in range(500)]
    assert low_s < statistics.fmean(gaps) < high_s
    assert (min(gaps) >= 0.5) == (pause is Pause.THINK)


def test_the_same_seed_types_the_same_way() -> None:
    traces = [Typist(90, US, seed=seed).trace("why is the sky blue") for seed in (3, 3, 4)]
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]


@pytest.mark.parametrize("speed", [0, 9, 301])
def test_impossible_speeds_are_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="words per minute"):
        Typist(speed, US)


def test_the_questions_can_be_typed_and_are_short() -> None:
    assert len(questions()) >= 30
    assert all(5 <= len(question) <= 40 and question.isascii() for question in questions())
