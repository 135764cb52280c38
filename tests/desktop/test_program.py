# SPDX-License-Identifier: Apache-2.0
"""The whole program without a desktop: damaged settings, a second start, no place for an icon."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError
from tests.helpers.waiting import wait_until

RUN = (sys.executable, "-m", "app", "run", "--engine", "fake", "--keyboard", "virtual")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="runtime folders of Unix")


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="thock-"))  # short: a socket lies in it
    (folder / "run").mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "STATE", "DATA")}
    return {**kept, **folders, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}


@contextlib.contextmanager
def program(home: Path, *more: str) -> Iterator[Path]:
    """Runs until the end of the block; yields the file with what it says."""
    said = home / "said"
    with said.open("w") as stream:
        child = subprocess.Popen(
            [*RUN, *more], env=environment(home), stderr=stream, stdout=subprocess.DEVNULL
        )
    try:
        wait_for_visitor(home)
        yield said
    finally:
        child.terminate()
        try:
            assert child.wait(60) == 0
        finally:
            child.kill()


def wait_for_visitor(home: Path) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            IpcClient(home / "run" / "thock").close()
        except IpcError:
            if time.monotonic() > end:
                raise
        else:
            return
        time.sleep(0.02)


def test_with_damaged_settings_it_starts_and_says_so(home: Path) -> None:
    folder = home / "config" / "thock"
    folder.mkdir(parents=True)
    damaged = "mode = 'chat'\n[[[\nsuggest = 7\ncontext_chars = -1\n"
    (folder / "settings.toml").write_text(damaged)
    with program(home) as said, IpcClient(home / "run" / "thock") as visitor:
        assert visitor.request("status")["state"]["mode"] == "chat"
        problems = visitor.request("get-settings")["problems"]
        assert [place for place, _ in problems] == ["line 2", "context_chars", "suggest"]
        for place, _ in problems:
            assert f"settings.toml: {place}: " in said.read_text()
    (backup,) = folder.glob("settings.broken-*.toml")
    assert backup.read_text() == damaged
    assert "context_chars" in (home / "state" / "thock" / "log" / "thock.log").read_text()


def test_a_second_start_shows_the_first(home: Path) -> None:
    with program(home), IpcClient(home / "run" / "thock", "settings") as window:
        second = subprocess.run(
            RUN, env=environment(home), capture_output=True, text=True, timeout=60, check=False
        )
        assert second.returncode == 0, second.stderr
        assert "runs already" in second.stdout
        assert next(window.events()) == {"type": "page-wanted", "page": "status"}


AGAIN = """
import os, signal, threading, time
from app.lifecycle.program import stop_on_signals
stop = threading.Event()
stop_on_signals(stop)
for _ in range(3):
    os.kill(os.getpid(), signal.SIGINT)
    assert stop.wait(50)
    time.sleep(0.1)
"""


def test_a_person_may_press_ctrl_c_again_while_it_ends(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN], env=environment(home), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_desktop_the_tray_only_says_so(home: Path) -> None:
    with program(home, "--tray") as said:
        wait_until(lambda: "no graphical session here" in said.read_text())
        done = subprocess.run(
            [sys.executable, "-m", "app", "status"], env=environment(home), capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "Thock virtual keyboard" in done.stdout
