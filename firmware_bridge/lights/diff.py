# SPDX-License-Identifier: Apache-2.0
"""The LIGHTS messages that turn one overlay into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsMessage,
    LightsOff,
    LightsRun,
    colours_per_run,
)


def light_messages(
    before: LightOverlay, after: LightOverlay, payload_room: int
) -> tuple[LightsMessage, ...]:
    """What to send to a board that shows `before` so that it shows `after`.

    `payload_room` is the number of payload bytes of one frame (24 at N = 32). The protocol cannot
    take back a fill or one LED alone: then all of the fill, or all single LEDs, are sent anew.
    """
    messages: list[LightsMessage] = []
    leds = dict(before.leds)
    if before.fill is not None and after.fill is None:
        messages.append(LightsOff())
        leds.clear()
    elif after.fill is not None and (before.fill, before.effect) != (after.fill, after.effect):
        messages.append(LightsFill(after.effect, after.fill))
    if leds.keys() - after.leds.keys():
        messages.append(LightsForget())
        leds.clear()
    changed = {led: colour for led, colour in after.leds.items() if leds.get(led) != colour}
    messages += _runs(changed, colours_per_run(payload_room))
    return tuple(messages)


def _runs(leds: Mapping[int, Rgb], longest: int) -> Iterator[LightsRun]:
    numbers = sorted(leds)
    start = 0
    for i in range(1, len(numbers) + 1):
        ends = i == len(numbers) or numbers[i] != numbers[i - 1] + 1 or i - start == longest
        if ends:
            run = numbers[start:i]
            yield LightsRun(run[0], tuple(leds[n] for n in run))
            start = i
