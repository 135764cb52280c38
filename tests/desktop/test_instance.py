# SPDX-License-Identifier: Apache-2.0
"""One companion for each user, whatever became of the last one; and one window."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.config.paths import UnsafeFolderError, runtime_folder
from app.ipc.protocol import IpcError
from app.lifecycle.instance import OneInstance, RunningAlreadyError, show_running
from app.lifecycle.window import SettingsWindow
from tests.helpers.running_host import RunningHost
from tests.helpers.waiting import wait_until

HOLDER = """
import sys, time
from pathlib import Path
from app.lifecycle.instance import OneInstance
with OneInstance(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_a_second_one_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    child = holder(tmp_path)
    with pytest.raises(RunningAlreadyError), OneInstance(tmp_path):
        pass
    child.terminate()
    child.communicate(timeout=60)
    with OneInstance(tmp_path):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_one_leaves_no_lock_whoever_has_its_number_now(tmp_path: Path) -> None:
    child = holder(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    # What it left behind names a process that lives: this one.
    plate = {"address": str(tmp_path / "companion.sock"), "pid": os.getpid(), "key": "00" * 32}
    (tmp_path / "companion.json").write_text(json.dumps(plate))
    with OneInstance(tmp_path), RunningHost(tmp_path) as running:
        assert running.wait(lambda: running.companion.state.keyboard is not None)
        show_running(tmp_path, "status")
        assert running.pages == ["status"]


def test_the_second_start_waits_for_one_that_is_about_to_listen(tmp_path: Path) -> None:
    failed: list[Exception] = []

    def ask() -> None:
        try:
            show_running(tmp_path, "general", patience_s=60)
        except IpcError as error:
            failed.append(error)

    second = threading.Thread(target=ask)
    second.start()
    time.sleep(0.2)
    with RunningHost(tmp_path) as running:
        second.join(60)
        assert running.pages == ["general"]
    assert not failed


def test_one_that_never_answers_is_told(tmp_path: Path) -> None:
    with pytest.raises(IpcError):
        show_running(tmp_path, patience_s=0.1)


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_the_runtime_folder_is_private_and_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = runtime_folder()
    assert folder == tmp_path / "thock"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFolderError, match="remove it"):
        runtime_folder()


@pytest.mark.skipif(sys.platform == "win32", reason="folders of Unix")
def test_without_a_session_folder_there_is_one_for_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert runtime_folder() == tmp_path / f"thock-{os.getuid()}"


class Windows:
    """Counts the windows that were started; `is_open` once one has connected."""

    def __init__(self, tmp_path: Path) -> None:
        self.is_open = False
        self.asked: list[str] = []
        self.started = tmp_path / "started"
        script = "import sys, time; open(sys.argv[1], 'a').write(sys.argv[2] + ' '); time.sleep(60)"
        self.window = SettingsWindow(
            self.ask, lambda page: [sys.executable, "-c", script, str(self.started), page]
        )

    def ask(self, page: str) -> bool:
        self.asked.append(page)
        return self.is_open


def test_a_window_is_started_once_and_asked_after(tmp_path: Path) -> None:
    windows = Windows(tmp_path)
    windows.window.show("status")
    windows.window.show("ask")  # the first is on its way
    wait_until(lambda: windows.started.exists() and windows.started.read_text())
    windows.is_open = True
    windows.window.show("privacy")
    assert windows.started.read_text() == "status "
    assert windows.asked == ["status", "ask", "privacy"]
    windows.window.close()
    process = windows.window._process
    assert process is not None
    assert process.wait(10) != 0


@pytest.mark.expected_log("the window cannot be opened")
def test_a_window_that_cannot_be_started_is_told() -> None:
    window = SettingsWindow(lambda _page: False, lambda _page: ["/no/such/program"])
    window.show("status")
    window.close()
