# SPDX-License-Identifier: Apache-2.0
"""What the lights say (assets/lights.toml), what the person lets them say, and how often they may change."""

from __future__ import annotations

import datetime
import enum
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from types import MappingProxyType

from app.settings import LightsSettings
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb

DARK = LightOverlay()

# A flash is a pair of opposing changes; WCAG 2.2, success criterion 2.3.1 allows three a second.
CHANGE_INTERVAL_S = 1.0

# The share of its brightness that the weakest mood keeps.
_LEAST_INTENSITY = 0.4


class Cue(enum.StrEnum):
    """The entries of the palette."""

    THINKING = "thinking"
    STREAMING = "streaming"
    READY = "ready"
    LOADING = "loading"
    TROUBLE = "trouble"
    LETTER = "letter"


def overlay_of(colour: Sequence[int], effect: str) -> LightOverlay:
    """The overlay that a `colour` and an `effect` in a TOML file describe.

    Raises:
        KeyError: there is no such effect.
        ValueError: this is no colour.
    """
    red, green, blue = colour
    return LightOverlay(Rgb(red, green, blue), LightEffect[effect.upper()])


def load_palette() -> Mapping[Cue, LightOverlay]:
    """The palette that is part of the program."""
    text = resources.files("assets").joinpath("lights.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    return MappingProxyType(
        {cue: overlay_of(entries[cue]["colour"], entries[cue]["effect"]) for cue in Cue}
    )


def with_intensity(overlay: LightOverlay, share: float) -> LightOverlay:
    """`overlay` as bright as something is sure, `share` 0..1; even the least stays visible."""
    return overlay.dimmed(_LEAST_INTENSITY + (1 - _LEAST_INTENSITY) * share)


def local_time() -> datetime.time:
    """The time of the day."""
    return datetime.datetime.now().time()


class LightRules:
    """What the settings leave of an overlay: how bright, and nothing at night."""

    def __init__(
        self, settings: LightsSettings, now: Callable[[], datetime.time] = local_time
    ) -> None:
        self._settings = settings
        self._now = now

    def configure(self, settings: LightsSettings) -> None:
        """Other settings hold from now on."""
        self._settings = settings

    def applied(self, overlay: LightOverlay) -> LightOverlay:
        """What of `overlay` may be shown now."""
        settings = self._settings
        if not settings.enabled or self._is_night():
            return DARK
        return overlay if settings.brightness == 100 else overlay.dimmed(settings.brightness / 100)

    def _is_night(self) -> bool:
        """From one time of the day to another, also over midnight; equal or unset times: never."""
        start, end = self._settings.night_from, self._settings.night_to
        if not start or not end or start == end:
            return False
        now = f"{self._now():%H:%M}"
        return start <= now < end if start < end else not end <= now < start


class SlowLights:
    """Lets overlays through at a safe pace: it gets dark at once, and another light comes once a second.

    Of several that wait the newest wins. So at most one flash a second, whatever is asked for. Keys that
    are no longer meant do not wait.
    """

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
        if self._wanted == self._shown:
            return None
        if self._wanted != DARK and now < self._free_at:
            if not self._shown.keys or self._shown.keys == self._wanted.keys:
                return None
            self._shown = replace(self._shown, keys=DARK.keys)
            return self._shown
        self._shown = self._wanted
        if self._shown != DARK:
            self._free_at = now + CHANGE_INTERVAL_S
        return self._shown
