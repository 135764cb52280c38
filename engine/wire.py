# SPDX-License-Identifier: Apache-2.0
"""A connection that any thread may end or close while others use it. Imports no pydantic: commands use it."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection


class Wire:
    """A connection of `multiprocessing.connection`, with a descriptor that is closed once, by its last user.

    Closing a descriptor does not wake the thread that reads it, and its number can belong to another file
    when that thread uses it next, or closes it too. So who closes wakes the others, and the last one of
    them gives the descriptor back.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # guards what follows
        self._users = 0
        self._is_closed = False

    def send_bytes(self, frame: bytes) -> None:
        """Write one frame. One thread at a time.

        Raises:
            OSError: the connection was ended, here or there.
        """
        with self._in_use():
            self._connection.send_bytes(frame)

    def recv_bytes(self, limit: int | None = None) -> bytes:
        """Wait for the next frame of at most `limit` bytes. One thread at a time.

        Raises:
            EOFError, OSError: the connection was ended, here or there, or a frame is too long.
        """
        with self._in_use():
            return self._connection.recv_bytes(limit)

    def poll(self, limit_s: float) -> bool:
        """True if something came, or the other side is gone, within `limit_s` seconds.

        Raises:
            EOFError, OSError: as `recv_bytes`.
        """
        with self._in_use():
            return self._connection.poll(limit_s)

    def end(self) -> None:
        """Wake whoever waits; nothing comes or goes any more. From any thread, any number of times."""
        with self._lock:
            if self._users or not self._is_closed:
                self._shut_down()

    def close(self) -> None:
        """End it and give the descriptor back, now or as soon as nobody uses it. From any thread."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._users:
                self._shut_down()
            else:
                self._connection.close()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise OSError("the connection is closed")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._is_closed and not self._users:
                    self._connection.close()

    def _shut_down(self) -> None:
        """With the lock, so that the descriptor is still ours."""
        if sys.platform == "win32":
            self._connection.close()  # a pipe cannot be shut down; the handle of a pending read stays valid
            return
        # A second object on the same descriptor: a second descriptor may not be to be had.
        twin = socket.socket(fileno=self._connection.fileno())
        try:
            with contextlib.suppress(OSError):  # the other side was first
                twin.shutdown(socket.SHUT_RDWR)
        finally:
            twin.detach()
