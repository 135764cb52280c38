# SPDX-License-Identifier: Apache-2.0
"""Pictures of every page in both languages and colours, at 100 and 200 %, kept to be looked at.

They lie in artefacts/settings (git-ignored). A machine can tell what is cut off; how it looks, a person must.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings_window.first_steps import Step
from app.settings_window.labels import Place

ROOT = Path(__file__).resolve().parents[2]
SCENES = len(Place) + len(Step) + 1  # what a search finds
LOOKS = 4


X_SERVER = ("xvfb-run", "-a", "-s", "-screen 0 2600x1800x24")


@pytest.mark.parametrize("scale", ["1", pytest.param("1.5", marks=pytest.mark.slow), "2"])
def test_every_page_at_every_scale(scale: str) -> None:
    """On a real X server where there is one to start."""
    has_x = shutil.which(X_SERVER[0]) is not None
    folder = ROOT / "artefacts" / "settings" / scale
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(
        [
            *(X_SERVER if has_x else ()),
            *(sys.executable, "-m", "tests.helpers.settings_pictures", str(folder)),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "QT_QPA_PLATFORM": "xcb" if has_x else "offscreen",
            "QT_SCALE_FACTOR": scale,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(folder.glob("*.png"))) == SCENES * LOOKS
