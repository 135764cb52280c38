# SPDX-License-Identifier: Apache-2.0
"""Folders that cannot be used: every command says which, why and what to do, and none ends in a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.config.paths import UnsafeFolderError, runtime_folder, why_not_writable
from app.doctor.folders import check_folders
from app.doctor.report import CheckStatus
from engine.texts import Text
from tests.helpers.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="XDG folders")

PROGRAM = "from app.cli import main; main()"
COMMANDS = (
    ("status",),
    ("settings", "get", "mode"),
    ("settings", "set", "suggest.count", "2"),
    ("model", "list"),
    ("doctor",),
    ("run", "--engine", "fake", "--keyboard", "virtual"),
)


NAMES = ("RUNTIME_DIR", "CONFIG_HOME", "STATE_HOME", "DATA_HOME", "CACHE_HOME")


def environment(home: Path) -> dict[str, str]:
    folders = {f"XDG_{name}": str(home / name.lower()) for name in NAMES}
    kept = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {**kept, "HOME": str(home), **folders}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "name", ["XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"]
)
def test_a_blocked_folder_is_named_and_no_traceback_is_seen(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    surroundings = environment(tmp_path)
    for folder in NAMES:
        (tmp_path / folder.lower()).mkdir(mode=0o700)
    place = Path(surroundings[name]) / "thock"
    place.write_text("no folder")  # nobody can write there, not even root
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], env=surroundings, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if words[0] == "run" and name != "XDG_RUNTIME_DIR":  # it runs without that folder
        door = tmp_path / "runtime_dir" / "thock" / "companion.json"
        wait_until(lambda: child.poll() is not None or door.exists(), 100)
        child.terminate()
        output = child.communicate(timeout=100)[0]
        assert child.returncode == 0
    else:
        output = child.communicate(timeout=100)[0]
    assert "Traceback" not in output
    assert child.returncode in (0, 1, 2, 3)
    needs_it = {
        "XDG_RUNTIME_DIR": words[0] not in ("model",),
        "XDG_CONFIG_HOME": words[:2] == ("settings", "set") or words[0] == "doctor",
        "XDG_STATE_HOME": words[0] == "doctor",
        "XDG_DATA_HOME": words[0] == "doctor",
    }
    if needs_it[name]:
        assert str(place) in output
        assert child.returncode in (1, 2)


def test_the_runtime_folder_says_what_is_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "thock").symlink_to("/tmp")
    with pytest.raises(UnsafeFolderError, match=r"not a folder of yours: remove it"):
        runtime_folder()
    (tmp_path / "thock").unlink()
    assert runtime_folder() == tmp_path / "thock"
    if Path("/proc/self").exists():
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
        with pytest.raises(UnsafeFolderError, match=r"/proc/thock .*: .*\. Make it a folder"):
            runtime_folder()


def test_folders_are_looked_at_without_leaving_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert why_not_writable(tmp_path / "a" / "b") is None
    (tmp_path / "file").touch()
    assert why_not_writable(tmp_path / "file" / "thock") == "Not a directory"
    assert check_folders({Text("log"): tmp_path / "a"}).status is CheckStatus.OK
    found = check_folders({Text("log"): tmp_path / "file"})
    assert found.status is CheckStatus.ERROR
    assert str(tmp_path / "file") in found.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "thock"]
