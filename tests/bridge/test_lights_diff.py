# SPDX-License-Identifier: Apache-2.0
"""Light overlays -> messages, checked on the C core."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.diff import light_messages
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb
from firmware_bridge.link_output import light_steps
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsKeys,
    LightsOff,
    LightsRun,
)
from firmware_bridge.protocol.messages import EventKinds, Message, Subscribe

LEDS = 16
ROOM = 24
FEATURES = Feature.LIGHTS | Feature.KEY_LIGHTS
BOARD = Capabilities(1, 1, 32, bytes(6), 0, 0, 0, 0, 0, LEDS, FEATURES, 32, 1)
RED, GREEN, BLUE = Rgb(255, 0, 0), Rgb(0, 255, 0), Rgb(0, 0, 255)
COLOURS = st.sampled_from([RED, GREEN, BLUE])
OVERLAYS = st.builds(
    LightOverlay,
    st.none() | COLOURS,
    st.sampled_from(LightEffect),
    st.dictionaries(st.integers(0, LEDS + 3), COLOURS, max_size=12),
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 3)), COLOURS, max_size=9),
)
KEY_LEDS = {(row, column): row * 4 + column for row in range(2) for column in range(4)}


class Lamps:
    """A firmware core that takes LIGHTS frames."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.core = FirmwareCore(BoardConfig(led_count=LEDS, key_leds=KEY_LEDS), self._send)
        self.say(Subscribe(EventKinds(0)))

    def _send(self, report: bytes) -> bool:
        self.answers.append(report)
        return True

    def say(self, message: Message) -> None:
        self.answers.clear()
        assert self.core.receive(encode(Frame(message.type, 1, 0, message.pack()), 32), 0)
        assert decode(self.answers[0]).type is FrameType.ACK


@given(st.lists(OVERLAYS, min_size=1, max_size=6))
def test_the_firmware_shows_the_last_of_any_sequence(overlays: list[LightOverlay]) -> None:
    lamps = Lamps()
    shown = None
    for overlay in overlays:
        for step in light_steps(shown, overlay, BOARD):
            lamps.say(step.message)
        shown = overlay
    last = overlays[-1]
    keys = {KEY_LEDS[key]: colour for key, colour in last.keys.items() if key in KEY_LEDS}
    for led, colour in enumerate(lamps.core.led_colors(0)):
        if led in keys:
            assert colour == keys[led]
        elif led in last.leds:
            assert colour == last.leds[led]
        elif last.fill is None:
            assert colour is None
        elif last.effect is LightEffect.SOLID:
            assert colour == last.fill
        else:
            assert colour is not None


@given(OVERLAYS)
def test_the_same_overlay_needs_no_message(overlay: LightOverlay) -> None:
    assert light_messages(overlay, overlay, ROOM) == ()


def test_neighbours_share_a_frame_of_seven() -> None:
    overlay = LightOverlay(leds=dict.fromkeys((0, 1, 2, *range(5, 13)), RED))
    runs = light_messages(LightOverlay(), overlay, ROOM)
    assert [(run.first, len(run.colours)) for run in runs if isinstance(run, LightsRun)] == [
        (0, 3),
        (5, 7),
        (12, 1),
    ]
    assert all(len(run.pack()) <= ROOM for run in runs)


def test_only_changed_leds_are_sent() -> None:
    before = LightOverlay(leds={1: RED, 2: RED})
    after = LightOverlay(leds={1: RED, 2: BLUE, 9: GREEN})
    assert light_messages(before, after, ROOM) == (LightsRun(2, (BLUE,)), LightsRun(9, (GREEN,)))


def test_four_keys_share_a_frame_and_only_changed_ones_are_sent() -> None:
    places = [(0, column) for column in range(6)]
    all_red = LightOverlay(keys=dict.fromkeys(places, RED))
    first, second = light_messages(LightOverlay(), all_red, ROOM)
    assert isinstance(first, LightsKeys)
    assert isinstance(second, LightsKeys)
    assert (len(first.keys), len(second.keys)) == (4, 2)
    assert all(len(message.pack()) <= ROOM for message in (first, second))
    one_blue = LightOverlay(keys={**all_red.keys, (0, 3): BLUE})
    assert light_messages(all_red, one_blue, ROOM) == (LightsKeys(((0, 3, BLUE),)),)
    assert light_messages(all_red, LightOverlay(), ROOM) == (LightsForget(),)


def test_a_board_that_does_not_know_its_keys_gets_none() -> None:
    overlay = LightOverlay(keys={(0, 0): RED})
    assert light_steps(None, overlay, replace(BOARD, features=Feature.LIGHTS)) == []


def test_what_cannot_be_taken_back_alone_is_sent_anew() -> None:
    both = LightOverlay(RED, leds={1: RED, 2: RED})
    assert light_messages(both, LightOverlay(leds={1: RED}), ROOM) == (
        LightsOff(),
        LightsRun(1, (RED,)),
    )
    assert light_messages(both, LightOverlay(RED, leds={1: RED}), ROOM) == (
        LightsForget(),
        LightsRun(1, (RED,)),
    )
    assert light_messages(both, LightOverlay(BLUE, leds=both.leds), ROOM) == (
        LightsFill(LightEffect.SOLID, BLUE),
    )
    assert light_messages(both, LightOverlay(), ROOM) == (LightsOff(),)
