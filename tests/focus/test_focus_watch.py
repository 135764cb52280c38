# SPDX-License-Identifier: Apache-2.0
"""The watch on the program in front: told once per change, ends cleanly, survives a source that ends."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from app.focus.macos import MacFocus
from app.focus.source import FocusSource, FocusUnknownError
from app.focus.watch import MAX_NAME, FocusWatch, system_source
from app.focus.windows import WindowsFocus, load_libraries


class ScriptedSource:
    """Tells what was put in; an empty queue waits."""

    def __init__(self, *names: str | None) -> None:
        self.names: queue.Queue[str | None] = queue.Queue()
        for name in names:
            self.names.put(name)
        self.current: str | None = ""
        self.closed = False
        self.wait()

    def application(self) -> str:
        if self.current is None:
            raise FocusUnknownError("the server is gone")
        return self.current

    def wait(self) -> None:
        self.current = self.names.get()

    def wake(self) -> None:
        self.names.put("woken")

    def close(self) -> None:
        self.closed = True


def watch(open_source: Callable[[], FocusSource]) -> tuple[FocusWatch, queue.Queue[str]]:
    heard: queue.Queue[str] = queue.Queue()
    return FocusWatch(heard.put, open_source), heard


def test_each_change_is_told_once() -> None:
    source = ScriptedSource("firefox", "firefox", "code", "", "code")
    focus, heard = watch(lambda: source)
    focus.start()
    assert [heard.get(timeout=60) for _ in range(4)] == ["firefox", "code", "", "code"]
    focus.stop()
    assert source.closed
    assert heard.empty()
    focus.stop()


@pytest.mark.expected_log("no longer known")
def test_a_source_that_ends_is_told_as_unknown() -> None:
    source = ScriptedSource("firefox", None)
    focus, heard = watch(lambda: source)
    focus.start()
    assert [heard.get(timeout=60) for _ in range(2)] == ["firefox", ""]
    focus.stop()
    assert source.closed


def test_without_a_source_the_name_is_unknown() -> None:
    def no_source() -> FocusSource:
        raise FocusUnknownError("none here")

    focus, heard = watch(no_source)
    focus.start()
    assert heard.get(timeout=60) == ""
    focus.stop()


def test_a_name_is_bounded() -> None:
    source = ScriptedSource("x" * 10_000)
    focus, heard = watch(lambda: source)
    focus.start()
    assert heard.get(timeout=60) == "x" * MAX_NAME
    focus.stop()


@pytest.mark.parametrize("environment", [{}, {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}])
def test_wayland_and_no_display_say_why(environment: dict[str, str]) -> None:
    with pytest.raises(FocusUnknownError):
        system_source("linux", environment)


class FakeWindows:
    """user32 and kernel32 in one, as far as they are used."""

    def __init__(self, path: str, *, window: int = 7, process: int = 9) -> None:
        self.path, self.window, self.process = path, window, process
        self.closed: list[int] = []

    def GetForegroundWindow(self) -> int:
        return self.window

    def GetWindowThreadProcessId(self, window: int, place: Any) -> int:
        place._obj.value = 1234
        return 1

    def OpenProcess(self, access: int, inherit: bool, process_id: int) -> int:
        assert (access, inherit, process_id) == (0x1000, False, 1234)
        return self.process

    def QueryFullProcessImageNameW(self, process: int, flags: int, text: Any, size: Any) -> int:
        if not self.path:
            return 0
        text.value = self.path
        return 1

    def CloseHandle(self, process: int) -> None:
        self.closed.append(process)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r"C:\Program Files\Mozilla Firefox\firefox.exe", "firefox"),
        (r"C:\Games\Quake.EXE", "Quake"),
        (r"D:\tool", "tool"),
        ("", ""),
    ],
)
def test_windows_names_the_program_file_and_gives_the_process_back(path: str, name: str) -> None:
    fake = FakeWindows(path)
    assert WindowsFocus((fake, fake)).application() == name
    assert fake.closed == [9]


@pytest.mark.parametrize("missing", ["window", "process"])
def test_windows_without_a_window_or_a_process_names_nothing(missing: str) -> None:
    fake = FakeWindows("x.exe", **{missing: 0})
    assert WindowsFocus((fake, fake)).application() == ""
    assert fake.closed == []


def test_windows_elsewhere_is_a_clear_error() -> None:
    with pytest.raises(FocusUnknownError):
        load_libraries()


@pytest.mark.parametrize(("name", "expected"), [("Safari", "Safari"), (None, "")])
def test_macos_names_the_frontmost_application(name: str | None, expected: str) -> None:
    class App:
        def localizedName(self) -> str | None:
            return name

    class Workspace:
        def __init__(self, front: App | None) -> None:
            self.front = front

        def frontmostApplication(self) -> App | None:
            return self.front

    assert MacFocus(Workspace(App())).application() == expected
    assert MacFocus(Workspace(None)).application() == ""
