# SPDX-License-Identifier: Apache-2.0
"""The colour overlay."""

from __future__ import annotations

import itertools

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsKeys,
    LightsOff,
    LightsRun,
)
from firmware_bridge.protocol.messages import NakReason
from tests.helpers.bench import Bench, nak_reason

FILL = Rgb(200, 100, 0)
RED, BLUE = Rgb(255, 0, 0), Rgb(0, 0, 255)


@pytest.fixture
def bench() -> Bench:
    bench = Bench(BoardConfig(led_count=10))
    bench.subscribe()
    return bench


def test_without_an_overlay_the_board_keeps_its_own_colours(bench: Bench) -> None:
    assert bench.core.led_colors(0) == (None,) * 10


def test_single_leds_lie_over_the_fill(bench: Bench) -> None:
    bench.do(LightsFill(LightEffect.SOLID, FILL))
    bench.do(LightsRun(7, (RED, BLUE)))
    assert bench.core.led_colors(0) == (*(FILL,) * 7, RED, BLUE, FILL)
    bench.do(LightsForget())
    assert bench.core.led_colors(0) == (FILL,) * 10


def test_single_leds_stand_without_a_fill_and_off_clears_all(bench: Bench) -> None:
    bench.do(LightsRun(0, (RED,)))
    bench.do(LightsRun(9, (BLUE,)))
    assert bench.core.led_colors(0) == (RED, *(None,) * 8, BLUE)
    bench.do(LightsFill(LightEffect.SOLID, FILL))
    bench.do(LightsOff())
    assert bench.core.led_colors(0) == (None,) * 10


KEY_LEDS = {(0, 0): 3, (1, 2): 7, (4, 13): 9, (2, 2): 200}


@pytest.fixture
def lit_keys() -> Bench:
    bench = Bench(BoardConfig(led_count=10, key_leds=KEY_LEDS))
    bench.subscribe()
    return bench


def test_keys_are_lit_by_their_place_and_those_without_an_led_are_passed_over(
    lit_keys: Bench,
) -> None:
    lit_keys.do(LightsKeys(((1, 2, RED), (2, 2, BLUE), (9, 9, BLUE), (4, 13, BLUE))))
    assert lit_keys.core.led_colors(0) == (*(None,) * 7, RED, None, BLUE)
    lit_keys.do(LightsRun(7, (BLUE,)))
    lit_keys.do(LightsKeys(((0, 0, RED),)))
    assert lit_keys.core.led_colors(0) == (*(None,) * 3, RED, *(None,) * 3, BLUE, None, BLUE)
    lit_keys.do(LightsForget())
    assert lit_keys.core.led_colors(0) == (None,) * 10


@pytest.mark.parametrize("length", [1, 2, 5, 7, 10, 12])
def test_a_part_of_a_key_is_refused(lit_keys: Bench, length: int) -> None:
    (answer,) = lit_keys.raw(FrameType.LIGHTS, bytes((4, *range(length - 1))))
    assert nak_reason(answer, FrameType.LIGHTS) is NakReason.LENGTH


def test_a_board_that_does_not_know_its_keys_refuses_them(bench: Bench) -> None:
    assert bench.refusal(LightsKeys(((0, 0, RED),))) is NakReason.RANGE
    assert Feature.KEY_LIGHTS not in bench.caps().capabilities.features


def test_every_led_of_a_large_board_can_be_reached() -> None:
    bench = Bench(BoardConfig(led_count=256))
    bench.subscribe()
    colours = tuple(Rgb(led, 255 - led, led // 2) for led in range(256))
    for first in range(0, 256, 7):
        bench.do(LightsRun(first, colours[first : first + 7]))
    assert bench.core.led_colors(0) == colours


def brightness(bench: Bench, start: int, length: int) -> list[int]:
    levels = []
    for now in range(start, start + length):
        colour = bench.core.led_colors(now)[0]
        assert colour is not None
        levels.append(colour.red)
    return levels


@pytest.mark.parametrize("effect", [LightEffect.BREATHE, LightEffect.PULSE])
@pytest.mark.parametrize("start", [0, 0xFFFF_FFFF - 5000])
def test_effects_are_smooth_and_change_direction_at_most_3_times_a_second(
    effect: LightEffect, start: int
) -> None:
    """Also while the clock wraps."""
    bench = Bench(BoardConfig(led_count=1), now=start)
    bench.subscribe()
    bench.do(LightsFill(effect, Rgb(255, 255, 255)))
    levels = brightness(bench, start, 10_000)
    steps = [b - a for a, b in itertools.pairwise(levels)]
    assert max(map(abs, steps)) <= 3
    assert max(levels) == 255
    assert 0 < min(levels) < 40
    moves = [(at, step > 0) for at, step in enumerate(steps) if step]
    turns = [at for (_, up), (at, now_up) in itertools.pairwise(moves) if up != now_up]
    assert turns
    worst = max(sum(t <= other < t + 1000 for other in turns) for t in turns)
    assert worst <= 3


def test_solid_colours_do_not_move(bench: Bench) -> None:
    bench.do(LightsFill(LightEffect.SOLID, Rgb(77, 0, 0)))
    assert set(brightness(bench, 0, 2000)) == {77}


def test_repeating_an_effect_does_not_restart_it() -> None:
    """A host that repeats itself ten times a second must not make a flicker of a slow effect."""
    bench, quiet = Bench(BoardConfig(led_count=1)), Bench(BoardConfig(led_count=1))
    fill = LightsFill(LightEffect.PULSE, Rgb(255, 255, 255))
    for each in (bench, quiet):
        each.subscribe()
        each.do(fill)
    for now in range(0, 2900, 100):
        bench.now = now
        bench.do(fill)
        assert bench.core.led_colors(now) == quiet.core.led_colors(now)
