# SPDX-License-Identifier: Apache-2.0
"""The lock screen of Windows: messages of the session to a window that nobody sees.

learn.microsoft.com: WTSRegisterSessionNotification, WM_WTSSESSION_CHANGE.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)

WM_CLOSE = 0x0010
WM_DESTROY = 0x0002
WM_WTSSESSION_CHANGE = 0x02B1
# Values of wParam: at the console or from afar, the session is left or locked, come back to or unlocked.
_AWAY = {0x2: True, 0x4: True, 0x7: True, 0x1: False, 0x3: False, 0x8: False}
_THIS_SESSION = 0
_MESSAGE_ONLY = -3  # HWND_MESSAGE


def is_locked_by(message: int, event: int) -> bool | None:
    """What a window message says: True locked, False open, None nothing about it."""
    return _AWAY.get(event) if message == WM_WTSSESSION_CHANGE else None


class WindowsLockWatch:
    """Has a window on a thread of its own."""

    def __init__(self, say: Callable[[bool], None]) -> None:
        self._say = say
        self._window = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thock-lock", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(5)

    def stop(self) -> None:
        if sys.platform == "win32" and self._window:
            import ctypes

            ctypes.windll.user32.PostMessageW(self._window, WM_CLOSE, 0, 0)
            self._thread.join(5)

    def _run(self) -> None:
        if sys.platform != "win32":
            return
        import ctypes
        from ctypes import wintypes

        user32, wtsapi32 = ctypes.windll.user32, ctypes.windll.wtsapi32
        result = ctypes.c_ssize_t
        user32.DefWindowProcW.restype = result
        user32.DefWindowProcW.argtypes = [
            wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM,
        ]  # fmt: skip
        procedure_type = ctypes.WINFUNCTYPE(
            result, wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM
        )

        def procedure(window: int, message: int, wide: int, long: int) -> int:
            is_locked = is_locked_by(message, wide)
            if is_locked is not None:
                self._say(is_locked)
            if message == WM_DESTROY:
                user32.PostQuitMessage(0)
            return int(user32.DefWindowProcW(window, message, wide, long))

        class WindowClass(ctypes.Structure):
            _fields_ = (
                ("style", wintypes.UINT), ("lpfnWndProc", procedure_type),
                ("cbClsExtra", ctypes.c_int), ("cbWndExtra", ctypes.c_int),
                ("hInstance", wintypes.HINSTANCE), ("hIcon", wintypes.HANDLE),
                ("hCursor", wintypes.HANDLE), ("hbrBackground", wintypes.HANDLE),
                ("lpszMenuName", wintypes.LPCWSTR), ("lpszClassName", wintypes.LPCWSTR),
            )  # fmt: skip

        kept = procedure_type(procedure)  # must live as long as the window
        name = "ThockLockWatch"
        window_class = WindowClass(lpfnWndProc=kept, lpszClassName=name)
        user32.RegisterClassW(ctypes.byref(window_class))
        user32.CreateWindowExW.restype = wintypes.HWND
        self._window = user32.CreateWindowExW(
            0, name, name, 0, 0, 0, 0, 0, wintypes.HWND(_MESSAGE_ONLY), None, None, None
        )
        registered = bool(self._window) and wtsapi32.WTSRegisterSessionNotification(
            wintypes.HWND(self._window), _THIS_SESSION
        )
        self._ready.set()
        if not registered:
            _log.warning("Windows does not tell of locking")
            return
        message = wintypes.MSG()
        while user32.GetMessageW(ctypes.byref(message), None, 0, 0) > 0:
            user32.DispatchMessageW(ctypes.byref(message))
