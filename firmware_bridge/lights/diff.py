# SPDX-License-Identifier: Apache-2.0
"""The LIGHTS messages that turn one overlay into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsKeys,
    LightsMessage,
    LightsOff,
    LightsRun,
    colours_per_run,
    keys_per_frame,
)


def light_messages(
    before: LightOverlay, after: LightOverlay, payload_room: int
) -> tuple[LightsMessage, ...]:
    """What to send to a board that shows `before` so that it shows `after`.

    `payload_room` is the number of payload bytes of one frame (24 at N = 32). The protocol cannot
    take back a fill, one LED or one key alone: then all of the fill, or all LEDs and keys, are sent anew.
    """
    messages: list[LightsMessage] = []
    leds, keys = dict(before.leds), dict(before.keys)
    if before.fill is not None and after.fill is None:
        messages.append(LightsOff())
        leds.clear()
        keys.clear()
    elif after.fill is not None and (before.fill, before.effect) != (after.fill, after.effect):
        messages.append(LightsFill(after.effect, after.fill))
    if leds.keys() - after.leds.keys() or keys.keys() - after.keys.keys():
        messages.append(LightsForget())
        leds.clear()
        keys.clear()
    changed = {led: colour for led, colour in after.leds.items() if leds.get(led) != colour}
    messages += _runs(changed, colours_per_run(payload_room))
    # A key lies over the LED of the same place, so keys follow whenever LEDs were set.
    places = sorted(k for k in after.keys if changed or keys.get(k) != after.keys[k])
    most = keys_per_frame(payload_room)
    for start in range(0, len(places), most):
        group = places[start : start + most]
        messages.append(LightsKeys(tuple((*place, after.keys[place]) for place in group)))
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
