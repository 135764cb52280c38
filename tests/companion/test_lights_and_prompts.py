# SPDX-License-Identifier: Apache-2.0
"""The data files: a palette for everybody, prompts for every language; and the pace of the lights."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.companion.lights import (
    CHANGE_INTERVAL_S,
    DARK,
    Cue,
    LightRules,
    SlowLights,
    load_palette,
    with_intensity,
)
from app.companion.messages import Configure
from app.companion.modes.moods import load_moods
from app.companion.prompts import load_react_prompt
from app.settings import LightsSettings, Settings
from engine.client import EngineState
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb
from tests.helpers.companion import Desk


def test_the_palette_has_every_cue_and_no_two_alike() -> None:
    palette = load_palette()
    assert set(palette) == set(Cue)
    assert len({overlay.fill for overlay in palette.values()}) == len(Cue)


def seen_by_a_deuteranope(colour: Rgb) -> tuple[float, float, float]:
    """Severity 1.0 matrix of Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, in linear RGB."""
    r, g, b = colour.red, colour.green, colour.blue
    return (
        0.367322 * r + 0.860646 * g - 0.227968 * b,
        0.280085 * r + 0.672501 * g + 0.047413 * b,
        -0.011820 * r + 0.042940 * g + 0.968881 * b,
    )


def test_the_cues_stay_apart_for_a_person_who_does_not_tell_red_from_green() -> None:
    fills = [overlay.fill for overlay in load_palette().values()]
    for one, other in itertools.combinations([f for f in fills if f is not None], 2):
        apart = max(
            abs(a - b)
            for a, b in zip(seen_by_a_deuteranope(one), seen_by_a_deuteranope(other), strict=True)
        )
        assert apart > 20, (one, other)


# Okabe and Ito, "Color Universal Design", the set of colours that is unambiguous both to colour-blind and other
# people (https://jfly.uni-koeln.de/color/), without black.
OKABE_ITO = [
    (230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0),
    (204, 121, 167),
]  # fmt: skip


def hue(colour: Rgb | None) -> int:
    """Which colour of the palette it is when both are at full brightness."""
    assert colour is not None
    channels = (colour.red, colour.green, colour.blue)
    bright = [channel / max(channels) for channel in channels]
    distances = [
        max(abs(a - channel / max(known)) for a, channel in zip(bright, known, strict=True))
        for known in OKABE_ITO
    ]
    assert min(distances) < 0.03, f"{colour} is none of the palette"
    return distances.index(min(distances))


def test_all_colours_are_of_a_palette_that_colour_blind_people_tell_apart() -> None:
    cues = [overlay.fill for overlay in load_palette().values()]
    assert len(set(map(hue, cues))) == len(Cue)
    moods = [mood.lights for mood in load_moods().values()]
    assert len({(hue(overlay.fill), overlay.effect) for overlay in moods}) == len(moods)


def test_of_changes_that_wait_the_newest_goes_out() -> None:
    lights = SlowLights()
    red, green = LightOverlay(Rgb(9, 0, 0)), LightOverlay(Rgb(0, 9, 0))
    lights.want(red)
    assert lights.due(10) is red
    lights.want(green)
    assert lights.due(10.9) is None
    assert lights.deadline == 10 + CHANGE_INTERVAL_S
    assert lights.due(11) is green
    lights.want(DARK)
    assert lights.due(11.1) is DARK
    assert lights.deadline is None


@given(
    st.lists(
        st.tuples(st.floats(0, 0.5), st.sampled_from([DARK, LightOverlay(Rgb(9, 0, 0))])),
        max_size=60,
    )
)
def test_no_second_holds_more_than_one_flash(wishes: list[tuple[float, LightOverlay]]) -> None:
    lights = SlowLights()
    now = 0.0
    lit = []
    for pause, overlay in wishes:
        now += pause
        lights.want(overlay)
        if (shown := lights.due(now)) is not None:
            assert shown is overlay
            if shown != DARK:
                lit.append(now)
        assert overlay != DARK or lights.deadline is None, "it gets dark at once"
    assert all(b - a >= CHANGE_INTERVAL_S - 1e-9 for a, b in itertools.pairwise(lit))


BLUE = LightOverlay(Rgb(0, 57, 89), LightEffect.BREATHE, {3: Rgb(200, 1, 0)})


def rules(now: str = "12:00", **settings: object) -> LightRules:
    hour, minute = map(int, now.split(":"))
    return LightRules(LightsSettings(**settings), lambda: datetime.time(hour, minute))


def test_brightness_dims_every_colour_and_leaves_none_out() -> None:
    assert rules().applied(BLUE) == BLUE
    half = rules(brightness=50).applied(BLUE)
    assert (half.fill, half.effect, dict(half.leds)) == (
        Rgb(0, 28, 44), LightEffect.BREATHE, {3: Rgb(100, 1, 0)},
    )  # fmt: skip
    assert rules(brightness=5).applied(DARK) == DARK
    assert rules(enabled=False).applied(BLUE) == DARK


@pytest.mark.parametrize(
    ("start", "end", "now", "lit"),
    [
        ("22:30", "07:00", "22:29", True),
        ("22:30", "07:00", "22:30", False),
        ("22:30", "07:00", "00:00", False),
        ("22:30", "07:00", "06:59", False),
        ("22:30", "07:00", "07:00", True),
        ("01:00", "05:00", "03:00", False),
        ("01:00", "05:00", "05:00", True),
        ("01:00", "05:00", "00:59", True),
        ("08:00", "08:00", "08:00", True),
        ("", "07:00", "03:00", True),
        ("22:00", "", "23:00", True),
    ],
)
def test_at_night_nothing_is_lit(start: str, end: str, now: str, lit: bool) -> None:
    shown = rules(now, night_from=start, night_to=end).applied(BLUE)
    assert shown == (BLUE if lit else DARK)


@pytest.mark.parametrize("time", ["24:00", "7:00", "12:60", "noon", "22:30 "])
def test_a_time_of_the_day_that_is_none_is_refused(time: str) -> None:
    with pytest.raises(ValidationError):
        LightsSettings(night_from=time)


def test_a_mood_is_as_bright_as_it_is_sure_and_never_dark() -> None:
    overlays = [with_intensity(BLUE, share).fill for share in (0, 0.5, 1)]
    assert overlays == [Rgb(0, 23, 36), Rgb(0, 40, 62), Rgb(0, 57, 89)]


def test_the_machine_obeys_the_rules_for_lights() -> None:
    desk = Desk(Settings(lights=LightsSettings(enabled=False)), is_ready=False)
    desk.engine_is(EngineState.LOADING)
    desk.advance(3)
    assert not [line for line in desk.take() if line.startswith("lights")]
    desk.post(Configure(Settings(lights=LightsSettings(brightness=50))))
    desk.advance(3)
    assert desk.take()[-1] == "lights 40,37,11 breathe"


def test_a_prompt_in_an_unknown_language_is_english() -> None:
    assert load_react_prompt("xx_YY") == load_react_prompt("en")


def test_what_a_language_lacks_comes_from_its_base_and_then_from_english(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "react.toml").write_text(
        '[en]\nsystem = "one"\nuser = ""\nsilence = ""\nmacro = ""\nexamples = []\nrhythm = {}\n'
        '[zh]\nsystem = "two"\n[zh_CN]\nsystem = "three"\n'
    )
    monkeypatch.setattr("app.companion.prompts.resources.files", lambda _: tmp_path)
    systems = [load_react_prompt(name).system for name in ("zh_CN", "zh_TW", "fr", "en")]
    assert systems == ["three", "two", "one", "one"]
