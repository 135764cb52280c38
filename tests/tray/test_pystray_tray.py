# SPDX-License-Identifier: Apache-2.0
"""The tray against a backend that keeps what it is told, and one that fails."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

os.environ.setdefault("PYSTRAY_BACKEND", "dummy")  # before its first import: no display here

from app.lifecycle.host import HostState
from app.settings import GeneralSettings, Settings, TrayInk
from app.tray import pystray_tray
from app.tray.menu import Action
from app.tray.pystray_tray import PystrayTray
from app.tray.tray import NO_SESSION, NullTray, make_tray
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import Desk
from tests.helpers.waiting import wait_until


class FakeBackend:
    """Looks like pystray.Icon; `trouble` makes each change raise."""

    HAS_MENU = True
    HAS_NOTIFICATION = True

    def __init__(self, name: str, icon: Any, title: str, menu: Any) -> None:
        self._values: dict[str, Any] = {"icon": icon, "title": title}
        self.menu = menu
        self.changes: list[str] = []
        self.notes: list[tuple[str, str]] = []
        self.trouble = False
        self.refused = 0
        self.visible = False
        self.ended = threading.Event()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("icon", "title"):
            if self.trouble:
                self.refused += 1
                raise RuntimeError("the panel is gone")
            self.changes.append(name)
            self._values[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_values"][name]

    def update_menu(self) -> None:
        self.changes.append("menu")

    def notify(self, message: str, title: str) -> None:
        self.notes.append((message, title))

    def run(self, setup: Any) -> None:
        threading.Thread(target=setup, args=(self,), daemon=True).start()
        self.ended.wait(60)

    def stop(self) -> None:
        self.ended.set()


class Running:
    """A tray that runs on a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pystray_tray.pystray, "Icon", FakeBackend)
        self.done: list[Action] = []
        self.trouble = False
        self.tray = PystrayTray(self.perform, lambda _state: str)
        self.icon: FakeBackend = self.tray._icon
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.tray.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def perform(self, action: Action) -> None:
        if self.trouble:
            raise RuntimeError("it does not work")
        self.done.append(action)

    def update(self, state: HostState) -> None:
        """Show `state`; returns when that is done."""
        self.tray.update(state)
        wait_until(lambda: not self.tray._is_new)
        self.tray.notify("", "")  # what comes after the state is done after it
        wait_until(lambda: self.icon.notes)
        self.icon.notes.clear()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    tray = Running(monkeypatch)
    yield tray
    tray.stop.set()
    tray.thread.join(30)
    assert not tray.thread.is_alive(), "the tray did not end"


def state(**changes: object) -> HostState:
    return HostState(replace(Desk().state, **changes), Settings(), "Board")  # type: ignore[arg-type]


def test_only_what_differs_is_changed(running: Running) -> None:
    running.update(state())
    assert running.icon.changes == ["icon", "title", "menu"]
    assert running.icon.visible
    running.update(state())
    assert len(running.icon.changes) == 3
    running.update(state(dropped=3, latency=None))
    assert len(running.icon.changes) == 3
    running.update(state(status=Status.THINKING))
    assert running.icon.changes[3:] == ["icon", "title", "menu"]


@pytest.mark.expected_log("the tray could not be changed: RuntimeError")
def test_after_an_error_the_next_state_is_shown(running: Running) -> None:
    running.icon.trouble = True
    for _ in range(3):
        running.update(state(is_paused=True))
    assert running.icon.refused >= 3  # a note has the state shown anew too
    running.icon.trouble = False
    running.update(state(is_paused=True))
    assert running.icon.changes == ["icon", "title", "menu"]


def items(menu: Any) -> dict[str, Any]:
    return {str(item.text): item for item in menu.items}


def test_the_menu_does_what_it_says(running: Running) -> None:
    running.update(state())
    menu = items(running.icon.menu)
    menu["Open Thock"](running.icon)
    items(menu["Pause"].submenu)["1 hour"](running.icon)
    items(menu["Mode"].submenu)["Chat"](running.icon)
    menu["Quit"](running.icon)
    assert running.done == [Action.OPEN, Action.PAUSE_60, Action.CHAT, Action.QUIT]
    assert menu["Open Thock"].default
    assert not menu["Board · 126×32"].enabled
    assert items(menu["Mode"].submenu)["Suggestions"].checked


@pytest.mark.expected_log("quit failed: RuntimeError")
def test_a_row_that_fails_does_not_end_the_loop(running: Running) -> None:
    running.trouble = True
    running.update(state())
    items(running.icon.menu)["Quit"](running.icon)
    assert running.thread.is_alive()


@pytest.mark.expected_log("the tray ended after RuntimeError")
def test_a_toolkit_that_dies_does_not_end_the_companion(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the display server went away")

    monkeypatch.setattr(FakeBackend, "run", fail)
    tray = Running(monkeypatch)
    time.sleep(0.1)
    assert tray.thread.is_alive()
    tray.stop.set()
    tray.thread.join(30)
    assert not tray.thread.is_alive()


def test_notifications_are_cut_to_what_windows_takes(running: Running) -> None:
    running.tray.notify("t" * 100, "m" * 300)
    wait_until(lambda: running.icon.notes)
    ((message, title),) = running.icon.notes
    assert (len(message), len(title)) == (255, 63)


def test_the_ink_can_be_chosen() -> None:
    for ink, is_light in ((TrayInk.LIGHT, True), (TrayInk.DARK, False)):
        settings = Settings(general=GeneralSettings(tray_icon=ink))
        assert pystray_tray.is_light_ink(settings) is is_light


def test_without_a_session_there_is_a_tray_that_only_waits() -> None:
    tray = make_tray(lambda _action: None, lambda _state: str, environment={})
    assert isinstance(tray, NullTray)
    assert tray.advice == NO_SESSION
    stop = threading.Event()
    stop.set()
    tray.update(state())
    tray.run(stop)


def test_a_toolkit_that_cannot_be_loaded_is_explained() -> None:
    script = (
        "import logging; logging.disable();"
        "from app.tray.tray import *;"
        "tray = make_tray(lambda a: None, lambda s: str);"
        "print(type(tray).__name__, 'GNOME' in tray.advice)"
    )
    environment = {**os.environ, "PYSTRAY_BACKEND": "xorg", "DISPLAY": ":998"}
    out = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert out.split() == ["NullTray", "True"]
