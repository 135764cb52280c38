# SPDX-License-Identifier: Apache-2.0
"""One kind of output: what is wanted against what the keyboard has acknowledged.

The newest content wins; what came between is never sent. A channel takes up new content only when the
frames of the content before are all acknowledged and its interval is over, so a stream of updates can
neither flood the keyboard nor starve an update of its last frame.

Any thread may set what is wanted (one attribute is replaced as a whole); all else belongs to the
link's I/O thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from firmware_bridge.errors import BridgeError
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.messages import Message, Parts, Release

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One frame of an update."""

    message: Message
    first: bool = True
    last: bool = True


class UnfitContentError(BridgeError):
    """The content does not fit this keyboard; the message says why and holds no content."""


class Channel(Generic[T]):
    """One kind of output. None as content: nothing of ours, the part belongs to the firmware."""

    def __init__(
        self,
        part: Parts,
        steps: Callable[[T | None, T, Capabilities], list[Step]],
        interval_s: Callable[[T | None], float],
    ) -> None:
        self.part = part
        self._plan = steps
        self._interval_s = interval_s
        self._wanted: tuple[T | None, float, bool] = (None, 0.0, False)
        self._target_at = 0.0
        self._begun = False
        self._not_before = float("-inf")
        self.updates = 0
        """How often the keyboard's side of this changed, as far as we know."""
        self.forget()

    def want(self, content: T | None, now: float, *, at_once: bool = False) -> bool:
        """Any thread: this content from now on; whether it is another one than before.

        `at_once`: it does not wait for the interval since the last one to end. What comes next waits so
        much longer, so that there are no more in a second than otherwise; nor are two at once.
        """
        if content == self._wanted[0]:
            return False
        self._wanted = (content, now, at_once)
        return True

    def want_planned(self, content: T, now: float) -> None:
        """Any thread: this content at once. It was another one than is shown when it was planned for."""
        self._wanted = (content, now, True)

    def forget(self) -> None:
        """The firmware shows nothing of ours (a new subscription): send all that is wanted anew."""
        self._steps: deque[Step] = deque()
        self._target: T | None = None  # what the steps lead to
        self._settled: T | None = None  # the last target that was reached or refused
        self._shown: T | None = None
        self._shown_known = True
        self.updates += 1

    def due(self) -> float:
        """When `next_step` may have a frame: a clock time, infinite if there is nothing to do."""
        if self._steps:
            return float("-inf")
        content, _, at_once = self._wanted
        if content == self._settled:
            return float("inf")
        return self._not_before - (self._interval_s(content) if at_once else 0.0)

    def next_step(self, now: float, board: Capabilities) -> Step | None:
        """The frame to send now; the same one until `acknowledged` or `refused`.

        Raises:
            UnfitContentError: the wanted content cannot be shown; it is given up.
        """
        if not self._steps and now >= self.due():
            self._take_up(now, board)
        return self._steps[0] if self._steps else None

    def plan(self, content: T, board: Capabilities) -> list[Step] | None:
        """The steps to `content` from what is shown; None while steps to other content are under way.

        Raises:
            UnfitContentError: `content` cannot be shown.
        """
        if self._steps or not self._shown_known:
            return None
        return self._plan(self._shown, content, board)

    def free_at(self, content: T) -> float:
        """From when on `content` may be shown, if it is wanted at once; the same while nothing is taken up."""
        return self._not_before - self._interval_s(content)

    def stands_as_planned(self, content: T, updates: int) -> bool:
        """Whether a `plan` for `content` after that many `updates` is still right, and `content` is wanted."""
        return not self._steps and updates == self.updates and self._wanted[0] is content

    def take_up_planned(self, content: T, steps: list[Step], now: float) -> None:
        """`content` stood as planned `now`, and its first step went out; by now another may be wanted."""
        self._target, self._target_at = content, now
        self._begun = False
        self._steps.extend(steps)
        self._not_before = max(self._not_before, now) + self._interval_s(content)

    def acknowledged(self) -> bool:
        """The frame of the last `next_step` was carried out; whether it was the last of its update."""
        self._steps.popleft()
        self._begun = True
        if self._steps:
            return False
        self._settled = self._shown = self._target
        self._shown_known = True
        self.updates += 1
        return True

    def refused(self) -> None:
        """The keyboard will not show this content: give it up until another is wanted."""
        self._steps.clear()
        self._settled = self._target
        self._shown_known = False
        self.updates += 1

    @property
    def wanted(self) -> T | None:
        """What shall be shown, whether it is yet or not."""
        return self._wanted[0]

    @property
    def at_rest(self) -> T | None:
        """What is wanted, if the keyboard shows it and nothing is under way."""
        wanted = self._wanted[0]
        at_rest = not self._steps and self._shown_known and wanted == self._settled
        return wanted if at_rest else None

    @property
    def begun(self) -> bool:
        """Whether a frame of the update under way was acknowledged already."""
        return self._begun

    @property
    def wanted_at(self) -> float:
        """When the content under way was wanted."""
        return self._target_at

    def _take_up(self, now: float, board: Capabilities) -> None:
        self._target, self._target_at, _ = self._wanted
        self._begun = False
        try:
            self._steps.extend(self._plan_for(self._target, board))
        except UnfitContentError:
            self.refused()
            raise
        if self._steps:
            self._not_before = max(self._not_before, now) + self._interval_s(self._target)
        else:
            self._settled = self._shown = self._target

    def _plan_for(self, target: T | None, board: Capabilities) -> list[Step]:
        if target is None:
            untouched = self._shown is None and self._shown_known
            return [] if untouched else [Step(Release(self.part))]
        if not self._shown_known:
            return [Step(Release(self.part)), *self._plan(None, target, board)]
        return self._plan(self._shown, target, board)
