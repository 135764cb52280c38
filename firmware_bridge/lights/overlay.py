# SPDX-License-Identifier: Apache-2.0
"""Colours that lie over the person's own lighting and vanish by themselves."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


class LightEffect(enum.IntEnum):
    """How the firmware animates the fill. None of them changes faster than 3 times a second."""

    SOLID = 0
    BREATHE = 1
    PULSE = 2


@dataclass(frozen=True, slots=True)
class Rgb:
    """One colour, 0..255 each."""

    red: int
    green: int
    blue: int

    def __post_init__(self) -> None:
        if not all(0 <= c <= 255 for c in (self.red, self.green, self.blue)):
            raise ValueError("a colour channel is 0..255")

    def dimmed(self, share: float) -> Rgb:
        """The same colour with `share` (0..1) of its brightness, dark only if it was."""

        def part(channel: int) -> int:
            return max(round(channel * share), 1) if channel else 0

        return Rgb(part(self.red), part(self.green), part(self.blue))


@dataclass(frozen=True, slots=True)
class LightOverlay:
    """A colour for the whole board, and colours of single LEDs over it. All off: `LightOverlay()`.

    LEDs have numbers; on boards that know where they are, `keys` names them by the row and column of the
    key above. `repr` tells neither: they may show what the person types.
    """

    fill: Rgb | None = None
    effect: LightEffect = LightEffect.SOLID
    leds: Mapping[int, Rgb] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    keys: Mapping[tuple[int, int], Rgb] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )

    def dimmed(self, share: float) -> LightOverlay:
        """The same overlay with `share` (0..1) of its brightness."""
        return LightOverlay(
            None if self.fill is None else self.fill.dimmed(share),
            self.effect,
            MappingProxyType({led: colour.dimmed(share) for led, colour in self.leds.items()}),
            MappingProxyType({key: colour.dimmed(share) for key, colour in self.keys.items()}),
        )
