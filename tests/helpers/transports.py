# SPDX-License-Identifier: Apache-2.0
"""Transports that misbehave on purpose, and recordings to play."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from firmware_bridge.errors import DeviceGoneError, TransportError
from firmware_bridge.transport.base import DeviceIdentity, Transport

REPORT_LENGTH = 32


class ScriptedTransport:
    """A device that is a function: report in, reports out. Raises what the function raises."""

    def __init__(self, respond: Callable[[bytes], Iterable[bytes]]) -> None:
        self._respond = respond
        self._queue: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._woken = False
        self.open_error: TransportError | None = None
        self.closed = 0

    identity = DeviceIdentity("scripted")
    report_length = REPORT_LENGTH
    wakeable = True

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def open(self) -> None:
        if self.open_error is not None:
            raise self.open_error

    def read(self, timeout_s: float) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._woken, timeout_s)
            self._woken = False
            return self._queue.popleft() if self._queue else None

    def write(self, report: bytes) -> None:
        with self._changed:
            self._queue.extend(self._respond(report))

    def close(self) -> None:
        self.closed += 1


class WrappedTransport:
    """Passes everything through; tests override single methods."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    @property
    def identity(self) -> DeviceIdentity:
        return self.inner.identity

    @property
    def report_length(self) -> int:
        return self.inner.report_length

    @property
    def wakeable(self) -> bool:
        return self.inner.wakeable

    def wake(self) -> None:
        self.inner.wake()

    def open(self) -> None:
        self.inner.open()

    def read(self, timeout_s: float) -> bytes | None:
        return self.inner.read(timeout_s)

    def write(self, report: bytes) -> None:
        self.inner.write(report)

    def close(self) -> None:
        self.inner.close()


class DeafTransport(WrappedTransport):
    """Cannot be woken, like hidapi; keeps the times at which reads and writes ended."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.reads = 0
        self.writes: list[float] = []

    @property
    def wakeable(self) -> bool:
        return False

    def wake(self) -> None:
        pass

    def read(self, timeout_s: float) -> bytes | None:
        self.reads += 1
        return super().read(timeout_s)

    def write(self, report: bytes) -> None:
        super().write(report)
        self.writes.append(time.monotonic())


class FailingTransport(WrappedTransport):
    """The device is gone at its `fail_at`th write, in the middle of a frame or a group."""

    def __init__(self, inner: Transport, fail_at: int) -> None:
        super().__init__(inner)
        self._left = fail_at

    def write(self, report: bytes) -> None:
        self._left -= 1
        if self._left == 0:
            raise DeviceGoneError("3 of 33 bytes went out")
        super().write(report)


def write_recording(path: Path, *lines: tuple[str, bytes]) -> Path:
    """A recording with these (direction, report) lines after its open line."""
    texts = [json.dumps({"t": 0.0, "dir": "open", "report_length": REPORT_LENGTH})]
    texts += [
        json.dumps({"t": i / 10, "dir": direction, "hex": report.hex()})
        for i, (direction, report) in enumerate(lines, 1)
    ]
    path.write_text("\n".join(texts) + "\n", encoding="ascii")
    return path
