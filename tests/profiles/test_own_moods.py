# SPDX-License-Identifier: Apache-2.0
"""The person's own moods: labels, faces, lights and examples as data; a damaged file is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.modes.moods import MAX_FILE_BYTES, MoodsError, load_moods, load_own_moods
from app.companion.own_files import OwnFiles
from app.companion.presets import load_presets
from app.i18n import Language
from app.settings import ModeName, Settings
from engine.messages import Choose, LabelChosen
from firmware_bridge.lights.overlay import Rgb
from tests.helpers.companion import Desk

ENTRY = 'face = "(^)"\nart = "█"\ncolour = [1, 2, 3]\n'
OWN = f"""
[win]
name.zh_CN = "赢"
{ENTRY}
examples = [["gg", "fast"], ["we did it", "fast"]]
[lose]
{ENTRY}
"""


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "moods.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_own_moods_take_the_place_of_the_shipped_ones(tmp_path: Path) -> None:
    moods = load_own_moods(written(tmp_path, OWN), Language.ZH_CN)
    assert moods is not None
    assert list(moods) == ["win", "lose"]
    assert moods["win"].name == "赢"
    assert moods["lose"].name == "lose"
    assert moods["win"].lights.fill == Rgb(1, 2, 3)


def test_the_model_chooses_among_them_after_their_examples(tmp_path: Path) -> None:
    desk = Desk(Settings(mode=ModeName.REACT), own=OwnFiles(moods=written(tmp_path, OWN)))
    desk.type("gg\n")
    choose = desk.engine.commands[-1]
    assert isinstance(choose, Choose)
    assert choose.labels == ["win", "lose"]
    answers = [turn.content for turn in choose.turns if turn.role == "assistant"]
    assert answers == ["win", "win"]  # the shipped examples name moods that are not there
    desk.post(LabelChosen(request=choose.request, label="win", probability=0.9, milliseconds=1))
    assert desk.state.reply == "win"


def test_no_file_means_the_shipped_ones(tmp_path: Path) -> None:
    assert load_own_moods(tmp_path / "none.toml", Language.EN) is None
    assert load_presets(Language.EN, OwnFiles(moods=tmp_path / "none.toml")).moods == load_moods()


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"[one]\n{ENTRY}",
        "[a]\n[b]\n",
        OWN.replace("[1, 2, 3]", "[1, 2, 300]"),
        OWN.replace('"(^)"', '"a\\nb\\nc\\nd\\ne"'),
        OWN + 'effect = "strobe"\n',
        OWN + "more = 1\n",
        "x" * (MAX_FILE_BYTES + 1),
        "[" * 9000,
        b"\xff\xfe",
    ],
)
@pytest.mark.expected_log("mend it or remove it")
def test_a_damaged_file_is_told_and_the_shipped_moods_hold(
    tmp_path: Path, text: str | bytes
) -> None:
    file = written(tmp_path, text)
    presets = load_presets(Language.EN, OwnFiles(moods=file))
    assert presets.moods == load_moods()
    assert "moods.toml" in str(presets.problems[0])


@given(data=st.binary(max_size=120))
def test_any_bytes_are_moods_or_an_error(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(MoodsError):
        load_own_moods(written(tmp_path_factory.mktemp("moods"), data), Language.EN)
