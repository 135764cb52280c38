# SPDX-License-Identifier: Apache-2.0
"""One companion for each user.

The lock is the operating system's, on an open file: it is gone with the process, however that ended, so
neither a crash nor a process that got the same number can leave it behind.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError

_LOCK_FILE = "companion.lock"


class RunningAlreadyError(Exception):
    """Another companion of this user runs."""


class OneInstance:
    """Holds the lock of a runtime folder while it is entered.

    Raises (on entering):
        RunningAlreadyError: somebody else holds it.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / _LOCK_FILE, mode=0o600)

    def __enter__(self) -> OneInstance:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise RunningAlreadyError("Thock runs already.") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()


def show_running(folder: Path, page: str = "status", patience_s: float = 2.0) -> None:
    """Have the running companion show its window; it may be about to start and not listen yet.

    Raises:
        IpcError: it does not answer.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with IpcClient(folder) as client:
                client.request("show", page=page)
            return
        except IpcError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
