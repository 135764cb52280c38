# SPDX-License-Identifier: Apache-2.0
"""pystray's X11 icon, with what version 0.19.5 lacks.

It stretches one picture to the window, which panels make any shape, and drops its alpha; it does not ask the
server for clicks; and it may be used before it knows its own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
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

    def _create_window(self) -> Any:
        from Xlib import X  # type: ignore[import-untyped]

        window = super()._create_window()
        mask = X.ExposureMask | X.StructureNotifyMask | X.ButtonPressMask
        window.change_attributes(event_mask=mask)
        return window

    def _run(self) -> None:
        self._thread = threading.current_thread()
        super()._run()

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
    """The X server of the session is there."""
    server = _connected()
    if server is not None:
        server.close()
    return server is not None


def has_host() -> bool:
    """A panel that takes icons in owns the selection _NET_SYSTEM_TRAY_S0 (freedesktop.org, System Tray
    Protocol)."""
    server = _connected()
    if server is None:
        return False
    try:
        atom = server.intern_atom(f"_NET_SYSTEM_TRAY_S{server.get_default_screen()}")
        return bool(server.get_selection_owner(atom))
    finally:
        server.close()


def _connected() -> Any:
    from Xlib import display, error  # type: ignore[import-untyped]

    try:
        return display.Display()
    except (error.DisplayError, OSError):
        return None
