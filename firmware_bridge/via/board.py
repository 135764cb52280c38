# SPDX-License-Identifier: Apache-2.0
"""What a keyboard's own lighting can be set to, whatever firmware it has."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from firmware_bridge.lights.overlay import LightOverlay, Rgb

Settings = Mapping[str, int]
"""Settings by name, such as "rgb_matrix.hue": 128, as the keyboard counts: 0..255, VialRGB's mode 0..65535."""


class LightBoard(Protocol):
    """The lights of one open keyboard. Every method may raise what `Conversation.ask` raises."""

    @property
    def name(self) -> str:
        """For the person, such as "rgb_matrix"."""
        ...

    @property
    def led_count(self) -> int:
        """LEDs that can be set one by one; 0 where only the whole board can."""
        ...

    def read(self) -> dict[str, int]:
        """The settings now."""
        ...

    def plan(self, overlay: LightOverlay) -> dict[str, int]:
        """The settings that come nearest to `overlay`; none of them for one that shows nothing."""
        ...

    def write(self, settings: Settings) -> None:
        """Set `settings` (some of those that `read` gives), in an order and at a pace that firmware bears."""
        ...

    def paint(self, overlay: LightOverlay, baseline: Settings) -> None:
        """Set single LEDs, after `write` of a plan for them; nothing where `led_count` is 0."""
        ...

    def restore(self, settings: Settings) -> None:
        """`write`, and correct what the keyboard rounds, so that `read` gives `settings` again."""
        ...


class Hsv(NamedTuple):
    """QMK's hue, saturation and value: 0..255 each, a hue of 85 is green."""

    hue: int
    saturation: int
    value: int


def hsv_of(colour: Rgb) -> Hsv:
    """The colour as QMK counts it."""
    hsv = colorsys.rgb_to_hsv(colour.red / 255, colour.green / 255, colour.blue / 255)
    hue, saturation, value = (round(part * 255) for part in hsv)
    return Hsv(hue, saturation, value)
