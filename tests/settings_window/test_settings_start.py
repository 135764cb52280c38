# SPDX-License-Identifier: Apache-2.0
"""The window opens soon, brings neither torch nor the engine's computing parts, and ends when asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The goal is 1 s on an idle machine; time on the processor is what other work on the machine does not add to.
LIMIT_CPU_S = 1.0

OPEN = """
import sys, time
from app.settings_window.main import make_application
from app.settings_window.application import SettingsApp
from app.settings_window.companion_link import CompanionLink
app = make_application()
link = CompanionLink()
window = SettingsApp(link, link).window
window.show()
app.processEvents()
heavy = {"torch", "numpy", "engine.cpu", "engine.cuda", "engine.session", "transformers"}
print(f"{time.process_time():.3f} {sorted(heavy & set(sys.modules))}")
"""


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_RUNTIME_DIR": str(home),
    }


def test_it_opens_within_a_second_of_work(tmp_path: Path) -> None:
    runs = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", OPEN], cwd=ROOT, env=environment(tmp_path),
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        took = time.perf_counter() - began
        work, _, heavy = done.stdout.partition(" ")
        assert heavy.strip() == "[]"
        runs.append((float(work), took))
    print(f"work and time of three runs in s: {runs}")
    assert min(work for work, _ in runs) < LIMIT_CPU_S


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_it_ends_on_a_signal_and_with_status_0(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    child = subprocess.Popen(
        [sys.executable, "-m", "app.settings_window", "--page", "privacy"],
        cwd=ROOT, env=environment(tmp_path), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        time.sleep(3)
        assert child.poll() is None, child.stderr and child.stderr.read()
        child.send_signal(signal.SIGTERM)
        assert child.wait(15) == 0
        assert child.stderr is not None
        assert "Traceback" not in child.stderr.read()
    finally:
        child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()


def test_an_unknown_page_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.settings_window", "--page", "nowhere"],
        cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "first-steps" in done.stderr
