# SPDX-License-Identifier: Apache-2.0
"""What Thock starts runs Thock's own code, whatever lies in the folder that it was started in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.lifecycle.window import NoWindowError, window_command
from engine.client import MODEL_ENGINE

# A checkout that is not built has the packages, a folder of one's own may have any module.
_SHADOWS = ("app", "engine", "firmware_bridge", "assets", "json", "random")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules of the names that the children import; each ends its process."""
    for name in _SHADOWS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('shadowed')\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ((*MODEL_ENGINE, "--address", "/nonexistent/socket"), 3, "thock-engine ERROR"),
        (tuple(window_command("nowhere", {"DISPLAY": ":0"})), 2, "first-steps"),
    ],
    ids=["engine", "window"],
)
def test_a_child_imports_nothing_from_the_folder(
    folder: Path, command: Sequence[str], status: int, said: str
) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    ended = subprocess.run(
        command, cwd=folder, env=environment, input="", capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert "shadowed" not in ended.stderr
    assert (ended.returncode, said in ended.stderr) == (status, True)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a display")
def test_without_a_display_there_is_no_window() -> None:
    with pytest.raises(NoWindowError, match="no graphical session"):
        window_command("status", {})
