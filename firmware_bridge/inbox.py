# SPDX-License-Identifier: Apache-2.0
"""A queue for one reader, whose waits end.

`queue.SimpleQueue.get(timeout)` of CPython 3.11 can wait for ever: it takes the time that is left again after
its lock was free for a moment, and passes it on although it is below 0, which means "no limit". That happens
when the reader is held up for longer than its timeout. `queue.Queue` is right, and several times slower.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """Any thread may `put`; one thread gets. Neither waits for the other."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._bell = threading.Lock()  # held while nothing new is there
        self._bell.acquire()

    def put(self, item: T) -> None:
        """Append; returns at once."""
        self._items.append(item)
        try:
            self._bell.release()
        except RuntimeError:
            return  # it was rung already

    def __len__(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items

    def get(self, timeout: float | None = None) -> T:
        """The oldest item; waits for one, `timeout` seconds at most.

        Raises:
            queue.Empty: none came.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._items.popleft()
            except IndexError:
                left = -1 if end is None else max(end - time.monotonic(), 0.0)
            # A ring for an item that was taken already wakes once for nothing.
            if not self._bell.acquire(timeout=left) and not self._items:
                raise queue.Empty
