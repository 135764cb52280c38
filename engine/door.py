# SPDX-License-Identifier: Apache-2.0
"""Where the companion waits for its engine child: a private address that only the holder of a key may enter."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from pathlib import Path
from typing import cast

from engine.channel import AUTHKEY_BYTES
from engine.errors import EngineError
from engine.texts import Text
from engine.wire import Wire

# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, with the closing zero.
_MAX_SOCKET_PATH = 100
# A visitor that knows the key answers at once; one that says nothing must not keep the child out.
_HANDSHAKE_LIMIT_S = 2.0

_log = logging.getLogger(__name__)


class ChildStartError(EngineError):
    """The engine child could not be started or did not connect."""

    code = "engine-start"


class Door:
    """A listener on a Unix socket in a folder of its own (mode 0700), or on a named pipe on Windows.

    Both sides prove that they hold `key` (HMAC challenges of multiprocessing.connection).
    """

    def __init__(self) -> None:
        self.key = secrets.token_bytes(AUTHKEY_BYTES)
        self._folder: str | None = None
        try:
            if sys.platform == "win32":
                self._listener = Listener(family="AF_PIPE")
            else:
                self._folder = _fresh_folder()
                self._listener = Listener(os.path.join(self._folder, "engine"), "AF_UNIX")
        except OSError as error:
            self._remove_folder()
            raise ChildStartError(
                Text("cannot listen for the engine child: {error}", error=error)
            ) from error
        self.address = str(self._listener.address)
        self._closing = threading.Event()
        self._visitor: Wire | None = None
        self._admitted: queue.Queue[Connection] = queue.Queue()
        self._usher = threading.Thread(target=self._admit, name="engine-door", daemon=True)
        self._usher.start()

    def admitted(self, limit_s: float) -> Connection | None:
        """The connection of the first visitor who held the key; None if nobody did within `limit_s`."""
        try:
            return self._admitted.get(timeout=limit_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop listening and remove the address. The admitted connection lives on. Safe to call twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        visitor = self._visitor
        if visitor is not None:
            visitor.end()
        # Closing a listener does not wake a thread that waits in accept(); one more visitor does.
        if self._usher.is_alive():
            with contextlib.suppress(OSError):
                Client(self.address).close()
        self._usher.join()
        self._listener.close()
        self._remove_folder()
        while not self._admitted.empty():
            self._admitted.get().close()

    def _admit(self) -> None:
        while not self._closing.is_set():
            try:
                visitor = self._listener.accept()
            except OSError as error:
                _log.warning("cannot accept the engine child: %s", error)
                return
            if self._closing.is_set():
                visitor.close()
                return
            if self._holds_key(visitor):
                self._admitted.put(visitor)
                return

    def _holds_key(self, visitor: Connection) -> bool:
        self._visitor = wire = Wire(visitor)
        watchdog = threading.Timer(_HANDSHAKE_LIMIT_S, wire.end)
        watchdog.start()
        try:
            deliver_challenge(cast(Connection, wire), self.key)
            answer_challenge(cast(Connection, wire), self.key)
        except (AuthenticationError, AssertionError, EOFError, OSError, ValueError) as error:
            # AssertionError: how Python 3.11 refuses a challenge that is none.
            wire.close()
            if not self._closing.is_set():
                _log.warning("refused a stranger at the engine's address: %s", type(error).__name__)
            return False
        finally:
            self._visitor = None
            watchdog.cancel()
            watchdog.join()
        return True

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _fresh_folder() -> str:
    folder = tempfile.mkdtemp(prefix="thock-")
    if len(os.fsencode(os.path.join(folder, "engine"))) <= _MAX_SOCKET_PATH:
        return folder
    Path(folder).rmdir()
    return tempfile.mkdtemp(prefix="thock-", dir="/tmp")
