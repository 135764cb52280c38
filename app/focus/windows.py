# SPDX-License-Identifier: Apache-2.0
"""The program in front under Windows: the process of the foreground window.

https://learn.microsoft.com/windows/win32/api/winuser/nf-winuser-getforegroundwindow. Not run on
Windows yet; see docs/PLATFORMS.md.
"""

from __future__ import annotations

import threading
from typing import Any

from app.focus.source import FocusUnknownError

# Asking costs some microseconds; a hook of the system would need a message loop of its own.
_LOOK_S = 0.25
_QUERY_LIMITED = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION
_PATH_CHARS = 1024


def load_libraries() -> tuple[Any, Any]:
    """user32 and kernel32.

    Raises:
        FocusUnknownError: this is not Windows.
    """
    import ctypes

    loader = getattr(ctypes, "WinDLL", None)
    if loader is None:
        raise FocusUnknownError("this is not Windows")
    user32, kernel32 = loader("user32"), loader("kernel32")
    # Handles are pointers: without this, ctypes cuts them to 32 bits.
    user32.GetForegroundWindow.restype = ctypes.c_void_p
    user32.GetWindowThreadProcessId.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    kernel32.OpenProcess.restype = ctypes.c_void_p
    kernel32.CloseHandle.argtypes = [ctypes.c_void_p]
    kernel32.QueryFullProcessImageNameW.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_wchar_p, ctypes.c_void_p,
    ]  # fmt: skip
    return user32, kernel32


class WindowsFocus:
    """Looks four times a second."""

    def __init__(self, libraries: tuple[Any, Any] | None = None) -> None:
        self._user32, self._kernel32 = libraries or load_libraries()
        self._woken = threading.Event()

    def application(self) -> str:
        """The file name of the program without .exe: `firefox`, `Code`."""
        import ctypes

        window = self._user32.GetForegroundWindow()
        if not window:
            return ""
        process_id = ctypes.c_uint32()
        self._user32.GetWindowThreadProcessId(window, ctypes.byref(process_id))
        process = self._kernel32.OpenProcess(_QUERY_LIMITED, False, process_id.value)
        if not process:
            return ""  # of another person, or it ended
        try:
            path = ctypes.create_unicode_buffer(_PATH_CHARS)
            size = ctypes.c_uint32(_PATH_CHARS)
            if not self._kernel32.QueryFullProcessImageNameW(process, 0, path, ctypes.byref(size)):
                return ""
        finally:
            self._kernel32.CloseHandle(process)
        name = path.value.rpartition("\\")[2]
        return name[:-4] if name.lower().endswith(".exe") else name

    def wait(self) -> None:
        self._woken.wait(_LOOK_S)

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        """Nothing is held."""
