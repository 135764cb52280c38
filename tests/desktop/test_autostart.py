# SPDX-License-Identifier: Apache-2.0
"""Entries for autostart of all three systems, written in folders and a registry of the test's own."""

from __future__ import annotations

import configparser
import contextlib
import plistlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.lifecycle.followers import AutostartFollower, Notifier
from app.lifecycle.host import HostState
from app.platform.autostart import (
    Autostart,
    DesktopEntry,
    LaunchAgent,
    RunKey,
    system_autostart,
    thock_command,
)
from app.settings import Settings
from engine.client import EngineState
from tests.helpers.companion import Desk
from tests.helpers.waiting import wait_until

COMMAND = ["/opt/with space/python", "-m", "app", "run", "--tray"]


class FakeRegistry:
    """The part of winreg that is used, over a dict."""

    HKEY_CURRENT_USER = "HKCU"
    KEY_SET_VALUE = 2
    REG_SZ = 1

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}

    @contextlib.contextmanager
    def OpenKey(self, root: str, path: str, *_: int) -> Iterator[str]:
        assert root == "HKCU"
        yield path

    CreateKey = OpenKey

    def QueryValueEx(self, key: str, name: str) -> tuple[str, int]:
        if (key, name) not in self.values:
            raise FileNotFoundError(2, "not found")
        return self.values[key, name], self.REG_SZ

    def SetValueEx(self, key: str, name: str, _: int, kind: int, value: str) -> None:
        assert kind == self.REG_SZ
        self.values[key, name] = value

    def DeleteValue(self, key: str, name: str) -> None:
        if (key, name) not in self.values:
            raise FileNotFoundError(2, "not found")
        del self.values[key, name]


def entries(folder: Path) -> list[Autostart]:
    return [DesktopEntry(folder / "a"), LaunchAgent(folder / "b"), RunKey(FakeRegistry())]


@pytest.mark.parametrize("number", range(3))
def test_on_and_off(tmp_path: Path, number: int) -> None:
    entry = entries(tmp_path)[number]
    assert not entry.is_on()
    entry.turn_off()
    entry.turn_on(COMMAND)
    entry.turn_on(COMMAND)
    assert entry.is_on()
    entry.turn_off()
    assert not entry.is_on()


@pytest.mark.parametrize("word", ["/opt/with space/python", "100%", 'a"b', "back\\slash", "$HOME`"])
def test_the_desktop_entry_is_read_back_as_it_was_meant(tmp_path: Path, word: str) -> None:
    entry = DesktopEntry(tmp_path)
    entry.turn_on([word, "run"])
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(entry.path)
    section = parser["Desktop Entry"]
    value = section["Exec"].replace("\\\\", "\\").replace("%%", "%")
    # The quoting of the specification is that of a shell's double quotes.
    said = subprocess.run(["sh", "-c", f"printf '%s|' {value}"], capture_output=True, text=True)
    assert said.stdout == f"{word}|run|"
    assert section["Type"] == "Application"


def test_the_property_list_starts_at_log_in(tmp_path: Path) -> None:
    entry = LaunchAgent(tmp_path)
    entry.turn_on(COMMAND)
    agent = plistlib.loads(entry.path.read_bytes())
    assert agent["ProgramArguments"] == COMMAND
    assert agent["RunAtLoad"] is True


def test_the_run_key_quotes_what_has_spaces() -> None:
    registry = FakeRegistry()
    RunKey(registry).turn_on(COMMAND)
    (line,) = registry.values.values()
    assert line == subprocess.list2cmdline(COMMAND)
    assert line.startswith('"/opt/with space/python"')


def test_this_system_has_one(tmp_path: Path) -> None:
    entry = system_autostart("linux", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert isinstance(entry, DesktopEntry)
    assert entry.path == tmp_path / "autostart" / "thock.desktop"
    assert isinstance(system_autostart("darwin", {}), LaunchAgent)


def test_the_command_starts_thock() -> None:
    done = subprocess.run(
        [*thock_command()[:3], "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("thock ")


def state(**general: bool) -> HostState:
    settings = Settings.model_validate({"general": general})
    return HostState(Desk().state, settings, "Board")


def is_followed() -> bool:
    return not any(thread.name == "autostart" for thread in threading.enumerate())


class SlowEntry(DesktopEntry):
    """On a disk that is slow to write."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_writing, self.may_write = threading.Event(), threading.Event()

    def turn_on(self, command: Sequence[str]) -> None:
        self.is_writing.set()
        assert self.may_write.wait(30)
        super().turn_on(command)


def test_of_two_changes_in_a_row_the_last_one_holds(tmp_path: Path) -> None:
    entry = SlowEntry(tmp_path)
    follow = AutostartFollower(entry)
    follow(state(autostart=True))
    assert entry.is_writing.wait(30)
    follow(state(autostart=False))
    entry.may_write.set()
    wait_until(is_followed)
    assert not entry.is_on()


def test_the_entry_follows_the_setting(tmp_path: Path) -> None:
    entry = DesktopEntry(tmp_path)
    follow = AutostartFollower(entry)
    for wanted in (True, False, True):
        follow(state(autostart=wanted))
        wait_until(lambda wanted=wanted: entry.is_on() is wanted)
    kept = entry.path.read_text() + "# mine\n"
    entry.path.write_text(kept)
    follow(state(autostart=True))
    AutostartFollower(entry)(state(autostart=True))
    wait_until(is_followed)
    assert entry.path.read_text() == kept


def test_what_is_lost_is_told_once_and_only_if_wanted() -> None:
    notes: list[tuple[str, str]] = []
    notifier = Notifier(lambda title, message: notes.append((title, message)), lambda _state: str)
    here = state()
    gone = replace(here, companion=replace(here.companion, keyboard=None))
    broken = replace(
        here,
        companion=replace(here.companion, engine=EngineState.FAILED, engine_detail="no memory"),
    )
    for moment in (gone, here, gone, gone, here, broken, broken):
        notifier(moment)
    assert notes == [("Thock", "The keyboard is gone"), ("The model has stopped", "no memory")]
    notifier(here)
    quiet = Settings.model_validate({"general": {"notifications": False}})
    notifier(replace(gone, settings=quiet))
    assert len(notes) == 2
