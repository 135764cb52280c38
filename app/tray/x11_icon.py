# SPDX-License-Identifier: Apache-2.0
"""pystray's X11 icon, with what version 0.19.5 lacks.

It stretches one picture to the window, which panels make any shape, and drops its alpha; it does not ask the
server for clicks; and it is changed from other threads, which python-xlib 0.33 does not stand: an answer that
one thread waits for gets lost when another one sends. So everything here is done by the main loop.

And it takes an icon for docked that has only asked to be, and asks again at each change, three times at the
start. Panels that make a new place for each request move the icon from one to the next, and may remove the
last one with the first. So here it is docked once the server says that it has another parent; it asks once, and
again only when nothing has come of that; a panel that comes later says so itself (freedesktop.org, System Tray
Protocol and XEmbed).
"""

from __future__ import annotations

import contextlib
import logging
import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pystray  # type: ignore[import-untyped]
from PIL import Image

# So long a panel may take. It must be longer than any panel needs: a second request is no harmless one.
DOCK_LIMIT_S = 3.0

_log = logging.getLogger(__name__)


def is_x11() -> bool:
    """Whether pystray has chosen its X11 backend."""
    return bool(pystray.Icon.__module__.endswith("._xorg"))


class X11Icon(pystray.Icon):  # type: ignore[misc]
    """`draw(side)` gives the square icon; it is put in the middle of the window."""

    draw: Callable[[int], Image.Image]
    _icon_data: Any
    _systray_manager: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sleeper, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        from Xlib.error import ConnectionClosedError

        # Kept, because `__del__` may come too late to import anything.
        self._gone = (ConnectionClosedError, OSError)
        self._is_embedded = False
        self._asked_at = float("-inf")
        super().__init__(*args, **options)
        self._display.set_error_handler(_note_error)  # else python-xlib prints them
        self._hear_of_panels()

    def __del__(self) -> None:
        # As pystray's, which cannot do it without a server: then Python prints a traceback at the end.
        self._sleeper.close()
        self._waker.close()
        display = getattr(self, "_display", None)
        if display is not None:
            with contextlib.suppress(*self._gone):
                display.close()

    def _create_window(self) -> Any:
        from Xlib import X

        window = super()._create_window()
        mask = X.ExposureMask | X.StructureNotifyMask | X.ButtonPressMask
        window.change_attributes(event_mask=mask)
        return window

    def _dock(self) -> None:
        """Ask the panel to take the icon in, unless it did, or was asked a moment ago."""
        if self._is_embedded:
            return
        manager = self._get_systray_manager()
        asked, self._systray_manager = self._systray_manager, manager
        if manager is None:
            return
        now = time.monotonic()
        is_same = asked is not None and asked.id == manager.id
        if is_same and now - self._asked_at < DOCK_LIMIT_S:
            return
        self._asked_at = now
        self._dock_window()

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
            if self.visible:
                self._dock()
            if not self._display.pending_events():
                patience_s = DOCK_LIMIT_S if self.visible and not self._is_embedded else None
                streams = [self._display.fileno(), self._sleeper]
                ready, _, _ = select.select(streams, [], [], patience_s)
                if self._sleeper in ready:
                    self._sleeper.recv(4096)

    # ---------------------------------------------------------------- in the place of pystray's

    def _show(self) -> None:
        """The loop of `_events` docks it."""

    def _update_icon(self) -> None:
        self._icon_data = None
        self._icon_valid = True
        if self._is_embedded:
            self._draw()

    def _hear_of_panels(self) -> None:
        from Xlib import X

        self._root = self._display.screen().root
        self._root.change_attributes(event_mask=X.StructureNotifyMask)
        manager = self._display.intern_atom("MANAGER")
        other = self._message_handlers[X.ClientMessage]

        def message(event: Any) -> None:
            if event.client_type != manager:
                other(event)
            elif event.data[1][1] == self._net_system_tray_sx:
                self._asked_at = float("-inf")

        self._message_handlers[X.ClientMessage] = message
        self._message_handlers[X.ReparentNotify] = self._moved

    def _moved(self, event: Any) -> None:
        """The window has another parent: a panel's, or the root's when the panel let go of it."""
        if event.window.id != self._window.id:
            return
        self._is_embedded = event.parent.id != self._root.id
        if not self._is_embedded:
            self._asked_at = float("-inf")  # to ask again is no second request

    def _on_destroy_notify(self, event: Any) -> None:
        manager = self._systray_manager
        if manager is not None and event.window.id == manager.id:
            self._systray_manager = None

    def _assert_icon_data(self, width: int, height: int) -> None:
        if self._icon_data is not None and self._icon_data.size == (width, height):
            return
        side = min(width, height)
        square = self.draw(side)
        picture: Any = Image.new("RGB", (width, height), square.getpixel((0, 0)))
        picture.paste(square, ((width - side) // 2, (height - side) // 2))
        picture.tostring = picture.tobytes  # python-xlib asks for it by its old name
        self._icon_data = picture


def _note_error(error: Any, _request: object) -> None:
    """Errors of the server for what nobody waits for: a panel's window may go at any moment."""
    _log.debug("the X server answered %s", type(error).__name__)


def has_server() -> bool:
    """The X server of the session is there. Takes some 20 ms."""
    from Xlib import display, error

    try:
        display.Display().close()
    except (error.DisplayError, error.ConnectionClosedError, OSError):
        return False
    return True
