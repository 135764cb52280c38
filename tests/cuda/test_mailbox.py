# SPDX-License-Identifier: Apache-2.0
"""The mailbox between host and kernel: whatever comes between two stores, nothing torn is read or lost."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cuda import build, mailbox, shape
from engine.cuda.errors import MailboxFullError
from engine.cuda.mailbox import Candidate, Mailbox, Want
from engine.cuda.mailbox_interpreter import KernelEnd, Request


def between_lines(run: Callable[[], Any], look: Callable[[], None]) -> Any:
    """The result of `run`, with `look` called before each line of the host's mailbox code."""

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != mailbox.__file__:
            return None
        if event == "line":
            look()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)


@dataclass
class Posted:
    tokens: list[int]
    position: int
    top: int
    want: Want


@dataclass
class Desk:
    """Both ends over the same memory. What the kernel answers follows from the request alone."""

    ring: int
    chance: random.Random
    posted: dict[int, Posted] = field(default_factory=dict)
    computed: list[int] = field(default_factory=list)
    taken: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.requests = np.zeros(self.ring * shape.REQUEST_UNITS * 4, dtype=np.uint32)
        self.replies = np.zeros(self.ring * shape.REPLY_UNITS * 4, dtype=np.uint32)
        control = np.zeros(4, dtype=np.uint32)
        self.host = Mailbox(self.requests, self.replies, control, self.ring)
        self.kernel = KernelEnd(self.requests, self.replies, control, self.ring, 1)
        self._answering: Any = iter(())

    def post(self, want: Want) -> int:
        number = len(self.posted) + 1
        count = self.chance.randint(1, 9)
        # The tokens say whose they are.
        tokens = [number * 100 + i for i in range(count)]
        one = Posted(tokens, number * 7, self.chance.randint(1, 16), want)
        self.posted[number] = one
        between_lines(
            lambda: self.host.post(number, tokens, one.position, 3, one.top, want),
            lambda: self.kernel_runs(self.chance.randint(0, 3)),
        )
        return number

    def kernel_runs(self, steps: int) -> None:
        for _ in range(steps):
            if next(self._answering, None) is not None:
                continue
            request = self.kernel.look()
            if request is None:
                continue
            self.taken.append(request)
            self.check_taken(request)
            self._answering = self.kernel.answering(
                request, _candidates(request), request.number * 11
            )

    def check_taken(self, request: Request) -> None:
        one = self.posted[request.number]
        assert request.number == len(self.taken)
        assert (request.position, request.program, request.top) == (one.position, 3, one.top)
        if request.passed_over:
            assert one.want & Want.REPLACEABLE
            assert request.number < max(self.posted), "the newest was passed over"
            return
        assert list(request.tokens) == one.tokens
        self.computed.append(request.number)

    def check_reply(self, number: int) -> None:
        if not self.host.answered(number):
            return
        found = self.host.reply(number)
        request = self.taken[number - 1]
        assert found.passed_over == request.passed_over
        assert found.device_ns == number * 11
        assert [c.token for c in found.candidates] == [c.token for c in _candidates(request)]


def _candidates(request: Request) -> list[Candidate]:
    if request.passed_over:
        return []
    return [Candidate(request.number * 100 + i, 1.5, -0.5) for i in range(request.top)]


ACTIONS = st.lists(
    st.sampled_from([Want.TOP, Want.REPLACEABLE, Want.LOGITS, None]), min_size=1, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 3, 8]), ACTIONS, st.integers(0, 2**32 - 1))
def test_requests_are_read_whole_in_order_and_the_newest_wins(
    ring: int, actions: list[Want | None], seed: int
) -> None:
    desk = Desk(ring, random.Random(seed))
    for want in actions:
        if want is None:
            desk.kernel_runs(desk.chance.randint(0, 40))
        elif len(desk.posted) - desk.host.served() < ring:
            desk.post(want)
        for number in list(desk.posted)[-ring:]:
            desk.check_reply(number)
    desk.kernel_runs(1000)
    assert desk.host.served() == len(desk.posted) == len(desk.taken)
    must = [n for n, one in desk.posted.items() if not one.want & Want.REPLACEABLE]
    assert set(must) <= set(desk.computed), "one that had to be computed was passed over"
    assert desk.computed == sorted(desk.computed)
    if desk.posted:
        assert desk.computed[-1] == len(desk.posted), "the newest was not computed"


@pytest.mark.parametrize("want", [Want.TOP, Want.REPLACEABLE])
def test_a_full_ring_is_drained_without_the_host(want: Want) -> None:
    desk = Desk(shape.MAX_RING, random.Random(1))
    for number in range(1, shape.MAX_RING + 1):
        desk.posted[number] = Posted([number], 0, 1, want)
        desk.host.post(number, [number], 0, 3, 1, want)
    before = desk.requests.copy()
    with pytest.raises(MailboxFullError, match="2048 requests wait"):
        desk.host.post(shape.MAX_RING + 1, [1], 0, 3, 1, want)
    assert np.array_equal(desk.requests, before)
    desk.kernel_runs(shape.MAX_RING * 6)
    everything = list(range(1, shape.MAX_RING + 1))
    assert desk.computed == (everything if want is Want.TOP else everything[-1:])
    assert desk.host.served() == shape.MAX_RING
    desk.posted[shape.MAX_RING + 1] = Posted([5], 0, 1, want)
    desk.host.post(shape.MAX_RING + 1, [5], 0, 3, 1, want)


@pytest.mark.parametrize("count", [1, 3, 4, 128])
def test_no_store_changes_a_unit_and_its_number_together(count: int) -> None:
    # So the order within one store, which numpy may choose, does not matter either.
    desk = Desk(2, random.Random(0))
    for number in (1, 2, 3):
        seen = [desk.requests.copy()]
        between_lines(
            # mypy infers no type for a lambda with a default
            lambda number=number: desk.host.post(  # type: ignore[misc]
                number, [number * 1000 + i for i in range(count)], number, 9, number, Want.LOGITS
            ),
            lambda: seen.append(desk.requests.copy()),  # noqa: B023  called in this round only
        )
        seen.append(desk.requests.copy())
        assert len({s.tobytes() for s in seen}) >= 4
        for old, new in itertools.pairwise(seen):
            units = (old != new).reshape(-1, 4)
            assert not (units[:, :3].any(axis=1) & units[:, 3]).any()
        # All of it is there before any unit is valid.
        valid = [i for i, s in enumerate(seen) if (s.reshape(-1, 4)[:, 3] == number).any()]
        rest = np.delete(seen[valid[0]].reshape(2, -1, 4)[number % 2], 3, axis=1)[1:]
        assert np.array_equal(
            rest, np.delete(seen[-1].reshape(2, -1, 4)[number % 2], 3, axis=1)[1:]
        )
        desk.kernel_runs(0)
        desk.kernel.answer(
            Request(number, (), 0, 0, 1, Want.PING), [], 0
        )  # so that the next one finds room


def test_a_bell_is_a_request_without_tokens() -> None:
    desk = Desk(2, random.Random(0))
    desk.posted[1] = Posted([], 0, 1, Want.PING)
    between_lines(lambda: desk.host.ring_bell(1, Want.PING), lambda: desk.kernel.look())
    request = desk.kernel.look()
    assert request == Request(1, (), 0, 0, 1, Want.PING)


@pytest.mark.parametrize("ring", [0, 2049])
def test_impossible_rings_are_refused(ring: int) -> None:
    with pytest.raises(ValueError, match="1 to 2048"):
        Mailbox(*(np.zeros(4, dtype=np.uint32) for _ in range(3)), ring)


def test_kernel_and_host_agree_on_the_flags() -> None:
    text = build.sources()["request.cuh"]
    for name, value in (
        ("WANT_LOGITS", Want.LOGITS),
        ("ALL_LOGITS", Want.ALL_LOGITS),
        ("PING", Want.PING),
        ("REPLACEABLE", Want.REPLACEABLE),
        ("PASSED_OVER", mailbox.PASSED_OVER),
    ):
        assert f"{name} = {int(value)}" in text
