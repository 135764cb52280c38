# SPDX-License-Identifier: Apache-2.0
"""The child's inbox: order is kept, Cancel works at once, the newest Suggest wins."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.inbox import Inbox, Job
from engine.messages import Cancel, Chat, Forget, Suggest


class InboxMachine(RuleBasedStateMachine):
    """Any order of reader and worker, against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox()
        self.next = 1
        self.waiting: list[int] = []
        self.running: Job | None = None
        self.suggests: dict[int, str] = {}
        self.cancelled: set[int] = set()
        self.finished: set[int] = set()

    def number(self) -> int:
        self.next += 1
        return self.next - 1

    @rule(text=st.text("ab", max_size=3))
    def put_suggest(self, text: str) -> None:
        request = self.number()
        running = self.running.command.request if self.running is not None else 0
        for other, asked in self.suggests.items():
            grew = other == running and text.startswith(asked)
            if other not in self.finished and not grew:
                self.cancelled.add(other)
        self.suggests[request] = text
        self.waiting.append(request)
        self.inbox.put(Suggest(request=request, text=text))

    @rule(chat=st.booleans())
    def put_other(self, chat: bool) -> None:
        request = self.number()
        self.waiting.append(request)
        self.inbox.put(Chat(request=request, turns=[]) if chat else Forget(request=request))

    @rule(back=st.integers(0, 5))
    def cancel(self, back: int) -> None:
        request = self.next - back
        if request in self.waiting or (self.running and self.running.command.request == request):
            self.cancelled.add(request)
        self.inbox.put(Cancel(request=request))

    @rule()
    def take(self) -> None:
        if not self.waiting:
            return
        if self.running is not None:
            self.finished.add(self.running.command.request)
        self.running = self.inbox.take()
        assert self.running is not None
        assert self.running.command.request == self.waiting.pop(0)

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
