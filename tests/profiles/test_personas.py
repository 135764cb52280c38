# SPDX-License-Identifier: Apache-2.0
"""Personas: the shipped ones are whole in every language, damaged ones of the person's own are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.personas import (
    DEFAULT_PERSONA,
    MAX_FILE_BYTES,
    MAX_OWN_FILES,
    load_personas,
    shipped_personas,
)
from app.i18n import Language
from app.settings import ChatSettings
from firmware_bridge.lights.overlay import LightEffect, Rgb

OWN = """
colour = [1, 2, 3]
effect = "pulse"
[en]
name = "Pirate"
prompt = "You are a pirate."
style = "Say arr."
"""


@pytest.mark.parametrize("language", Language)
def test_the_shipped_ones_have_a_name_and_words_in_every_language(language: Language) -> None:
    personas = shipped_personas(language)
    assert ChatSettings().persona == DEFAULT_PERSONA
    assert DEFAULT_PERSONA in personas
    is_chinese = [any("一" <= c <= "鿿" for c in p.name + p.system) for p in personas.values()]
    assert all(is_chinese) if language is Language.ZH_CN else not any(is_chinese)
    assert len({p.name for p in personas.values()}) == len(personas)


def test_a_file_of_ones_own_comes_beside_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "pirate.toml").write_text(OWN)
    personas, errors = load_personas(Language.ZH_CN, tmp_path)
    assert not errors
    pirate = personas["pirate"]
    assert (pirate.name, pirate.system) == ("Pirate", "You are a pirate. Say arr.")
    assert pirate.lights.fill == Rgb(1, 2, 3)
    assert pirate.lights.effect is LightEffect.PULSE
    assert set(personas) == {*shipped_personas(Language.EN), "pirate"}


def test_a_file_with_the_name_of_a_shipped_one_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / f"{DEFAULT_PERSONA}.toml").write_text(OWN)
    assert load_personas(Language.EN, tmp_path)[0][DEFAULT_PERSONA].name == "Pirate"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "colour = [1, 2]\n[en]\n",
        "colour = [1, 2, 256]\n[en]\n",
        'colour = [1, 2, 3]\neffect = "strobe"\n[en]\n',
        'colour = [1, 2, 3]\n[en]\nname = ""\n',
        "colour = [1, 2, 3]\n[en]\nunknown = 1\n",
        "colour = [1, 2, 3",
        "[" * 5000,
        "x" * (MAX_FILE_BYTES + 1),
    ],
)
def test_a_damaged_file_is_told_by_name_and_the_shipped_one_stays(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / f"{DEFAULT_PERSONA}.toml").write_text(text)
    personas, (error,) = load_personas(Language.EN, tmp_path)
    assert personas == shipped_personas(Language.EN)
    assert f"{DEFAULT_PERSONA}.toml" in str(error)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_persona_or_an_error(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("personas")
    (folder / "x.toml").write_bytes(data)
    personas, errors = load_personas(Language.EN, folder)
    assert ("x" in personas) != bool(errors)


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert load_personas(Language.EN, tmp_path / "none")[1] == ()


def test_a_folder_full_of_files_is_read_to_a_limit(tmp_path: Path) -> None:
    for number in range(MAX_OWN_FILES + 3):
        (tmp_path / f"p{number:03}.toml").write_text(OWN)
    personas, errors = load_personas(Language.EN, tmp_path)
    assert len(personas) == MAX_OWN_FILES + len(shipped_personas(Language.EN))
    assert len(errors) == 1
