# SPDX-License-Identifier: Apache-2.0
"""`thock` itself: every command explains itself, and none drags the heavy packages in."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from app.cli import main


@pytest.mark.parametrize("command", ["demo", "devices", "doctor", "model", "monitor", "run"])
def test_each_command_has_help(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_group_help_lists_the_commands() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    assert all(name in output for name in ("demo", "doctor", "model", "run"))


def test_command_line_starts_without_heavy_packages() -> None:
    script = (
        "import sys, app.cli, app.commands.model;"
        "heavy = {'torch', 'numpy', 'PIL', 'transformers', 'PySide6'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
