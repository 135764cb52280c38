# SPDX-License-Identifier: Apache-2.0
"""The clipboard and the selection as texts to ask about, through stand-ins for the system's programs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from app.platform.desktop import NoProgramError
from app.platform.text_sources import (
    MAX_CHARS,
    NoTextError,
    TextSource,
    question_about,
    read_text,
    reading_commands,
)

X11 = {"DISPLAY": ":0"}
WAYLAND = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}


def program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    return tmp_path


def found_in(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def read(folder: Path, source: TextSource, environment: dict[str, str] = X11) -> str:
    return read_text(source, "linux", environment, lambda name: found_in(folder, name))


def test_x11_tells_the_clipboard_from_the_selection(path: Path) -> None:
    program(path, "xclip", 'echo "$3"')
    assert read(path, TextSource.CLIPBOARD) == "clipboard"
    assert read(path, TextSource.SELECTION) == "primary"


def test_wayland_has_its_own_program_and_x11_is_the_next_choice(path: Path) -> None:
    program(path, "xsel", "echo of X")
    assert read(path, TextSource.CLIPBOARD, WAYLAND) == "of X"
    program(path, "wl-paste", "echo of Wayland")
    assert read(path, TextSource.CLIPBOARD, WAYLAND) == "of Wayland"
    assert read(path, TextSource.CLIPBOARD, X11) == "of X"


@pytest.mark.parametrize("script", ["exit 1", "true", "printf '\\n \\n'", "echo no; exit 1"])
def test_no_text_is_said(path: Path, script: str) -> None:
    program(path, "xclip", script)
    with pytest.raises(NoTextError, match="selection"):
        read(path, TextSource.SELECTION)


def test_bytes_that_are_no_text_do_no_harm_and_a_long_text_is_cut(path: Path) -> None:
    program(path, "xclip", r"printf 'a\377b'")
    assert read(path, TextSource.CLIPBOARD) == "a\ufffdb"
    program(path, "xclip", "head -c 100000 /dev/zero | tr '\\0' x")
    text = read(path, TextSource.CLIPBOARD)
    assert len(text) == MAX_CHARS
    assert text.endswith("x ...")


def test_without_a_program_the_message_says_which(path: Path) -> None:
    with pytest.raises(NoProgramError, match="xclip"):
        read(path, TextSource.CLIPBOARD)
    with pytest.raises(NoProgramError, match="selection"):
        read_text(TextSource.SELECTION, "darwin", {})


def test_the_other_systems_have_programs_for_the_clipboard() -> None:
    assert reading_commands(TextSource.CLIPBOARD, "darwin", {}) == (("pbpaste",),)
    assert reading_commands(TextSource.CLIPBOARD, "win32", {})[0][0] == "powershell"


def test_a_question_stands_before_the_text() -> None:
    assert question_about("text", " What? ") == "What?\n\ntext"
    assert question_about("text", "") == "text"
