# SPDX-License-Identifier: Apache-2.0
"""The program in front under macOS: NSWorkspace's frontmost application. It needs no permission.

https://developer.apple.com/documentation/appkit/nsworkspace. Through pyobjc, which the tray brings
there. Not run on macOS yet; see docs/PLATFORMS.md.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

from app.focus.source import FocusUnknownError

_LOOK_S = 0.25


def load_workspace() -> Any:
    """NSWorkspace.

    Raises:
        FocusUnknownError: pyobjc is missing.
    """
    try:
        return importlib.import_module("AppKit").NSWorkspace.sharedWorkspace()
    except ImportError:
        raise FocusUnknownError("install pyobjc-framework-Cocoa") from None


class MacFocus:
    """Looks four times a second: notifications come only to a thread with a run loop."""

    def __init__(self, workspace: Any = None) -> None:
        self._workspace = workspace if workspace is not None else load_workspace()
        self._woken = threading.Event()

    def application(self) -> str:
        """The localized name: `Safari`."""
        front = self._workspace.frontmostApplication()
        return str(front.localizedName() or "") if front is not None else ""

    def wait(self) -> None:
        self._woken.wait(_LOOK_S)

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        """Nothing is held."""
