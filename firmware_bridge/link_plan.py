# SPDX-License-Identifier: Apache-2.0
"""A change of the display that was thought out before it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from firmware_bridge.link_channel import Channel, Step, UnfitContentError
from firmware_bridge.link_offer import Picture
from firmware_bridge.link_request import Request
from firmware_bridge.protocol.capabilities import Capabilities


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps to `picture` from what the display showed after `updates` updates; the first is encoded.

    `free_at`: a clock time; the display may not be changed before.
    """

    picture: Picture
    steps: list[Step] = field(repr=False)
    updates: int
    free_at: float
    request: Request


def plan_for(
    picture: Picture,
    display: Channel[Picture],
    board: Capabilities,
    encode: Callable[[Request], bytes],
) -> Plan | None:
    """The plan for `picture`; None if there is nothing to do, or the display is being changed."""
    try:
        steps = display.plan(picture, board)
    except UnfitContentError:
        return None
    if not steps:
        return None
    request = Request(steps[0].message, steps[0].first, steps[0].last, display)
    encode(request)
    return Plan(picture, steps, display.updates, display.free_at(picture), request)
