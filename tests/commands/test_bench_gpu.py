# SPDX-License-Identifier: Apache-2.0
"""`thock bench gpu` starts the acceptance runs with what was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.commands import bench_gpu
from app.commands.bench import command
from engine.bench.gpu.__main__ import SECTIONS


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    argvs: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> Any:
        argvs.append(argv)
        return subprocess.CompletedProcess(argv, 1)

    monkeypatch.setattr(bench_gpu.subprocess, "run", run)
    return argvs


def test_options_and_exit_code_go_through(started: list[list[str]], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("words", encoding="utf-8")
    done = CliRunner().invoke(
        command,
        ["gpu", "--model", "random:smollm2", "--out", str(tmp_path), "--only", "hashes", "--only", "leases",
         "--repeats", "500", "--text", str(text), "--kernel", "grid", "--prepare"],
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    argv = " ".join(started[0])
    for part in (
        "-m engine.bench.gpu random:smollm2",
        "--only hashes --only leases",
        "--repeats 500",
        "--kernel grid",
        "--prepare",
        f"--text {text}",
        f"--out {tmp_path}",
    ):
        assert part in argv, part


def test_every_section_can_be_asked_for() -> None:
    assert tuple(SECTIONS) == bench_gpu._SECTIONS


def test_a_folder_is_needed(started: list[list[str]]) -> None:
    assert CliRunner().invoke(command, ["gpu"]).exit_code == 2
    assert not started


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.bench.gpu", "random:small", "--out", str(tmp_path), "--only", "hashes"],
        capture_output=True, text=True, check=False, cwd=bench_gpu.PACKAGE_ROOT,
    )  # fmt: skip
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 2, done.stderr
    assert "not run hashes" in done.stdout
    assert not list(tmp_path.glob("*.json"))
