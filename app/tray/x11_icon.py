# SPDX-License-Identifier: Apache-2.0
"""pystray's X11 icon, with what version 0.19.5 lacks.

It stretches one picture to the window, which panels make any shape, and drops its alpha; it does not ask the
server for clicks; and it is changed from other threads, which python-xlib 0.33 does not stand: an answer that
one thread waits for gets lost when another one sends. So everything here is done by the main loop.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pystray  # type: ignore[import-untyped]
from PIL import Image


def is_x11() -> bool:
    """Whether pystray has chosen its X11 backend."""
    return bool(pystray.Icon.__module__.endswith("._xorg"))


class X11Icon(pystray.Icon):  # type: ignore[misc]
    """`draw(side)` gives the square icon; it is put in the middle of the window."""

    draw: Callable[[int], Image.Image]
    _icon_data: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sleeper, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        super().__init__(*args, **options)

    def _create_window(self) -> Any:
        from Xlib import X

        window = super()._create_window()
        mask = X.ExposureMask | X.StructureNotifyMask | X.ButtonPressMask
        window.change_attributes(event_mask=mask)
        return window

    @property
    def is_docked(self) -> bool:
        """A panel has taken the icon in."""
        return self._systray_manager is not None

    def has_host(self) -> bool:
        """Some panel takes icons in. Only before the main loop, or on it."""
        from Xlib.error import ConnectionClosedError

        try:
            return self._get_systray_manager() is not None
        except ConnectionClosedError:
            return False  # `run` will find that out too

    def post(self, work: Callable[[], None]) -> None:
        """Have the main loop do `work` soon. From any thread; the only method that is."""
        self._work.put(work)
        with contextlib.suppress(
            BlockingIOError, OSError
        ):  # full: it wakes anyway; closed: it ended
            self._waker.send(b"\0")

    def _run(self) -> None:
        self._thread = threading.current_thread()
        super()._run()

    def _events(self) -> Iterator[Any]:
        """All events, and the posted work between them."""
        while True:
            while self._display.pending_events():
                yield self._display.next_event()
            while not self._work.empty():
                self._work.get()()
            if not self._display.pending_events():
                ready, _, _ = select.select([self._display.fileno(), self._sleeper], [], [])
                if self._sleeper in ready:
                    self._sleeper.recv(4096)

    def _assert_icon_data(self, width: int, height: int) -> None:
        if self._icon_data is not None and self._icon_data.size == (width, height):
            return
        side = min(width, height)
        square = self.draw(side)
        picture: Any = Image.new("RGB", (width, height), square.getpixel((0, 0)))
        picture.paste(square, ((width - side) // 2, (height - side) // 2))
        picture.tostring = picture.tobytes  # python-xlib asks for it by its old name
        self._icon_data = picture


def has_server() -> bool:
    """The X server of the session is there. Takes some 20 ms."""
    from Xlib import display, error

    try:
        display.Display().close()
    except (error.DisplayError, error.ConnectionClosedError, OSError):
        return False
    return True
