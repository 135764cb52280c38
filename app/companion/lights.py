# SPDX-License-Identifier: Apache-2.0
"""What the lights say (assets/lights.toml), and how often they may change."""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb

DARK = LightOverlay()

# A flash is a pair of opposing changes; WCAG 2.2, success criterion 2.3.1 allows three a second.
# One change in 250 ms is two flashes a second at most.
CHANGE_INTERVAL_S = 0.25


class Cue(enum.StrEnum):
    """The entries of the palette."""

    THINKING = "thinking"
    STREAMING = "streaming"
    READY = "ready"
    LOADING = "loading"
    TROUBLE = "trouble"


def overlay_of(entry: Mapping[str, Any]) -> LightOverlay:
    """The overlay that a `colour` and an `effect` in one of our TOML files describe."""
    red, green, blue = entry["colour"]
    return LightOverlay(Rgb(red, green, blue), LightEffect[entry["effect"].upper()])


def load_palette() -> Mapping[Cue, LightOverlay]:
    """The palette that is part of the program."""
    text = resources.files("assets").joinpath("lights.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    return MappingProxyType({cue: overlay_of(entries[cue]) for cue in Cue})


class SlowLights:
    """Lets changes of the overlay through at a safe pace; of several that wait, the newest wins."""

    def __init__(self) -> None:
        self._shown = DARK
        self._wanted = DARK
        self._free_at = float("-inf")

    def want(self, overlay: LightOverlay) -> None:
        self._wanted = overlay

    def went_dark(self) -> None:
        """The overlay was taken off; nothing waits any more."""
        self._shown = self._wanted = DARK

    @property
    def deadline(self) -> float | None:
        """When a change that waits may go out."""
        return self._free_at if self._wanted != self._shown else None

    def due(self, now: float) -> LightOverlay | None:
        """The overlay to send now, if any."""
        if self._wanted == self._shown or now < self._free_at:
            return None
        self._shown = self._wanted
        self._free_at = now + CHANGE_INTERVAL_S
        return self._shown
