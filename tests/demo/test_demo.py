# SPDX-License-Identifier: Apache-2.0
"""The whole of Thock on the virtual keyboard, with scripted replies instead of a model."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from prompt_toolkit.utils import get_cwidth

from app.cli import main
from app.commands.speech import speech
from app.demo import player
from tests.helpers.english_left import english_left


def play(tmp_path: Path, script: str, *options: str) -> tuple[int, str]:
    file = tmp_path / "script.thock"
    file.write_text(script, encoding="utf-8")
    result = CliRunner().invoke(main, ["demo", "--engine", "fake", "--script", str(file), *options])
    return result.exit_code, result.output


def test_a_tour_of_the_modes(tmp_path: Path) -> None:
    code, output = play(
        tmp_path,
        "speed 300\ntype The quick \nwait suggestion 10\nshow\n"
        "mode chat\ntype What is this?\nkey enter\nwait reply 20\nshow\n"
        "mode react\ntype done at last\nkey enter\nwait mood 10\nshow\n"
        "press pause\nexpect paused\npress pause\nwait idle 5\n",
        "--geometry",
        "128x32",
    )
    assert code == 0, output
    assert "0 failed" in output
    assert "suggest: key to answer" in output
    assert output.count("╭─ ") == 3


def test_fast_typing_loses_nothing(tmp_path: Path) -> None:
    text = "it was the best of times, it was the worst of times; " * 3
    code, output = play(tmp_path, f"speed 900\ntype {text}\nwait suggestion 20\n")
    assert code == 0, output
    keys = next(line for line in output.splitlines() if "keys arrived" in line)
    arrived, _, typed = keys.split(", ")[2].split()[:3]
    assert arrived == typed
    assert int(typed) >= len(text)


@pytest.mark.expected_log("engine child died: it was killed by SIGKILL")
def test_killed_engine_comes_back(tmp_path: Path) -> None:
    code, output = play(
        tmp_path,
        "speed 300\ntype Hello \nwait suggestion 10\nkill engine\ntype again \n"
        "wait suggestion 20\nshow\n",
    )
    assert code == 0, output


def test_failure_is_told_and_counted(tmp_path: Path) -> None:
    code, output = play(tmp_path, "type é\nexpect nothing like this\nkey any\n")
    assert code == 1
    assert "line 1: character 1 is not on the layout" in output
    assert "line 2: the OLED does not show" in output
    assert "3 failed" in output


def test_recording_is_private_and_holds_the_frames(tmp_path: Path) -> None:
    file = tmp_path / "traffic.jsonl"
    code, output = play(tmp_path, "type hi\nwait suggestion 10\n", "--record", str(file))
    assert code == 0, output
    assert "will hold every key" in output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {"in", "out"} <= {row["dir"] for row in rows}


def test_broken_script_and_missing_model_are_explained(tmp_path: Path) -> None:
    code, output = play(tmp_path, "jump\n")
    assert code == 1
    assert "line 1" in output
    result = CliRunner().invoke(main, ["demo", "--model", str(tmp_path / "none.gguf")])
    assert result.exit_code == 1
    assert "thock model add smollm2" in result.output


def test_a_recording_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    code, output = play(tmp_path, "type hi\n", "--record", str(tmp_path / "none" / "x"))
    assert code == 1
    assert "No such file" in output


def test_without_a_terminal_the_demo_says_so() -> None:
    result = CliRunner().invoke(main, ["demo", "--engine", "fake"])
    assert result.exit_code == 1
    assert "--script" in result.output


TOUR = (
    "speed 300\ntype The quick \nwait suggestion 10\nshow\nmode chat\ntype What is this?\nkey enter\n"
    "wait reply 20\nmode react\npress pause\nexpect paused\nshow\npress pause\nwait idle 5\n"
)
MISTAKES = "type é\nexpect nothing like this\nkey any\nmode chat\nwait mood 0.2\n"
BROKEN = ("jump", "type", "speed fast", "speed 0", "wait forever", "mode party", "expect")
# The name of the fake model, words of the scripts, which are typed as they are, and percentiles.
SCRIPT_WORDS = (
    "scripted replies (no model", "The quick", "What is this", "nothing like this", "any", "p50", "p99", "jump",
    "type", "speed", "fast",
    "wait", "mode", "expect", "kill", "key", "press", "sleep", "show", "suggestion", "mood", "reply", "idle",
    *player._KEYS,
)  # fmt: skip


@pytest.fixture
def chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings say Chinese."""
    (tmp_path / "thock").mkdir()
    (tmp_path / "thock" / "settings.toml").write_text('language = "zh_CN"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    speech.cache_clear()
    yield
    speech.cache_clear()


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is set by XDG")
@pytest.mark.usefixtures("chinese")
def test_a_script_is_played_and_told_in_chinese(tmp_path: Path) -> None:
    code, output = play(tmp_path, TOUR)
    assert code == 0, output
    outputs = [output, play(tmp_path, MISTAKES)[1]]
    for line in BROKEN:
        code, output = play(tmp_path, f"{line}\n")
        assert code == 1
        outputs.append(output)
    for output in outputs:
        text = "\n".join(line for line in output.split("\n") if not line.startswith("│"))
        assert re.search("[一-鿿]", text)
        left = english_left(text, *SCRIPT_WORDS, str(tmp_path / "script.thock"))
        assert left == [], output


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is set by XDG")
@pytest.mark.usefixtures("chinese")
def test_the_frame_of_a_picture_is_straight_in_chinese(tmp_path: Path) -> None:
    _, output = play(tmp_path, TOUR)
    box = [line for line in output.split("\n") if line.startswith(("╭", "│", "╰"))]
    assert box
    assert len({get_cwidth(line) for line in box}) == 1
