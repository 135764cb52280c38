# SPDX-License-Identifier: Apache-2.0
"""One engine child process as its parent sees it: spawned, connected, ended. Imports no torch."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from engine.channel import Channel
from engine.childlog import is_safe_line
from engine.door import ChildStartError, Door
from engine.messages import EVENTS, Event
from engine.texts import Text, with_log

# `python -m` looks into the working directory first. With the folder above this package there, the
# child runs the very files that the parent runs, and not an `engine` that lies where the person stands.
PACKAGE_ROOT = Path(__file__).resolve().parent.parent
TAIL_LINES = 20
_LINE_BYTES = 1000
_DRAIN_LIMIT_S = 1.0
_LOOK_EVERY_S = 0.05

_log = logging.getLogger(__name__)


class EngineChild:
    """A child process, running from the constructor on. `connect` first; `end` always.

    Raises (by the constructor):
        ChildStartError: the system refused to start it.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._door = Door()
        try:
            self._process = _spawn([*argv, "--address", self._door.address], self._door.key)
        except BaseException:
            self._door.close()
            raise
        assert self._process.stderr is not None
        self._stderr = _SafeTail(self._process.stderr)
        self._killed = False
        self._channel: Channel[Event] | None = None

    @property
    def channel(self) -> Channel[Event]:
        """The open channel; only after `connect`."""
        assert self._channel is not None
        return self._channel

    @property
    def pid(self) -> int:
        """Process id of what was spawned (on Windows perhaps a launcher of the child)."""
        return self._process.pid

    def connect(self, limit_s: float, abandoned: Callable[[], bool] = lambda: False) -> None:
        """Wait until the child has opened `channel` and said its hello.

        Raises:
            ChildStartError: it ended, did not do so within `limit_s` seconds, or `abandoned` became true.
            ChannelError: no proper hello; ProtocolVersionError: a hello of another version.
        """
        deadline = time.monotonic() + limit_s

        def look() -> None:
            if abandoned():
                raise ChildStartError("the start was abandoned")
            if self._process.poll() is not None:
                raise ChildStartError("it ended before it connected")
            if time.monotonic() > deadline:
                raise ChildStartError(
                    Text("it did not connect within {limit_s:g} s", limit_s=limit_s)
                )

        try:
            while (connection := self._door.admitted(_LOOK_EVERY_S)) is None:
                look()
            self._channel = Channel(connection, EVENTS)
            while not self._channel.poll(_LOOK_EVERY_S):
                look()
            self._channel.receive_hello()
        finally:
            self._door.close()
        self._stderr.hears_content = True

    def wait(self, limit_s: float) -> bool:
        """True if the process has ended within `limit_s` seconds."""
        try:
            self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the process without its help. Safe in any state and from any thread."""
        self._killed = True
        self._process.kill()

    def end(self, grace_s: float) -> Text:
        """Give the process `grace_s` seconds to leave by itself, kill it otherwise, and reap it.

        Leaves `channel` open, because another thread may be writing to it.

        Returns:
            How it ended, in words, followed by its last log lines.
        """
        if not self.wait(grace_s):
            self.kill()
        status = self._process.wait()
        self._door.close()
        self._stderr.finish()
        if self._killed:
            how = Text("it was ended by its parent")
        elif status < 0:
            how = Text("it was killed by {signal_name}", signal_name=_signal_name(-status))
        else:
            how = Text("it ended with exit code {status}", status=status)
        return with_log(how, "\n".join(self._stderr.lines))

    def close(self) -> None:
        """Close the channel. Call it after `end`, when no other thread uses the channel any more."""
        if self._channel is not None:
            self._channel.close()


class _SafeTail:
    """Reads what the child prints, so that its pipe never fills, and keeps the last safe lines."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.lines: deque[str] = deque(maxlen=TAIL_LINES)
        self.hears_content = False
        self._stream = stream
        self._thread = threading.Thread(target=self._read, name="engine-stderr", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the end of the stream. Call it once the process has ended."""
        self._thread.join(_DRAIN_LIMIT_S)
        # A grandchild may hold the pipe open for longer. Then the daemon thread stays until it ends.
        if not self._thread.is_alive():
            self._stream.close()

    def _read(self) -> None:
        while line := self._stream.readline(_LINE_BYTES):
            text = line.decode(errors="replace").rstrip()
            if not self.hears_content or is_safe_line(text):
                self.lines.append(text)
                _log.debug("%s", text)


def _spawn(argv: Sequence[str], key: bytes) -> subprocess.Popen[bytes]:
    flags = 0  # elsewhere the child lowers its own priority, see engine.server
    if sys.platform == "win32":
        flags = (
            subprocess.CREATE_NEW_PROCESS_GROUP
            | subprocess.CREATE_NO_WINDOW
            | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        )
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=PACKAGE_ROOT,
            start_new_session=True,
            creationflags=flags,
        )
    except OSError as error:
        raise ChildStartError(
            Text("cannot start the engine child: {error}", error=error)
        ) from error
    assert process.stdin is not None
    # The key goes through a pipe: other processes can read arguments and the environment.
    with contextlib.suppress(OSError), process.stdin as stdin:  # it may have ended already
        stdin.write(key)
    return process


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
