# SPDX-License-Identifier: Apache-2.0
"""What the window needs from the rest of Thock. Listeners may be called on any thread.

Everything that a person typed travels in `Preview` and `Answer` only, and only while the window asks for it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from app.config.store import Changes, Loaded
from app.settings import ModeName, Settings
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status


class Presence(enum.Enum):
    """Whether the companion runs."""

    AWAY = "away"
    HERE = "here"


@dataclass(frozen=True, slots=True)
class BoardShape:
    """The picture side of the connected keyboard: pixels as the host sees them, and LEDs."""

    width: int
    height: int
    led_count: int


@dataclass(frozen=True, slots=True)
class CompanionView:
    """What the window shows of the companion; holds no content.

    `keyboard` is its name, empty while none is connected. `engine` is a value of
    `engine.client.EngineState`, `trouble` what went wrong last. `paused_s`: seconds until it resumes by
    itself, None if never. `latency_ms`: from the last key to its answer. `away` tells which other program has
    the keyboard, `is_left_open` that it does until the person resumes.
    """

    presence: Presence = Presence.AWAY
    mode: str = ""
    status: Status = Status.IDLE
    is_paused: bool = False
    engine: str = "stopped"
    trouble: str = ""
    model: str = ""
    keyboard: str = ""
    board: BoardShape | None = None
    paused_s: float | None = None
    latency_ms: float | None = None
    away: str = ""
    is_left_open: bool = False

    @property
    def is_busy(self) -> bool:
        """An answer is under way."""
        return self.status in (Status.THINKING, Status.STREAMING)

    @property
    def waits_for_person(self) -> bool:
        """Whether the person can resume."""
        return self.is_paused or self.is_left_open


@dataclass(frozen=True, slots=True)
class Preview:
    """What was handed to the keyboard last. `display` is None while its own screen shows.

    `board` is None while no keyboard is connected.
    """

    board: BoardShape | None
    display: DisplayFrame | None = field(repr=False)
    status: Status = Status.IDLE
    lights: LightOverlay = field(default_factory=LightOverlay)


@dataclass(frozen=True, slots=True)
class PressedKey:
    """One key of the keyboard; `macro` is the number of a companion key, else None."""

    row: int | None = field(repr=False)
    column: int | None = field(repr=False)
    keycode: int | None = field(repr=False)
    macro: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply so far to a question of this window; `trouble` says why there is none."""

    text: str = field(repr=False)
    is_finished: bool = False
    trouble: str = ""


class SettingsRefusedError(Exception):
    """The settings could not be stored or applied; the message says why and what to do."""


class SettingsPort(Protocol):
    """Where the settings live: in the running companion, else in the file."""

    def load(self) -> Loaded:
        """The settings in force, and what in the file could not be used.

        Raises:
            SettingsRefusedError: they cannot be read.
        """
        ...

    def change(self, changes: Changes) -> Settings:
        """Store and apply part of the settings (see `app.config.store.Changes`); what holds then.

        Raises:
            SettingsRefusedError: nothing was changed.
        """
        ...

    def watch_settings(self, listener: Callable[[Settings], None]) -> None:
        """Tell of each change that somebody else makes."""
        ...


class CompanionPort(Protocol):
    """The running companion."""

    def watch_state(self, listener: Callable[[CompanionView], None]) -> None:
        """Tell the present state, and each new one."""
        ...

    def watch_pages(self, listener: Callable[[str], None]) -> None:
        """Tell the name of a page that somebody wants to see."""
        ...

    def watch_preview(self, listener: Callable[[Preview], None] | None) -> None:
        """Send what the keyboard shows, now and at each change, until called with None."""
        ...

    def capture_key(self, listener: Callable[[PressedKey], None] | None) -> None:
        """Tell the next key that is pressed on the keyboard, once; None calls it off."""
        ...

    def ask(self, text: str, listener: Callable[[Answer], None]) -> None:
        """Ask the model; the listener gets the reply as it grows, until `stop_asking`."""
        ...

    def stop_asking(self) -> None:
        """Tell no reply any more."""
        ...

    def cancel(self) -> None:
        """Stop the answer under way."""
        ...

    def pause(self, minutes: float | None = None) -> None:
        """Read no keys for so long; None: until `resume`."""
        ...

    def resume(self) -> None: ...

    def set_mode(self, mode: ModeName) -> None:
        """Until the next start; the setting stays as it is."""
        ...

    def reply(self) -> str:
        """The last answer of the model in full; empty for none."""
        ...

    def forget(self) -> None:
        """Wipe everything that was typed."""
        ...

    def load_model(self) -> None:
        """Start the engine with the model of the settings."""
        ...

    def unload_model(self) -> None:
        """End the engine; its memory is free again."""
        ...
