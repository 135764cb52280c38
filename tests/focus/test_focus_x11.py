# SPDX-License-Identifier: Apache-2.0
"""The program in front under a real X server. The test plays the window manager: it sets the property."""

from __future__ import annotations

import gc
import os
import queue
import shutil
import subprocess
import warnings
from collections.abc import Iterator

import pytest
from Xlib import Xatom
from Xlib.display import Display

from app.focus.source import FocusUnknownError
from app.focus.watch import FocusWatch
from app.focus.x11 import XFocus

pytestmark = pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")


class XServer:
    """Xvfb on a free display."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        self._process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", "320x200x24", "-nolisten", "tcp", "-noreset"],
            pass_fds=[writer], stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writer)
        with os.fdopen(reader) as told:
            self.name = f":{told.readline().strip()}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server() -> Iterator[XServer]:
    xvfb = XServer()
    yield xvfb
    xvfb.kill()


def make_window(display: Display, name: str) -> int:
    root = display.screen().root
    window = root.create_window(0, 0, 10, 10, 0, display.screen().root_depth)
    window.set_wm_class(name.lower(), name)
    display.sync()
    return int(window.id)


def bring_to_front(display: Display, window: int) -> None:
    atom = display.intern_atom("_NET_ACTIVE_WINDOW")
    display.screen().root.change_property(atom, Xatom.WINDOW, 32, [window])
    display.sync()


def test_each_window_that_comes_to_the_front_is_named_by_its_class(server: XServer) -> None:
    display = Display(server.name)
    editor, browser = make_window(display, "Editor"), make_window(display, "Browser")
    heard: queue.Queue[str] = queue.Queue()
    focus = FocusWatch(heard.put, lambda: XFocus(server.name))
    focus.start()
    assert heard.get(timeout=60) == ""
    for window, name in ((editor, "Editor"), (browser, "Browser"), (0, ""), (editor, "Editor")):
        bring_to_front(display, window)
        assert heard.get(timeout=60) == name
    bring_to_front(display, 0x7FFFFF)  # a window that is gone
    assert heard.get(timeout=60) == ""
    focus.stop()
    display.close()


@pytest.mark.expected_log("no longer known")
def test_a_server_that_goes_away_ends_the_watch(server: XServer) -> None:
    display = Display(server.name)
    bring_to_front(display, make_window(display, "Editor"))
    heard: queue.Queue[str] = queue.Queue()
    focus = FocusWatch(heard.put, lambda: XFocus(server.name))
    focus.start()
    assert heard.get(timeout=60) == "Editor"
    display.close()
    server.kill()
    assert heard.get(timeout=60) == ""
    focus.stop()


def test_no_server_is_a_clear_error() -> None:
    with warnings.catch_warnings():
        # Xlib leaves the sockets of its tries to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(FocusUnknownError):
            XFocus(":987")
        gc.collect()
