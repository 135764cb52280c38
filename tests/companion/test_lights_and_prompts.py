# SPDX-License-Identifier: Apache-2.0
"""The data files: a palette for everybody, prompts for every language; and the pace of the lights."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.lights import CHANGE_INTERVAL_S, DARK, Cue, SlowLights, load_palette
from app.companion.prompts import load_chat_prompt, load_react_prompt
from firmware_bridge.lights.overlay import LightOverlay, Rgb


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


def test_of_changes_that_wait_the_newest_goes_out() -> None:
    lights = SlowLights()
    red, green = LightOverlay(Rgb(9, 0, 0)), LightOverlay(Rgb(0, 9, 0))
    lights.want(red)
    assert lights.due(10) is red
    lights.want(green)
    assert lights.due(10.1) is None
    assert lights.deadline == 10 + CHANGE_INTERVAL_S
    lights.want(DARK)
    assert lights.due(10.3) is DARK
    assert lights.deadline is None


@given(
    st.lists(
        st.tuples(st.floats(0, 0.5), st.sampled_from([DARK, LightOverlay(Rgb(9, 0, 0))])),
        max_size=60,
    )
)
def test_no_second_holds_more_than_two_flashes(wishes: list[tuple[float, LightOverlay]]) -> None:
    lights = SlowLights()
    now = 0.0
    changes = []
    for pause, overlay in wishes:
        now += pause
        lights.want(overlay)
        if lights.due(now) is not None:
            changes.append(now)
    for i, start in enumerate(changes):
        # A flash is two changes, there and back.
        assert sum(start <= at < start + 0.999 for at in changes[i:]) <= 4


def test_a_prompt_in_an_unknown_language_is_english() -> None:
    assert load_chat_prompt("xx_YY") == load_chat_prompt("en")
    assert load_react_prompt("xx_YY") == load_react_prompt("en")


def test_what_a_language_lacks_comes_from_its_base_and_then_from_english(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "chat.toml").write_text(
        '[en]\nsystem = "one"\n[zh]\nsystem = "two"\n[zh_CN]\nsystem = "three"\n'
    )
    monkeypatch.setattr("app.companion.prompts.resources.files", lambda _: tmp_path)
    systems = [load_chat_prompt(name).system for name in ("zh_CN", "zh_TW", "fr", "en")]
    assert systems == ["three", "two", "one", "one"]
