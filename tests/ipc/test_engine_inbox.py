# SPDX-License-Identifier: Apache-2.0
"""The child's inbox: order is kept, Cancel works at once, the newest Suggest wins, a Prepare comes last."""

from __future__ import annotations

import threading
import time

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.inbox import Inbox, Job
from engine.messages import Cancel, Chat, Forget, Prepare, Suggest


class InboxMachine(RuleBasedStateMachine):
    """Any order of reader and worker, against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.next = 1
        self.waiting: list[int] = []
        self.ahead: list[int] = []
        self.prepares: set[int] = set()
        self.running: Job | None = None
        self.suggests: dict[int, tuple[str, int]] = {}
        self.cancelled: set[int] = set()
        self.finished: set[int] = set()

    def number(self) -> int:
        self.next += 1
        return self.next - 1

    def interrupt(self) -> None:
        """What a command other than Prepare does to a Prepare that runs."""
        if self.running is not None and self.running.command.request in self.prepares:
            self.cancelled.add(self.running.command.request)

    @rule(text=st.text("ab", max_size=3), words=st.integers(1, 3))
    def put_suggest(self, text: str, words: int) -> None:
        request = self.number()
        self.interrupt()
        running = self.running.command.request if self.running is not None else 0
        for other, (asked, most) in self.suggests.items():
            grew = other == running and most == 1 and text.startswith(asked)
            if other not in self.finished and not grew:
                self.cancelled.add(other)
        self.suggests[request] = text, words
        self.waiting.append(request)
        self.inbox.put(Suggest(request=request, text=text, words=words))

    @rule(chat=st.booleans())
    def put_other(self, chat: bool) -> None:
        request = self.number()
        self.interrupt()
        self.waiting.append(request)
        self.inbox.put(Chat(request=request, turns=[]) if chat else Forget(request=request))

    @rule()
    def put_prepare(self) -> None:
        request = self.number()
        self.cancelled |= self.prepares - self.finished
        self.prepares.add(request)
        self.ahead.append(request)
        ask = Chat(request=request, turns=[])
        self.inbox.put(Prepare(request=request, context="", ask=ask))

    @rule(back=st.integers(0, 5))
    def cancel(self, back: int) -> None:
        request = self.next - back
        is_running = self.running is not None and self.running.command.request == request
        if is_running or request in (*self.waiting, *self.ahead):
            self.cancelled.add(request)
        self.inbox.put(Cancel(request=request))

    @rule()
    def take(self) -> None:
        if not self.waiting and not self.ahead:
            return
        if self.running is not None:
            self.finished.add(self.running.command.request)
        self.running = self.inbox.take()
        assert self.running is not None
        assert self.running.command.request == (self.waiting or self.ahead).pop(0)

    @invariant()
    def the_running_job_knows_whether_it_is_cancelled(self) -> None:
        if self.running is not None:
            request = self.running.command.request
            assert self.running.cancelled() == (request in self.cancelled)


TestInbox = InboxMachine.TestCase


def test_close_wakes_and_cancels() -> None:
    inbox = Inbox()
    inbox.put(Forget(request=1))
    running = inbox.take()
    inbox.put(Forget(request=2))
    inbox.close()
    assert running is not None
    assert running.cancelled()
    assert inbox.take() is None


def test_waiting_for_more_ends_with_the_cancellation() -> None:
    inbox = Inbox()
    inbox.put(Prepare(request=1, context="", ask=Chat(request=1, turns=[])))
    job = inbox.take()
    assert job is not None
    assert not job.cancelled_within(0.0)
    threading.Timer(0.05, lambda: inbox.put(Suggest(request=2, text="a"))).start()
    started = time.monotonic()
    assert job.cancelled_within(20.0)
    assert time.monotonic() - started < 10.0
