# SPDX-License-Identifier: Apache-2.0
"""Commands on their way from the child's reader thread to its worker, their order and cancellation."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from engine.messages import Cancel, Chat, Choose, Complete, Forget, LoadModel, Prepare, Suggest

Work: TypeAlias = LoadModel | Suggest | Chat | Complete | Prepare | Choose | Forget


class Job:
    """One command to be carried out, and whether it still should be."""

    def __init__(self, command: Work) -> None:
        self.command = command
        self._cancelled = threading.Event()
        self.looks = 0
        """How often the worker asked whether to stop: signs that it gets on."""
        self.is_resting = False
        """The worker waits on purpose."""

    def cancelled(self) -> bool:
        """Asked by the worker before every token."""
        self.looks += 1
        return self._cancelled.is_set()

    def cancelled_within(self, seconds: float) -> bool:
        """Wait for so long, or until it is cancelled; whether it is."""
        self.is_resting = True
        try:
            return self._cancelled.wait(seconds)
        finally:
            self.is_resting = False

    def cancel(self) -> None:
        """Ask the worker to stop. The command is answered all the same."""
        self._cancelled.set()


class Inbox:
    """Jobs in the order in which they came. Suggestions are newest-wins; Cancel takes effect at once.

    A running Suggest for words whose text the newer one only continues is finished: cancelled at every
    key, it would never answer a person who types faster than the model reads.

    A Prepare comes after everything else: it waits until nothing else does, and while it runs any other
    command cancels it. Of several the newest wins.

    A cancelled job keeps its place: the worker answers it without computing anything.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._ahead: deque[Job] = deque()  # Prepares that wait
        self._running: Job | None = None
        self._closed = False

    def put(self, command: Work | Cancel) -> None:
        """Called by the reader thread; never blocks on the worker."""
        with self._changed:
            if isinstance(command, Cancel):
                self._cancel(lambda work: work.request == command.request)
                return
            if isinstance(command, Prepare):
                self._cancel(lambda work: isinstance(work, Prepare))
                self._ahead.append(Job(command))
                self._changed.notify()
                return
            self._cancel(lambda work: isinstance(work, Prepare) and self._is_running(work))
            if isinstance(command, Suggest):
                newest = command.text
                self._cancel(
                    lambda work: (
                        isinstance(work, Suggest)
                        and not (
                            self._is_running(work)
                            and work.words == 1
                            and newest.startswith(work.text)
                        )
                    )
                )
            self._waiting.append(Job(command))
            self._changed.notify()

    def take(self) -> Job | None:
        """Called by the worker, which is then done with its last job. None: the inbox was closed."""
        with self._changed:
            self._running = None
            self._changed.wait_for(lambda: self._waiting or self._ahead or self._closed)
            if self._closed:
                return None
            self._running = (self._waiting or self._ahead).popleft()
            return self._running

    def close(self) -> None:
        """Cancel everything; `take` gives None from now on."""
        with self._changed:
            self._closed = True
            self._cancel(lambda work: True)
            self._changed.notify_all()

    def _is_running(self, work: Work) -> bool:
        return self._running is not None and self._running.command is work

    def _cancel(self, chosen: Callable[[Work], bool]) -> None:
        running = [self._running] if self._running is not None else []
        for job in (*running, *self._waiting, *self._ahead):
            if chosen(job.command):
                job.cancel()
