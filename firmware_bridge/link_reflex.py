# SPDX-License-Identifier: Apache-2.0
"""A picture that the link shows by itself, at a key, before anybody is told of the key.

What has to be shown at a trigger is often known before. Then the way to it needs no other thread: the
I/O thread reads the key, and writes the first frame of the picture.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.events import BridgeEvent, KeyPressed, MacroTriggered
from firmware_bridge.link_channel import Channel
from firmware_bridge.link_offer import Picture


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

    def is_set_off_by(self, event: BridgeEvent) -> bool:
        """Whether `event` is one of its triggers."""
        match event:
            case KeyPressed(keycode=keycode):
                return keycode in self.keys
            case MacroTriggered(number=number):
                return number in self.macros
            case _:
                return False


class ReflexArc:
    """At most one reflex at a time, for one display. `set` may be called on any thread.

    When `set` has returned, the reflex before it is gone: either it was set off before, or it never will
    be. So whatever is shown after that call stays.
    """

    def __init__(self, display: Channel[Picture]) -> None:
        self._display = display
        self._lock = threading.Lock()
        self._reflex: Reflex | None = None
        self._newest: BridgeEvent | None = None

    def set(self, reflex: Reflex | None) -> None:
        """Replace the reflex."""
        with self._lock:
            self._reflex = reflex

    def react(self, event: BridgeEvent, now: float) -> bool:
        """The I/O thread is about to tell `event`; whether it set the reflex off."""
        with self._lock:
            reflex, self._reflex = self._reflex, None
            before, self._newest = self._newest, event
            if reflex is None or reflex.after is not before or not reflex.is_set_off_by(event):
                return False
            return self._display.want(Picture(reflex.frame), now, at_once=True)
