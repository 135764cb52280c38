# SPDX-License-Identifier: Apache-2.0
"""Lint, format, types and layers hold for the whole tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["app", "engine", "firmware_bridge", "tests", "setup.py"]
MAX_LINES = 400


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ruff_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "check", *SOURCES)


def test_code_is_formatted() -> None:
    run(sys.executable, "-m", "ruff", "format", "--check", *SOURCES)


@pytest.mark.timeout(600)
def test_types_hold() -> None:
    run(sys.executable, "-m", "mypy")


def test_layers_hold() -> None:
    output = run(str(Path(sys.executable).with_name("lint-imports")))
    assert "0 broken" in output


@pytest.mark.parametrize("package", ["app", "engine", "firmware_bridge"])
def test_files_are_short_and_licensed(package: str) -> None:
    files = [
        p for suffix in ("py", "c", "h", "cu", "cuh") for p in (ROOT / package).rglob(f"*.{suffix}")
    ]
    files = [p for p in files if p.name != "_core.c"]
    assert files
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= MAX_LINES, f"{path}: {len(lines)} lines"
        assert "SPDX-License-Identifier" in "\n".join(lines[:2]), path
