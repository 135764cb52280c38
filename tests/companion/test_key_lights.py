# SPDX-License-Identifier: Apache-2.0
"""Keys of a suggestion: lit when the person rests, where they were seen, as letters of the layout."""

from __future__ import annotations

import pytest

from app.companion.key_lights import KeyLights
from app.companion.lights import DARK, SlowLights
from app.companion.messages import Pause
from app.settings import Settings
from firmware_bridge.events import KeyPressed
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.capabilities import Feature
from tests.helpers.board_desk import BoardDesk
from tests.helpers.companion import EVERYTHING, board

US = load_layout("us")
ORANGE, DIM = Rgb(100, 60, 0), Rgb(35, 21, 0)
GREEN = LightOverlay(Rgb(0, 79, 57))
A, B, E, L = 0x04, 0x05, 0x08, 0x0F


def knowing(*usages: int, features: Feature = EVERYTHING | Feature.KEY_LIGHTS) -> KeyLights:
    """Lights of a board on which these keys were pressed; each stands at (1, usage). The last one at 10 s."""
    lights = KeyLights(US, ORANGE)
    lights.connect(board(features=features))
    for usage in usages:
        lights.pressed(KeyPressed(usage, 1, usage, 0, 10.0))
    return lights


def lit(lights: KeyLights, text: str, now: float = 11.0) -> dict[tuple[int, int], Rgb]:
    overlay = lights.over(GREEN, text, now)
    assert overlay.fill == GREEN.fill
    return dict(overlay.keys)


def test_the_next_letter_is_bright_and_those_after_it_are_dim() -> None:
    lights = knowing(A, B, E, L)
    assert lit(lights, "able to") == {(1, A): ORANGE, (1, B): DIM, (1, L): DIM, (1, E): DIM}
    assert lit(lights, " Bella") == {(1, B): ORANGE, (1, E): DIM, (1, L): DIM, (1, A): DIM}


def test_keys_that_were_never_pressed_stay_dark() -> None:
    assert lit(knowing(E), "able") == {(1, E): DIM}
    assert lit(knowing(), "able") == {}


def test_while_somebody_types_nothing_is_lit_and_then_it_is_due() -> None:
    lights = knowing(A)
    assert lit(lights, "a", now=10.5) == {}
    assert lights.deadline("a", 10.5) == pytest.approx(10.6)
    assert lit(lights, "a", now=10.6) == {(1, A): ORANGE}
    assert lights.deadline("a", 10.6) is None
    assert lights.deadline("", 10.5) is None


def test_a_board_that_does_not_know_its_keys_is_left_alone() -> None:
    lights = knowing(A, features=EVERYTHING)
    assert lit(lights, "a") == {}
    assert lights.deadline("a", 10.5) is None


def test_another_board_has_its_keys_elsewhere() -> None:
    lights = knowing(A)
    lights.connect(board(features=EVERYTHING | Feature.KEY_LIGHTS))
    assert lit(lights, "a") == {}


def test_another_layout_has_its_letters_elsewhere() -> None:
    lights = knowing(A, 0x14)
    lights.configure(load_layout("fr"))
    assert lit(lights, "a") == {(1, 0x14): ORANGE}


@pytest.mark.parametrize("text", ["天", "", "  ", "\n"])
def test_what_no_key_types_lights_none(text: str) -> None:
    assert lit(knowing(A), text) == {}


def test_keys_beyond_the_table_are_no_places() -> None:
    lights = knowing(A)
    lights.pressed(KeyPressed(0x7E40, 3, 3, 0, 10.0))
    assert lit(lights, "a") == {(1, A): ORANGE}


def test_keys_that_are_no_longer_meant_go_out_at_once_and_others_come_at_a_safe_pace() -> None:
    slow = SlowLights()
    first = LightOverlay(GREEN.fill, keys={(1, A): ORANGE})
    second = LightOverlay(GREEN.fill, keys={(1, B): ORANGE})
    slow.want(first)
    assert slow.due(10) == first
    slow.want(second)
    assert slow.due(10.1) == GREEN
    assert slow.due(10.2) is None
    assert slow.due(11) == second
    slow.want(DARK)
    assert slow.due(11.1) == DARK


def test_the_companion_lights_the_letters_of_its_best_suggestion_when_the_person_rests() -> None:
    places = {(usage >> 4, usage & 15): usage for usage in range(0x04, 0x30)}
    desk = BoardDesk(Settings(), BoardConfig(led_count=64, key_leds=places))
    desk.type("up hel", gap_s=0.05)
    desk.suggest(("p", 0.61), ("met", 0.2))
    p = 0x13
    orange = Rgb(115, 79, 0)
    assert desk.leds[p] != orange
    desk.advance(1.2)
    assert desk.leds[p] == orange
    desk.type("p", gap_s=0.01)
    assert desk.leds[p] != orange, "it goes out at once"
    desk.post(Pause())
    desk.advance(1)
    assert set(desk.leds) == {None}
