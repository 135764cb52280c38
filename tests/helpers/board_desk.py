# SPDX-License-Identifier: Apache-2.0
"""A companion on a desk with a board: the real link session and the real firmware core, in invented time.

Keys go through the core, frames go into it; only the wire, the clock and the engine are made up.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType

from app.companion.core import Companion, Mailbox
from app.companion.messages import EngineChanged, Message
from app.companion.state import CompanionState
from app.settings import Settings
from engine.client import EngineState
from engine.messages import Candidate, Chat, Choose, Suggest, SuggestionsReady
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_output import Output
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.messages import EventKinds, Offer, Status
from tests.helpers.companion import FakeEngine
from tests.helpers.session_lab import SessionLab


class BoardPort:
    """The output side of a lab's session, as the companion sees it."""

    def __init__(self, lab: SessionLab) -> None:
        self._lab = lab

    @property
    def _output(self) -> Output:
        return self._lab.output

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        self._output.show(frame, self._lab.now, offer)

    def set_reflex(self, reflex: Reflex | None) -> None:
        """This board has none."""

    def allow(self, *, capture: bool, typing: bool) -> None:
        kinds = EventKinds.CAPTURES * capture | EventKinds.TYPING * typing
        self._output.allowed = EventKinds(kinds)

    def set_status(self, status: Status) -> None:
        self._output.status.want(status, self._lab.now)

    def set_lights(self, overlay: LightOverlay) -> None:
        leds, keys = MappingProxyType(dict(overlay.leds)), MappingProxyType(dict(overlay.keys))
        own = LightOverlay(overlay.fill, overlay.effect, leds, keys)
        self._output.lights.want(own, self._lab.now)

    def release(self) -> None:
        for channel in (self._output.display, self._output.lights, self._output.status):
            channel.want(None, self._lab.now)


class BoardDesk:
    """`lab.sent` holds every frame that went to the board since the last `take`."""

    def __init__(
        self,
        settings: Settings | None = None,
        board: BoardConfig | None = None,
        *,
        engine: EngineState = EngineState.READY,
    ) -> None:
        self.lab = SessionLab(board)
        self.engine = FakeEngine([])
        self._given = 0
        self.companion = Companion(
            Mailbox(),
            BoardPort(self.lab),
            self.engine,
            settings or Settings(),
            lambda: self.lab.now,
        )
        self.engine_is(engine)
        self.advance(0.5)

    @property
    def state(self) -> CompanionState:
        return self.companion.state

    def asked(self, kind: type[Chat | Choose | Suggest]) -> int:
        """The number of the last request of this kind; 0 if there was none."""
        return next((c.request for c in reversed(self.engine.commands) if isinstance(c, kind)), 0)

    def post(self, message: Message) -> None:
        """The companion takes one message."""
        self.companion.step(message)
        self._settle()

    def engine_is(self, state: EngineState, detail: str = "") -> None:
        """The engine child is in another state."""
        self.engine.is_dead = state in (EngineState.STOPPED, EngineState.FAILED)
        self.post(EngineChanged(state, detail))

    def advance(self, seconds: float, step_s: float = 0.005) -> None:
        """Let time pass for all of them."""
        end = self.lab.now + seconds
        while self.lab.now < end - 1e-9:
            self.lab.run(min(step_s, end - self.lab.now), step_s)
            self._settle()
            wait = self.companion.wait_s()
            if wait is not None and wait <= 0:
                self.companion.step(None)
                self._settle()

    def type(self, text: str, gap_s: float = 0.1, *, layout: str = "us") -> None:
        """Type on the board; `gap_s` seconds pass after each key."""
        for stroke in keys_for(text, load_layout(layout)):
            for usage, is_down in stroke.actions():
                self.lab.key(usage, usage >> 4, usage & 15, pressed=is_down)
                self._settle()
            self.advance(gap_s)

    def suggest(self, *words: tuple[str, float], milliseconds: float = 12.0) -> None:
        """The engine answers the last request with candidates."""
        candidates = [Candidate(text=text, probability=share) for text, share in words]
        self.post(
            SuggestionsReady(
                request=self.asked(Suggest), candidates=candidates, reused=7, computed=1,
                milliseconds=milliseconds, cancelled=False,
            )
        )  # fmt: skip

    @property
    def panel(self) -> BitmapFrame:
        """What the panel shows, turned to how a person sees it."""
        return self.lab.core.picture()

    @property
    def status(self) -> Status:
        return self.lab.core.status

    @property
    def leds(self) -> tuple[Rgb | None, ...]:
        return self.lab.core.led_colors(self.lab.ms)

    def take(self) -> Counter[FrameType]:
        """How many frames of each type went to the board since the last call."""
        counted = Counter(frame.type for frame in self.lab.sent)
        self.lab.sent.clear()
        return counted

    def _settle(self) -> None:
        """Carry what waits on the wire, and the board's events to the companion."""
        self.lab.settle()
        while self._given < len(self.lab.events):
            event = self.lab.events[self._given]
            self._given += 1
            self.companion.step(event)
            self.lab.settle()
