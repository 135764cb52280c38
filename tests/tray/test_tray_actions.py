# SPDX-License-Identifier: Apache-2.0
"""Every row of the menu does what it says, through the same commands as everything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.platform.desktop import NoProgramError, clipboard_commands, copy_text
from app.settings import ModeName
from app.tray.actions import TrayActions
from app.tray.menu import Action, ChooseProfile
from app.tray.tray import NullTray
from tests.helpers.running_host import RunningHost


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningHost]:
    with RunningHost(tmp_path) as host:
        assert host.wait(lambda: host.companion.state.engine.value == "ready")
        yield host


def test_every_row_has_its_command(running: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    opened: list[Path] = []
    monkeypatch.setattr("app.tray.actions.copy_text", copied.append)
    monkeypatch.setattr("app.tray.actions.open_folder", opened.append)
    act = TrayActions(running.host, lambda _reason: None)
    for action in Action:
        act(action)
    assert running.pages == ["status", "ask", "keyboard", "diagnostics"]
    assert len(copied) == len(opened) == 1
    assert running.quits == 1
    assert running.wait(lambda: not running.companion.state.is_paused)
    assert running.wait(lambda: running.companion.state.mode is ModeName.REACT)
    assert running.wait(lambda: running.engine.switched[-1:] == ["stop"])


def test_a_profile_is_chosen_until_automatic_is_again(running: RunningHost) -> None:
    host = running.host
    host.change_settings(
        {"profiles": {"talk": {"mode": "chat"}, "code": {"applications": ["code"], "off": True}}}
    )
    act = TrayActions(host, lambda _reason: None)
    assert running.wait(lambda: host.state is not None)

    def now() -> tuple[str, bool]:
        assert host.state is not None
        return host.state.profile, host.state.is_profile_chosen

    assert now() == ("", False)
    act(ChooseProfile("talk"))
    assert now() == ("talk", True)
    assert running.wait(lambda: running.companion.state.mode is ModeName.CHAT)
    host.application_changed("code")
    assert now() == ("talk", True)  # also where another one fits
    act(ChooseProfile(None))
    assert now() == ("code", False)
    assert running.wait(lambda: running.companion.state.is_paused)
    act(ChooseProfile("talk"))
    host.change_settings({"profiles": {"talk": None}})
    assert now() == ("code", False)  # it is gone


@pytest.mark.expected_log("to copy, install")
def test_what_cannot_be_done_is_told(running: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str) -> None:
        raise NoProgramError("to copy, install xclip.")

    told: list[str] = []
    monkeypatch.setattr("app.tray.actions.copy_text", fail)
    TrayActions(running.host, told.append)(Action.COPY_REPLY)
    assert told == ["to copy, install xclip."]
    NullTray("").notify("Thock", told[0])


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_a_text_goes_to_the_first_program_that_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "clipboard"
    for name, script in (("wl-copy", "exit 1"), ("xclip", f"cat > {kept}")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    copy_text("ein Wort 字", {"WAYLAND_DISPLAY": "w"})
    assert kept.read_text() == "ein Wort 字"
    with pytest.raises(NoProgramError, match="install wl-clipboard"):
        copy_text("x", {}, lambda _name: None)


def test_each_system_has_its_clipboard() -> None:
    assert clipboard_commands("win32", {}) == (("clip",),)
    assert clipboard_commands("darwin", {}) == (("pbcopy",),)
    assert [c[0] for c in clipboard_commands("linux", {})] == ["xclip", "xsel"]
    names = [c[0] for c in clipboard_commands("linux", {"WAYLAND_DISPLAY": "w"})]
    assert names == ["wl-copy", "xclip", "xsel"]
