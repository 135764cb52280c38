# SPDX-License-Identifier: Apache-2.0
"""A picture that the link shows by itself, at a key, before anybody is told of the key.

What has to be shown at a trigger is often known before. Then the way to it needs no other thread: the
I/O thread reads the key, and writes the first frame of the picture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.events import BridgeEvent
from firmware_bridge.link_channel import Channel
from firmware_bridge.link_offer import Picture
from firmware_bridge.link_plan import Plan
from firmware_bridge.protocol.key_messages import RecordKind


@dataclass(frozen=True, slots=True)
class Reflex:
    """Show `frame` if the next event after the event `after` is a press of one of `keys` (key codes) or
    one of the companion keys `macros`. Any other event takes the reflex away.

    `after` is the newest event that was taken into account for it: an event that the link knows of and
    whoever set the reflex does not makes it void.
    """

    frame: DisplayFrame = field(repr=False)
    keys: frozenset[int] = field(repr=False)
    macros: frozenset[int]
    after: BridgeEvent

    def is_set_off_by(self, kind: RecordKind, code: int) -> bool:
        """Whether this press is one of its triggers."""
        return code in (self.macros if kind is RecordKind.MACRO else self.keys)


class ReflexArc:
    """At most one reflex at a time, for one display. `set` may be called on any thread, all else is the
    I/O thread's.

    When `set` has returned, the reflex before it is gone: either it was set off before, or it never will
    be. So whatever is shown after that call stays.
    """

    def __init__(self, display: Channel[Picture]) -> None:
        self._display = display
        self._lock = threading.Lock()
        self._reflex: Reflex | None = None
        self._newest: BridgeEvent | None = None
        self._planned: tuple[Reflex, Plan] | None = None

    def set(self, reflex: Reflex | None) -> bool:
        """Replace the reflex; whether there is one to plan for."""
        with self._lock:
            self._reflex = reflex
            self._planned = None
        return reflex is not None

    @property
    def is_set(self) -> bool:
        """Whether there is a reflex."""
        return self._reflex is not None

    def prepare(self, plan_for: Callable[[Picture], Plan | None]) -> None:
        """Plan for the reflex, if that was not done yet, or for a display that has changed since."""
        reflex = self._reflex
        if reflex is None:
            self._planned = None
        elif (
            self._planned is None
            or self._planned[0] is not reflex
            or self._planned[1].updates != self._display.updates
        ):
            plan = plan_for(Picture(reflex.frame))
            self._planned = None if plan is None else (reflex, plan)

    def react(self, kind: RecordKind, code: int, now: float) -> tuple[bool, Plan | None]:
        """This press is the next event, and nobody knows of it yet.

        Whether it set the reflex off, so that its picture is wanted now; and the plan for it, if there was
        time for one.
        """
        with self._lock:
            reflex, planned = self._reflex, self._planned
            if reflex is None or reflex.after is not self._newest:
                return False, None
            if not reflex.is_set_off_by(kind, code):
                return False, None
            self._reflex = self._planned = None
            if planned is None or planned[0] is not reflex:
                return self._display.want(Picture(reflex.frame), now, at_once=True), None
            plan = planned[1]
            self._display.want_planned(plan.picture, now)
            return True, plan

    def told(self, event: BridgeEvent) -> None:
        """`event` is about to be told: a reflex that was set without knowing it is void."""
        with self._lock:
            self._reflex = self._planned = None
            self._newest = event
