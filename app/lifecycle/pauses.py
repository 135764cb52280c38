# SPDX-License-Identifier: Apache-2.0
"""Why no keys are read: the person said so, a profile does, the session is locked, the computer sleeps.

The companion is paused while there is any reason. Each reason ends by itself, so unlocking does not end
the pause of a person.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable

from app.companion.messages import Message, Pause, Resume
from app.companion.state import CompanionState


class PauseReason(enum.Enum):
    """Why no keys are read."""

    PERSON = "person"
    LOCKED = "locked"
    ASLEEP = "asleep"
    PROFILE = "profile"


class Pauses:
    """Posts Pause and Resume. Any thread may call."""

    def __init__(
        self, post: Callable[[Message], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._post = post
        self._clock = clock
        self._lock = threading.Lock()
        self._reasons: set[PauseReason] = set()
        self._seen = False
        self._awaited: bool | None = None  # what the companion was told and has not become yet
        self._timer: threading.Timer | None = None
        self._until: float | None = None

    def pause(self, minutes: float | None = None) -> None:
        """The person wants a pause, of `minutes` or until `resume`."""
        with self._lock:
            self._stop_timer()
            if minutes is not None:
                self._until = self._clock() + minutes * 60
                timer = threading.Timer(minutes * 60, lambda: self._time_is_up(timer))
                self._timer = timer
                timer.daemon = True
                timer.start()
            self._add(PauseReason.PERSON)

    def resume(self) -> None:
        """The person wants to go on. Another reason still holds."""
        with self._lock:
            self._stop_timer()
            self._drop(PauseReason.PERSON)

    def begin(self, reason: PauseReason) -> None:
        """A reason of the system begins."""
        with self._lock:
            self._add(reason)

    def end(self, reason: PauseReason) -> None:
        """It is over."""
        with self._lock:
            if reason in self._reasons:
                self._drop(reason)

    def observe(self, state: CompanionState) -> None:
        """Follow the pause key of the keyboard. It cannot end a pause of the system."""
        with self._lock:
            self._seen = state.is_paused
            if self._awaited is not None and state.is_paused is not self._awaited:
                return  # of a time before it took our message
            self._awaited = None
            if state.is_paused and not self._reasons:
                self._reasons.add(PauseReason.PERSON)
            elif not state.is_paused and self._reasons:
                self._stop_timer()
                self._reasons.discard(PauseReason.PERSON)
                if self._reasons:
                    self._tell(paused=True)

    @property
    def left_s(self) -> float | None:
        """Seconds until the pause ends by itself; None: it does not, or there is none."""
        until = self._until
        return None if until is None else max(until - self._clock(), 0.0)

    def close(self) -> None:
        """No timer is left."""
        with self._lock:
            self._stop_timer()

    def _time_is_up(self, timer: threading.Timer) -> None:
        with self._lock:
            if self._timer is timer:  # else another pause took its place just now
                self._stop_timer()
                self._drop(PauseReason.PERSON)

    def _add(self, reason: PauseReason) -> None:
        self._reasons.add(reason)
        self._tell(paused=True)

    def _drop(self, reason: PauseReason) -> None:
        self._reasons.discard(reason)
        if not self._reasons:
            self._tell(paused=False)

    def _tell(self, *, paused: bool) -> None:
        self._post(Pause() if paused else Resume())
        self._awaited = paused if self._seen is not paused else None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._until = None
