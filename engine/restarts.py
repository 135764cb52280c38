# SPDX-License-Identifier: Apache-2.0
"""How often a child that died may be started again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class RestartWindow:
    """At most `limit` restarts within any `window_s` seconds of `clock`."""

    def __init__(self, limit: int, window_s: float, clock: Callable[[], float]) -> None:
        self.limit = limit
        self.window_s = window_s
        self._clock = clock
        self._restarts: deque[float] = deque()

    def allow(self) -> bool:
        """True, and the restart is counted, if one more fits into the window."""
        now = self._clock()
        while self._restarts and now - self._restarts[0] >= self.window_s:
            self._restarts.popleft()
        if len(self._restarts) >= self.limit:
            return False
        self._restarts.append(now)
        return True
