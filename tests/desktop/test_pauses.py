# SPDX-License-Identifier: Apache-2.0
"""Reasons to pause, in every order, against a companion that takes its messages late."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.messages import Message, Pause, Resume
from app.companion.state import CompanionState
from app.lifecycle.pauses import PauseReason, Pauses
from tests.helpers.companion import Desk
from tests.helpers.waiting import wait_until

ACTIONS = ["pause", "resume", "lock", "unlock", "sleep", "wake", "key", "take", "take", "tell"]


class LateCompanion:
    """Takes messages, and tells states, only when it is told to."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.inbox: deque[Message] = deque()
        self.states: deque[CompanionState] = deque()
        self.pauses = Pauses(self.inbox.append)

    def take(self) -> None:
        if self.inbox:
            self._step(self.inbox.popleft())

    def key(self) -> None:
        """The pause key of the keyboard."""
        before = self.desk.state
        self.desk.press_macro(2)
        self._note(before)

    def tell(self) -> None:
        if self.states:
            self.pauses.observe(self.states.popleft())

    def settle(self) -> None:
        while self.inbox or self.states:
            self.take()
            self.tell()

    def _step(self, message: Message) -> None:
        before = self.desk.state
        self.desk.post(message)
        self._note(before)

    def _note(self, before: CompanionState) -> None:
        if self.desk.state != before:
            self.states.append(self.desk.state)


def do(late: LateCompanion, action: str) -> None:
    match action:
        case "pause":
            late.pauses.pause()
        case "resume":
            late.pauses.resume()
        case "lock":
            late.pauses.begin(PauseReason.LOCKED)
        case "unlock":
            late.pauses.end(PauseReason.LOCKED)
        case "sleep":
            late.pauses.begin(PauseReason.ASLEEP)
        case "wake":
            late.pauses.end(PauseReason.ASLEEP)
        case "key":
            late.key()
        case "take":
            late.take()
        case "tell":
            late.tell()


@given(st.lists(st.sampled_from(ACTIONS), max_size=40))
def test_no_key_is_read_while_the_system_forbids_it(actions: list[str]) -> None:
    late = LateCompanion()
    system: set[str] = set()
    for action in actions:
        do(late, action)
        if action in ("lock", "sleep"):
            system.add(action)
        elif action in ("unlock", "wake"):
            system.discard({"unlock": "lock", "wake": "sleep"}[action])
    late.settle()
    assert late.desk.state.is_paused or not system
    do(late, "unlock")
    do(late, "wake")
    do(late, "resume")
    late.settle()
    assert not late.desk.state.is_paused


@given(st.lists(st.sampled_from(["lock", "unlock", "take", "tell"]), max_size=20))
def test_unlocking_does_not_end_a_pause_of_the_person(actions: list[str]) -> None:
    late = LateCompanion()
    do(late, "pause")
    for action in actions:
        do(late, action)
    do(late, "unlock")
    late.settle()
    assert late.desk.state.is_paused


def test_the_pause_key_makes_a_pause_of_the_person_and_ends_it() -> None:
    late = LateCompanion()
    late.key()
    late.settle()
    do(late, "lock")
    do(late, "unlock")
    late.settle()
    assert late.desk.state.is_paused
    late.key()
    late.settle()
    do(late, "lock")
    do(late, "unlock")
    late.settle()
    assert not late.desk.state.is_paused


def test_the_pause_key_cannot_end_a_locked_session() -> None:
    late = LateCompanion()
    do(late, "lock")
    late.settle()
    late.key()
    assert not late.desk.state.is_paused
    late.settle()
    assert late.desk.state.is_paused


def test_an_old_state_does_not_lose_the_time_of_a_pause() -> None:
    late = LateCompanion()
    before = late.desk.state
    late.pauses.pause(15)
    late.pauses.observe(before)  # published before the companion took the message
    late.settle()
    left = late.pauses.left_s
    assert left is not None
    assert left > 800
    late.pauses.close()


def test_the_time_of_a_pause_ends_it() -> None:
    posted: list[Message] = []
    pauses = Pauses(posted.append)
    pauses.pause(0.05 / 60)
    wait_until(lambda: len(posted) == 2)
    assert posted == [Pause(), Resume()]
    assert pauses.left_s is None


@pytest.mark.parametrize("second", [None, 30.0])
def test_a_second_pause_takes_the_place_of_the_first(second: float | None) -> None:
    posted: list[Message] = []
    pauses = Pauses(posted.append)
    pauses.pause(30.0)
    first = pauses._timer
    assert first is not None
    pauses.pause(second)
    assert first.finished.is_set(), "it was called off"
    first.function()  # as if it had been too late for that
    assert Resume() not in posted
    pauses.close()
