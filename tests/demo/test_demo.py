# SPDX-License-Identifier: Apache-2.0
"""The whole of Thock on the virtual keyboard, with scripted replies instead of a model."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import main


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
