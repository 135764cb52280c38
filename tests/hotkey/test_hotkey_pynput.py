# SPDX-License-Identifier: Apache-2.0
"""Shortcuts through pynput on an X server of the test's own, with keys that the test presses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is missing")

PROGRAM = """
import threading
from app.hotkey.bindings import HotkeyAction, parse
from app.hotkey.follower import system_source
heard = threading.Event()
def press(action):
    print(action.value, flush=True)
    heard.set()
source = system_source()
source.start({HotkeyAction.ASK: parse("<ctrl>+<alt>+a"), HotkeyAction.PAUSE: parse("<f9>")}, press)
print(type(source).__name__, flush=True)
heard.wait(30)
source.stop()
print("stopped", flush=True)
"""


@pytest.fixture
def display() -> Iterator[str]:
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "200x100x24", "-nolisten", "tcp"],
        pass_fds=[write], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as told:
        name = f":{told.readline().strip()}"
    yield name
    server.terminate()
    server.wait(10)


def test_a_combination_is_heard_and_its_keys_alone_are_not(display: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "WAYLAND_DISPLAY"}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**environment, "DISPLAY": display},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    guard = threading.Timer(40, child.kill)
    guard.start()
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "PynputHotkeys\n"
        press(display, ["a"])
        press(display, ["Control_L", "a"])
        press(display, ["Control_L", "Alt_L", "a"])
        assert child.stdout.readline() == "ask\n"
        assert child.stdout.readline() == "stopped\n"
    finally:
        guard.cancel()
        child.kill()
        child.wait(10)
        child.stdout.close()


def press(name: str, keys: list[str]) -> None:
    from Xlib import XK, X, display
    from Xlib.ext import xtest

    server = display.Display(name)
    codes = [server.keysym_to_keycode(XK.string_to_keysym(key)) for key in keys]
    for code in codes:
        xtest.fake_input(server, X.KeyPress, code)
    for code in reversed(codes):
        xtest.fake_input(server, X.KeyRelease, code)
    server.sync()
    server.close()
