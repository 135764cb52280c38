# SPDX-License-Identifier: Apache-2.0
"""Whenever the process is killed, the file is the old or the new one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.config.atomic import write_atomically
from app.config.store import SettingsStore
from app.settings import Settings

WRITER = """
import sys
from pathlib import Path
from app.config.store import SettingsStore
store = SettingsStore(Path(sys.argv[1]))
number = 64
print("writing", flush=True)
while True:
    number = number + 1 if number < 8000 else 64
    store.change({"context_chars": number, "chat": {"question_chars": 16 + number % 3000}})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_kill_at_any_moment_leaves_whole_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("# mine\nmode = 'chat'\n")
    chance = random.Random(7)
    for _ in range(25):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.05))
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate(timeout=30)
        loaded = SettingsStore(path).load()
        assert loaded.problems == ()
        assert loaded.settings.mode == "chat"
        assert path.read_text().startswith("# mine\n")
        chars = loaded.settings.context_chars
        if chars != Settings().context_chars:  # else no change was written yet
            assert loaded.settings.chat.question_chars == 16 + chars % 3000, "half of a change"


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes, and links that need a right")
def test_the_file_is_private_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "settings.toml"
    link.symlink_to(tmp_path / "dotfiles" / "thock.toml")
    write_atomically(link, b"1")
    write_atomically(link, b"2")
    assert link.is_symlink()
    assert link.read_bytes() == b"2"
    assert link.stat().st_mode & 0o777 == 0o600
