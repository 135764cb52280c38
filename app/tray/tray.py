# SPDX-License-Identifier: Apache-2.0
"""What a tray is, the one for places without any, and which of them this computer has."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from app.i18n import Translate
from app.lifecycle.host import HostState
from app.tray.menu import Action, ChooseProfile
from engine.failures import name_of_error

_log = logging.getLogger(__name__)

# On Windows a thread that waits without a limit does not see Ctrl+C.
_LOOK_UP_S = 0.5 if sys.platform == "win32" else None

Perform = Callable[[Action | ChooseProfile], None]
Translator = Callable[[HostState], Translate]
"""Texts in the language of the settings."""


class Tray(Protocol):
    """`run` belongs on the main thread: macOS takes no other. `update` comes from any thread."""

    @property
    def advice(self) -> str:
        """How to get a tray, or a better one; empty: this is one. In English."""
        ...

    def run(self, stop: threading.Event) -> None:
        """Show the icon until `stop` is set."""
        ...

    def update(self, state: HostState) -> None:
        """The host is in another state. Never waits."""
        ...

    def notify(self, title: str, message: str) -> None:
        """Tell something that needs the person, where the system can. Never waits."""
        ...


class NullTray:
    """No icon; everything else works. `advice` says why there is none."""

    def __init__(self, advice: str) -> None:
        self._advice = advice

    @property
    def advice(self) -> str:
        return self._advice

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(_LOOK_UP_S):
            pass

    def update(self, state: HostState) -> None:
        pass

    def notify(self, title: str, message: str) -> None:
        pass


NO_SESSION = (
    "no graphical session here, so there is no tray icon; use `thock status`, `thock ask` and "
    "`thock settings`."
)
NO_HOST = (
    "this desktop has no place for the icon yet: GNOME needs the extension AppIndicator, sway and i3 a bar "
    "with a tray. Until then use `thock settings`."
)
NO_MENU = (
    "the icon has no menu here: click it for the window. For a menu install the GTK bindings (Debian: "
    "python3-gi gir1.2-ayatanaappindicator3-0.1; Fedora: python3-gobject libayatana-appindicator-gtk3) for "
    "the Python that runs Thock."
)


def make_tray(
    perform: Perform,
    translator: Translator,
    environment: Mapping[str, str] = os.environ,
) -> Tray:
    """The tray of this computer. Loads its toolkit, which takes a tenth of a second."""
    is_unix_desktop = sys.platform not in ("win32", "darwin")
    if is_unix_desktop and not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return NullTray(NO_SESSION)
    try:
        from app.tray.pystray_tray import PystrayTray

        return PystrayTray(perform, translator)
    except Exception as error:  # noqa: BLE001  pystray lets through whatever its toolkits raise
        _log.warning("no tray: %s", name_of_error(error))
        return NullTray(NO_HOST if is_unix_desktop else "the tray icon cannot be shown here.")
