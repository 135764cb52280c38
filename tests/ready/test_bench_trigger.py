# SPDX-License-Identifier: Apache-2.0
"""`thock bench trigger`: what it counts, what it prints, and that replies are ready on the real way."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.bench.report import Run, document, percentile, table
from app.bench.trigger import Shot
from app.cli import main
from app.companion.ready import ReadyStats

SLOW_MACHINE_S = 0.25


def test_replies_are_ready_on_the_real_way(tmp_path: Path) -> None:
    """Firmware core, link, companion and engine child; the times only on the scale of a busy machine."""
    file = tmp_path / "trigger.json"
    options = ["--wpm", "120", "--triggers", "2", "--pause", "think", "--json", str(file)]
    result = CliRunner().invoke(main, ["bench", "trigger", *options])
    assert result.exit_code == 0, result.output
    assert "27 ms a step" in result.output
    (run,) = json.loads(file.read_text())["runs"]
    assert run["triggers"] == 2
    assert run["hit_rate"] == 1.0
    assert min(shot["us"] for shot in run["shots"]) < SLOW_MACHINE_S * 1e6
    assert run["ready"]["hits"] == 2
    assert 0 < run["ready"]["wasted"] < run["ready"]["computed"]


def test_a_step_that_is_longer_than_the_pause_misses(tmp_path: Path) -> None:
    file = tmp_path / "trigger.json"
    options = ["--wpm", "120", "--triggers", "1", "--pause", "rhythm", "--step-ms", "500"]
    result = CliRunner().invoke(main, ["bench", "trigger", *options, "--json", str(file)])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(file.read_text())["runs"]
    assert run["hit_rate"] == 0.0
    assert run["hit_us"] == {}
    assert all(shot["us"] > 100_000 for shot in run["shots"])


def test_the_group_lists_its_commands_without_importing_them() -> None:
    result = CliRunner().invoke(main, ["bench", "--help"])
    assert result.exit_code == 0
    assert "trigger" in result.output
    assert CliRunner().invoke(main, ["bench", "nothing"]).exit_code == 2


def test_the_table_tells_hits_from_misses() -> None:
    shots = (
        Shot(0.1, True, 2e-4, 1e-5, 0.03, 5e-5),
        Shot(0.2, True, 3e-4, 2e-5, 0.04, 7e-5),
        Shot(0.01, False, 0.05),
    )
    run = Run(90, shots, ReadyStats(2, 1, 100, 40))
    assert run.hit_rate == pytest.approx(2 / 3)
    head, line = table([run])
    numbers = line.replace("|", " ").split()
    assert numbers == [
        "90",
        "3",
        "66.7%",
        "200",
        "300",
        "300",
        "320",
        "50",
        "50",
        "30",
        "40",
        "100",
        "40",
        "50",
        "70",
    ]
    assert "wasted" in head
    whole = document([run], {"seed": 1})
    assert json.loads(json.dumps(whole)) == whole


def test_a_run_without_misses_has_dashes() -> None:
    run = Run(60, (Shot(0.1, True, 0.0002),), ReadyStats())
    assert "-" in table([run])[1]
    assert document([run], {})["runs"][0]["miss_us"] == {}  # type: ignore[index]


def test_percentiles() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0
    assert math.isnan(percentile([], 50))


def test_the_ask_key_in_suggest_mode_is_a_trigger_too(tmp_path: Path) -> None:
    file = tmp_path / "trigger.json"
    options = ["--mode", "suggest", "--wpm", "120", "--triggers", "2", "--pause", "think"]
    result = CliRunner().invoke(main, ["bench", "trigger", *options, "--json", str(file)])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(file.read_text())["runs"]
    assert run["hit_rate"] == 1.0
    assert run["ready"]["misses"] == 0
    assert all(shot["bare_thread_us"] > 0 for shot in run["shots"])
