# SPDX-License-Identifier: Apache-2.0
"""What the keyboard was told last, so that only changes go out.

Whether one is connected, and which parts it has, is the keyboard port's business: it keeps the newest
of each kind and shows it to whatever board comes.
"""

from __future__ import annotations

from app.companion.lights import DARK, LightRules, SlowLights
from app.companion.modes.base import View
from app.companion.picture import Size
from app.companion.ports import KeyboardPort
from app.companion.screen import Screen
from app.companion.status_bar import Situation
from firmware_bridge.display.frame import DisplayFrame, TextFrame
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.messages import Offer, Status


class Output:
    """Sends views to one keyboard."""

    def __init__(self, keyboard: KeyboardPort, screen: Screen, rules: LightRules) -> None:
        self._keyboard = keyboard
        self._screen = screen
        self._rules = rules
        self._lights = SlowLights()
        self._reflex: Reflex | None = None
        # Whether a reflex may have been set off that does not fit what came of its key.
        self._may_differ = False
        self._nothing()

    def foresee(self, reflex: Reflex | None) -> None:
        """Have the keyboard show the picture of `reflex` by itself, if its keys come next."""
        if reflex is None:
            self._unexpect()
        elif (
            self._reflex is None or self._reflex.after is not reflex.after or reflex != self._reflex
        ):
            self._reflex = reflex
            self._keyboard.set_reflex(reflex)

    def event_came(self) -> None:
        """The keyboard told an event: a reflex before it is over, set off or not."""
        self._may_differ = self._may_differ or self._reflex is not None

    def _unexpect(self) -> None:
        if self._reflex is not None:
            self._reflex = None
            self._keyboard.set_reflex(None)
            self._may_differ = True  # it may have been set off by an event that is still on its way

    def _nothing(self) -> None:
        self.frame: DisplayFrame = TextFrame(())
        self._offer: Offer | None = None
        self.lines: tuple[str, ...] = ()
        self.status = Status.IDLE
        self.overlay = DARK

    @property
    def is_busy(self) -> bool:
        """The keyboard says that an answer is under way."""
        return self.status in (Status.THINKING, Status.STREAMING)

    @property
    def deadline(self) -> float | None:
        """When a change of the lights that had to wait may go out."""
        return self._lights.deadline

    def send(self, view: View, situation: Situation, size: Size, now: float) -> None:
        """Tell the keyboard what is new in `view`, which was made for `size`."""
        if view.status != self.status:
            self.status = view.status
            self._keyboard.set_status(view.status)
        self.lines = view.lines
        frame = self._screen.frame(view, situation, size, now)
        offer = None if view.typeable is None else view.typeable.offer_in(frame)
        if self._may_differ or (frame, offer) != (self.frame, self._offer):
            self.frame, self._offer = frame, offer
            self._unexpect()  # before, so that a reflex of the moment before cannot come over it
            self._may_differ = False
            self._keyboard.show(frame, offer)
        self._lights.want(self._rules.applied(view.lights))
        overlay = self._lights.due(now)
        if overlay is not None:
            self.overlay = overlay
            self._keyboard.set_lights(overlay)

    def release(self) -> None:
        """Give the keyboard back to its own firmware, until the next `send`."""
        self._unexpect()
        self._nothing()
        self._lights.went_dark()
        self._screen.forget()
        self._keyboard.release()
