# SPDX-License-Identifier: Apache-2.0
"""What the companion publishes: a picture of its state that nobody can change."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.companion.asked import Asked
from app.companion.modes.base import Latency
from app.companion.ready import ReadyStats
from app.settings import ModeName
from engine.client import EngineState
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.messages import Status


@dataclass(frozen=True, slots=True)
class CompanionState:
    """One moment. `keyboard` is None while none is connected; `dropped` counts lost key events.

    `frame` has no rows while the keyboard shows its own screen: at first, after a rest, at the end.
    `lines` is the text in the frame, for readers of text.
    `engine_detail` and `error` say what went wrong last (empty: nothing) and hold no content.
    `mode` is the one that is seen, `chosen` the one that the person chose: chat may be a guest in its place.
    `asked` is the newest question of a command or of the window.
    `reply` is the last answer of the mode in full: the best word, the chat's reply, the mood.
    `ready` counts what was computed before anybody asked, since the start.
    """

    mode: ModeName
    chosen: ModeName
    status: Status
    is_paused: bool
    engine: EngineState
    engine_detail: str
    model: str
    keyboard: Capabilities | None
    dropped: int
    error: str
    latency: Latency | None
    frame: DisplayFrame = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    lights: LightOverlay
    reply: str = field(repr=False)
    ready: ReadyStats
    asked: Asked

    @property
    def is_busy(self) -> bool:
        """An answer is under way."""
        return self.status in (Status.THINKING, Status.STREAMING)

    @property
    def answered(self) -> int:
        """Number of the newest request that was answered; 0 before the first."""
        return self.latency.request if self.latency is not None else 0
