# SPDX-License-Identifier: Apache-2.0
"""An X server for tests, what docked icons are to be seen on it, and a panel that counts its requests."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

from PIL import Image


class Screen:
    """An X server without a card."""

    def __init__(self, name: str) -> None:
        from Xlib import display

        self.name = name
        self.display = display.Display(name)
        self._tray = self.display.intern_atom("_NET_SYSTEM_TRAY_S0")

    def icon(self) -> tuple[int, int, int, int] | None:
        """Place and size of the docked icon on the screen; None as long as there is none."""
        found = self._docked()
        return None if found is None else found[1:]

    def holder(self) -> int | None:
        """The window of the panel that holds the icon; a panel makes another one each time it takes it in."""
        found = self._docked()
        return None if found is None else found[0]

    def _docked(self) -> tuple[int, int, int, int, int] | None:
        from Xlib.error import BadDrawable, BadWindow

        root = self.display.screen().root
        try:
            for window in self._below(root):
                klass = window.get_wm_class()
                if klass and klass[1] == "thock":
                    holder = window.query_tree().parent.id
                    if holder == root.id:
                        return None
                    size = window.get_geometry()
                    place = window.translate_coords(root, 0, 0)
                    return holder, -place.x, -place.y, size.width, size.height
        except (BadDrawable, BadWindow):  # one that we came to went away under our eyes
            return None
        return None

    def _below(self, window: object) -> Iterator[object]:
        for child in window.query_tree().children:  # type: ignore[attr-defined]
            yield child
            yield from self._below(child)

    def has_panel(self) -> bool:
        from Xlib import X

        return self.display.get_selection_owner(self._tray) != X.NONE

    def click(self, x: int, y: int) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self.display, X.MotionNotify, x=x, y=y)
        for kind in (X.ButtonPress, X.ButtonRelease):
            xtest.fake_input(self.display, kind, 1)
        self.display.sync()

    def picture(self) -> Image.Image:
        from Xlib import X

        root = self.display.screen().root
        size = root.get_geometry()
        raw = root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF)
        return Image.frombytes("RGB", (size.width, size.height), raw.data, "raw", "BGRX")


def screens() -> Iterator[Screen]:
    """One X server, and its end."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "400x120x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as told:
        number = told.readline().strip()
    found = None
    try:
        found = Screen(f":{number}")
        yield found
    finally:
        if found is not None:
            found.display.close()
        server.terminate()
        server.wait(60)


class StrictPanel:
    """A panel that counts what it is asked, and takes in no icon before it was asked `patience` times."""

    def __init__(self, screen: Screen, patience: int = 1) -> None:
        from Xlib import X, display

        self.requests: list[int] = []
        self._patience = patience
        self._display = display.Display(screen.name)
        self._root = self._display.screen().root
        self._place = self._root.create_window(0, 0, 32, 32, 0, X.CopyFromParent)
        self._place.map()
        self._opcode = self._display.intern_atom("_NET_SYSTEM_TRAY_OPCODE")
        self._tray = self._display.intern_atom("_NET_SYSTEM_TRAY_S0")
        self._place.set_selection_owner(self._tray, X.CurrentTime)
        self._tell("MANAGER")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _tell(self, name: str) -> None:
        from Xlib import X
        from Xlib.protocol.event import ClientMessage

        data = (32, (X.CurrentTime, self._tray, self._place.id, 0, 0))
        kind = self._display.intern_atom(name)
        message = ClientMessage(window=self._root, client_type=kind, data=data)
        self._root.send_event(message, event_mask=X.StructureNotifyMask)
        self._display.flush()

    def _live(self) -> None:
        from Xlib import X

        while not self._stop.wait(0.01):
            while self._display.pending_events():
                event = self._display.next_event()
                if event.type == X.ClientMessage and event.client_type == self._opcode:
                    self.requests.append(event.data[1][2])
                    if len(self.requests) >= self._patience:
                        icon = self._display.create_resource_object("window", self.requests[-1])
                        icon.change_save_set(X.SetModeInsert)
                        icon.reparent(self._place, 0, 0)
                        icon.configure(width=32, height=32)
                        icon.map()
                        self._display.sync()

    def close(self) -> None:
        """As a panel that crashes: the server gives the icon back to the root."""
        self._stop.set()
        self._thread.join(10)
        self._display.close()
