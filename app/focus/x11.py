# SPDX-License-Identifier: Apache-2.0
"""The program in front under X11: `_NET_ACTIVE_WINDOW` of the window manager, and the window's class.

https://specifications.freedesktop.org/wm-spec/latest/ and ICCCM section 4.1.2.5 (WM_CLASS).
"""

from __future__ import annotations

import os
import select
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.error import ConnectionClosedError, DisplayError, XError

from app.focus.source import FocusUnknownError

_WAKE = b"x"


class XFocus:
    """Listens for changes of the root window's properties.

    Raises (by the constructor):
        FocusUnknownError: no X server, or a window manager that does not tell.
    """

    def __init__(self, display: str | None = None) -> None:
        try:
            self._display = Display(display)
        except (DisplayError, OSError) as error:
            raise FocusUnknownError(f"no X server answers ({type(error).__name__})") from None
        self._root = self._display.screen().root
        self._active = self._display.intern_atom("_NET_ACTIVE_WINDOW")
        self._reader, self._writer = os.pipe()
        self._root.change_attributes(event_mask=X.PropertyChangeMask)
        self._display.flush()

    def application(self) -> str:
        """The class of the active window: `Firefox`, `code`."""
        try:
            active = self._root.get_full_property(self._active, X.AnyPropertyType)
            if active is None or not active.value or not active.value[0]:
                return ""
            window = self._display.create_resource_object("window", active.value[0])
            wm_class = window.get_wm_class()
        except XError:
            return ""  # the window is gone already
        except (ConnectionClosedError, OSError):
            raise FocusUnknownError("the X server is gone") from None
        return str(wm_class[1]) if wm_class else ""

    def wait(self) -> None:
        """Until the property changes; every other event is dropped."""
        try:
            while True:
                while self._display.pending_events():
                    if self._is_ours(self._display.next_event()):
                        return
                ready, _, _ = select.select([self._display, self._reader], [], [])
                if self._reader in ready:
                    os.read(self._reader, 16)
                    return
        except (ConnectionClosedError, OSError):
            raise FocusUnknownError("the X server is gone") from None

    def wake(self) -> None:
        os.write(self._writer, _WAKE)

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
        try:
            self._display.close()
        except (ConnectionClosedError, OSError):
            self._display.display.socket.close()  # the server went first; Xlib leaves it open then

    def _is_ours(self, event: Any) -> bool:
        return bool(event.type == X.PropertyNotify and event.atom == self._active)
