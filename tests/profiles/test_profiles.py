# SPDX-License-Identifier: Apache-2.0
"""Which profile holds for a program and a keyboard, and what it changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.profiles import Surroundings, effective, fitting
from app.settings import ModeName, ProfileSettings, Settings

GAME = ProfileSettings(applications=("game*",), off=True)
WORK = ProfileSettings(applications=("Code",), mode=ModeName.CHAT, persona="duck", lights=False)
SOFA = ProfileSettings(keyboards=("3434:0361",), layout="de")
BOTH = ProfileSettings(applications=("code",), keyboards=("3434:*",))
BOARD = ("Keychron Q3", "3434:0361", "A1B2")


@pytest.mark.parametrize(
    ("now", "name"),
    [
        (Surroundings(), None),
        (Surroundings("firefox"), None),
        (Surroundings("GameLauncher"), "game"),
        (Surroundings("code"), "work"),
        (Surroundings("codec"), None),
        (Surroundings("firefox", BOARD), "sofa"),
        (Surroundings("code", BOARD), "both"),
        (Surroundings("game", BOARD), "game"),
    ],
)
def test_the_profile_that_says_most_about_the_moment_holds(
    now: Surroundings, name: str | None
) -> None:
    assert fitting({"sofa": SOFA, "game": GAME, "work": WORK, "both": BOTH}, now) == name


def test_of_two_that_fit_alike_the_first_holds() -> None:
    profiles = {
        "a": ProfileSettings(applications=("x",)),
        "b": ProfileSettings(applications=("*",)),
    }
    assert fitting(profiles, Surroundings("x")) == "a"


@given(st.text(), st.lists(st.text(), max_size=3))
def test_a_profile_for_nothing_never_holds(application: str, names: list[str]) -> None:
    assert fitting({"n": ProfileSettings()}, Surroundings(application, tuple(names))) is None


def test_an_unknown_program_fits_no_pattern() -> None:
    assert fitting({"all": ProfileSettings(applications=("*",))}, Surroundings("")) is None


def test_a_profile_changes_what_it_names_and_nothing_else() -> None:
    settings = Settings(profiles={"work": WORK, "sofa": SOFA})
    work = effective(settings, "work")
    assert (work.mode, work.chat.persona, work.lights.enabled) == (ModeName.CHAT, "duck", False)
    assert work.layout == settings.layout
    assert work.chat.history_turns == settings.chat.history_turns
    assert effective(settings, "sofa") == settings.model_copy(update={"layout": "de"})
    assert effective(settings, None) is settings


def test_an_unknown_layout_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(ValueError, match="us"):
        ProfileSettings(layout="no such layout")
