# SPDX-License-Identifier: Apache-2.0
"""The companion's end: listens at a private address, and gives each visitor a session."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from app.ipc.messages import Event, PageWanted, Topic
from app.ipc.protocol import KEY_BYTES, DoorPlate, IpcError
from app.ipc.session import Host, Session
from engine.texts import Text, system_reason

# The settings window holds two connections and a command one.
_MAX_VISITORS = 16
# sun_path holds 104 bytes on macOS and the BSDs, 108 on Linux, with the closing zero.
_MAX_SOCKET_PATH = 100

# Between two lines in the log about visitors that were refused.
_STRANGERS_S = 60.0

_log = logging.getLogger(__name__)


class IpcServer:
    """Whoever makes it holds the lock of the runtime folder: a socket that lies there is a dead one's.

    Raises (by the constructor):
        IpcError: it cannot listen; the message says why.
    """

    def __init__(self, folder: Path, host: Host) -> None:
        self._folder = folder
        self._host = host
        self._key = secrets.token_bytes(KEY_BYTES)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._strangers = Strangers()
        self._sessions: set[Session] = set()
        self._threads: set[threading.Thread] = set()
        self._socket = folder / "companion.sock"
        try:
            self._listener = self._listen()
            DoorPlate(str(self._listener.address), os.getpid(), self._key).write(folder)
        except OSError as error:
            raise IpcError(
                Text(
                    "cannot listen in {folder}: {error}", folder=folder, error=system_reason(error)
                )
            ) from error
        self._usher = threading.Thread(target=self._admit, name="ipc-door", daemon=True)

    def start(self) -> None:
        """Let visitors in from now on."""
        self._usher.start()

    def close(self) -> None:
        """Show everybody out and remove the address. Safe to call twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        # Closing a listener does not wake a thread that waits in accept(); one more visitor does.
        if self._usher.is_alive():
            with contextlib.suppress(OSError):
                Client(self._listener.address).close()
            self._usher.join(2)
        if not self._usher.is_alive():  # else it may still wait there
            self._listener.close()
        DoorPlate.remove(self._folder)
        with self._lock:
            sessions, threads = list(self._sessions), list(self._threads)
        for session in sessions:
            session.end()
        for thread in threads:
            if thread is not threading.current_thread():  # a visitor asked for the end
                thread.join(2)

    def publish(self, event: Event, topic: Topic) -> None:
        """Tell everybody who subscribed to `topic`. Any thread; never waits."""
        for session in self._visitors():
            session.tell(event, topic)

    def wants(self, topic: Topic) -> bool:
        """Whether anybody subscribed to `topic`: else the event need not be made."""
        return any(session.wants(topic) for session in self._visitors())

    def show_page(self, page: str) -> bool:
        """Ask the settings window to show `page`; False if none is open."""
        windows = [session for session in self._visitors() if session.client == "settings"]
        for session in windows:
            session.tell(PageWanted(page=page), None)
        return bool(windows)

    def _visitors(self) -> list[Session]:
        if not self._sessions:  # a look without the lock: the companion's thread asks at each key
            return []
        with self._lock:
            return list(self._sessions)

    def _listen(self) -> Listener:
        if sys.platform == "win32":
            return Listener(family="AF_PIPE")
        if len(os.fsencode(self._socket)) > _MAX_SOCKET_PATH:
            raise IpcError(
                Text("{path} is too long for a socket: set XDG_RUNTIME_DIR", path=self._socket)
            )
        self._socket.unlink(missing_ok=True)
        listener = Listener(str(self._socket), "AF_UNIX", backlog=_MAX_VISITORS)
        self._socket.chmod(0o600)
        return listener

    def _admit(self) -> None:
        while not self._closing.is_set():
            try:
                visitor = self._listener.accept()
            except OSError as error:
                if not self._closing.is_set():
                    _log.warning("a visitor could not come in: %s", error.strerror or error)
                    self._closing.wait(0.1)  # out of file handles: do not spin
                continue
            if self._closing.is_set() or len(self._sessions) >= _MAX_VISITORS:
                visitor.close()
            else:
                self._receive(visitor)

    def _receive(self, visitor: Connection) -> None:
        session = Session(visitor, self._key, self._host, self._strangers.refused)
        thread = threading.Thread(
            target=session.run, args=(self._gone,), name="ipc-visitor", daemon=True
        )
        with self._lock:
            self._sessions.add(session)
            self._threads.add(thread)
        thread.start()

    def _gone(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)
            self._threads.discard(threading.current_thread())


class Strangers:
    """Visitors without the key: told in the log, at most once a minute, so that they cannot fill it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told_at = -math.inf
        self._untold = 0

    def refused(self, kind: str) -> None:
        with self._lock:
            now = self._clock()
            if now - self._told_at < _STRANGERS_S:
                self._untold += 1
                return
            before, self._untold, self._told_at = self._untold, 0, now
        _log.warning("refused a visitor without the key: %s (%d more before)", kind, before)
