# SPDX-License-Identifier: Apache-2.0
"""Signs of life of the engine child: whether the worker gets on with its job, told by a thread beside it.

That thread alone proves nothing, for it lives on while the worker waits for a lock that nobody lets go. So it
speaks only when the worker has asked whether to stop (before each token), or when the process computes or
reads: one step of a long prompt takes seconds on a slow processor, and asks nothing meanwhile.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.channel import ChannelClosedError
from engine.inbox import Job

if sys.platform != "win32":
    import resource

PULSE_S = 1.0
# Time on the processor between two looks that is more than this thread's own, which takes some 0.1 ms.
_COMPUTES_S = 0.005
# Looks without one step of the worker, however much it computes. No step takes so long.
_MOST_LOOKS = 600


@dataclass(frozen=True, slots=True)
class Effort:
    """What the process has done so far: seconds on the processor, pages and blocks read."""

    computed_s: float
    read: int = 0


def effort() -> Effort:
    """That of this process, all threads together."""
    if sys.platform == "win32":
        return Effort(time.process_time())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Effort(used.ru_utime + used.ru_stime, used.ru_majflt + used.ru_inblock)


class Pulse:
    """Looks at one job at a time. `is_elsewhere`: another machine computes, which has limits of its own."""

    def __init__(self, tell: Callable[[int], None], measure: Callable[[], Effort] = effort) -> None:
        """`tell` sends the sign of life for a request; it may raise ChannelClosedError."""
        self._tell = tell
        self._measure = measure
        self._job: Job | None = None
        self._ended = threading.Event()
        self._seen: tuple[Job | None, int, Effort] = (None, 0, Effort(0.0))
        self._still = 0
        self.is_elsewhere = False

    def start(self) -> None:
        """Look once a second from now on, on a thread of its own."""
        threading.Thread(target=self._live, name="engine-pulse", daemon=True).start()

    def close(self) -> None:
        """No more signs."""
        self._ended.set()

    def watch(self, job: Job | None) -> None:
        """The worker begins `job`; None: it waits for the next one."""
        self._job = job

    def look(self) -> int | None:
        """The request whose job gets on; None: there is no job, or it does not."""
        job = self._job
        if job is None:
            return None
        old_job, old_looks, old = self._seen
        looks, now = job.looks, self._measure()
        self._seen = (job, looks, now)
        has_stepped = job is not old_job or looks != old_looks or job.is_resting
        self._still = 0 if has_stepped else self._still + 1
        is_busy = now.computed_s - old.computed_s >= _COMPUTES_S or now.read != old.read
        is_alive = has_stepped or self.is_elsewhere or (is_busy and self._still < _MOST_LOOKS)
        return job.command.request if is_alive else None

    def _live(self) -> None:
        while not self._ended.wait(PULSE_S):
            request = self.look()
            if request is not None:
                try:
                    self._tell(request)
                except ChannelClosedError:
                    return  # the reader sees the same end
