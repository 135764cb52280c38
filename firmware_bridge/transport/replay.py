# SPDX-License-Identifier: Apache-2.0
"""Traffic with a keyboard as a file: written by RecordingTransport, played back by ReplayTransport.

One JSON object a line: `t` in seconds (`time.monotonic`), `dir` one of open, in (from the keyboard),
out (to it) and gone, `hex` with the whole report; the open line has `report_length` instead.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from firmware_bridge.errors import DeviceGoneError, ReplayMismatchError
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.wrapped import WrappedTransport

_log = logging.getLogger(__name__)

_OPEN, _IN, _OUT, _GONE = "open", "in", "out", "gone"


def open_recording(path: Path) -> int:
    """A descriptor that appends to the regular file `path`, which only its owner can read (mode 0600).

    Raises:
        OSError: it cannot be created, is a link or no regular file, or others may read what it holds.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    # Without O_NONBLOCK a named pipe would wait for its reader.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if os.name == "posix" and found.st_mode & 0o077:
            raise OSError(errno.EPERM, "the file exists, and others may read it")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class RecordingTransport(WrappedTransport):
    """Passes everything through and writes it to `path`.

    PRIVACY: the file holds every key that the person presses while it is recorded. It can be read by
    its owner only (mode 0600); who passes it on passes on what was typed.

    Lines are appended, so that a link that reconnects goes on in the same file. If the file cannot be
    written any more the recording ends with a warning; the keyboard goes on working.
    """

    def __init__(
        self, inner: Transport, path: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(inner)
        self._path = path
        self._clock = clock
        self._file: int | None = None  # descriptor: every line is one write, nothing is buffered
        self._is_open = False

    def open(self) -> None:
        """See `Transport.open`.

        Raises:
            OSError: the file cannot be created.
        """
        if self._is_open:
            return
        if self._file is None:
            self._file = open_recording(self._path)
        self._inner.open()
        self._is_open = True
        self._record(_OPEN, report_length=self.report_length)

    def read(self, timeout_s: float) -> bytes | None:
        try:
            report = self._inner.read(timeout_s)
        except DeviceGoneError:
            self._record(_GONE)
            raise
        if report is not None:
            self._record(_IN, hex=report.hex())
        return report

    def write(self, report: bytes) -> None:
        try:
            self._inner.write(report)
        except DeviceGoneError:
            self._record(_GONE)
            raise
        self._record(_OUT, hex=report.ljust(self.report_length, b"\0").hex())

    def close(self) -> None:
        self._is_open = False
        self._inner.close()
        self._end_file()

    def _end_file(self) -> None:
        descriptor, self._file = self._file, None
        if descriptor is not None:
            os.close(descriptor)

    def _record(self, direction: str, **content: str | int) -> None:
        if self._file is None:
            return
        line = {"t": round(self._clock(), 6), "dir": direction, **content}
        try:
            os.write(self._file, (json.dumps(line) + "\n").encode("ascii"))
        except OSError as error:
            _log.warning("recording ended: %s", error.strerror)
            self._end_file()


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One line of a recording; `number` counts from 1."""

    number: int
    direction: str
    report: bytes = field(default=b"", repr=False)
    report_length: int = 0


def read_recording(path: Path) -> list[RecordedLine]:
    """The lines of a recording, checked.

    Raises:
        OSError: the file cannot be read.
        ReplayMismatchError: a line is not one of a recording; says which.
    """
    lines: list[RecordedLine] = []
    with path.open(encoding="ascii") as file:
        for number, text in enumerate(file, 1):
            try:
                content = json.loads(text)
                line = RecordedLine(
                    number,
                    content["dir"],
                    bytes.fromhex(content.get("hex", "")),
                    int(content.get("report_length", 0)),
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ReplayMismatchError(f"line {number}: not a line of a recording") from None
            if line.direction not in (_OPEN, _IN, _OUT, _GONE):
                raise ReplayMismatchError(f"line {number}: unknown direction")
            lines.append(line)
    if not lines or lines[0].direction != _OPEN or lines[0].report_length < 1:
        raise ReplayMismatchError("line 1: a recording begins with open and a report length")
    return lines


class ReplayTransport:
    """Plays the keyboard of a recording: wants the same writes in the same order, gives the same reads.

    A report is given once all writes before it have been made. Client number and nonce are in the
    reports, so the link must use those of the recording (firmware_bridge/recorded_ids.py). Reconnects
    are played by opening the same object again.
    """

    def __init__(self, path: Path) -> None:
        """Raises what `read_recording` raises."""
        lines = read_recording(path)
        self._identity = DeviceIdentity("replay", location=path.name)
        self._report_length = lines[0].report_length
        self._given = deque(line for line in lines if line.direction in (_IN, _GONE))
        self._wanted = deque(line for line in lines if line.direction in (_OUT, _OPEN))
        self._mismatch: str | None = None
        self._opened = False
        self._gone = False
        self._wake = threading.Event()

    @property
    def identity(self) -> DeviceIdentity:
        return self._identity

    @property
    def report_length(self) -> int:
        return self._report_length

    @property
    def wakeable(self) -> bool:
        return True

    def wake(self) -> None:
        self._wake.set()

    def open(self) -> None:
        if self._opened:
            return
        if not self._wanted:
            raise DeviceGoneError("the recording is at its end")
        self._expect(_OPEN, b"")
        self._opened, self._gone = True, False

    def read(self, timeout_s: float) -> bytes | None:
        self._check_open()
        if self._given and (not self._wanted or self._given[0].number < self._wanted[0].number):
            line = self._given.popleft()
            if line.direction == _GONE:
                self._gone = True
                self._check_open()
            return line.report
        self._wake.wait(timeout_s)
        self._wake.clear()
        return None

    def write(self, report: bytes) -> None:
        if not 0 < len(report) <= self._report_length:
            raise ValueError(f"a report has 1 to {self._report_length} bytes")
        self._check_open()
        self._expect(_OUT, report.ljust(self._report_length, b"\0"))

    def close(self) -> None:
        self._opened = False

    def assert_complete(self) -> None:
        """Raises ReplayMismatchError if a write differed, or if lines are left over; says which."""
        if self._mismatch is not None:
            raise ReplayMismatchError(self._mismatch)
        for line in (*self._wanted, *self._given):
            raise ReplayMismatchError(f"line {line.number}: was not played")

    def _check_open(self) -> None:
        if not self._opened or self._gone:
            raise DeviceGoneError("the recorded keyboard went away")

    def _expect(self, direction: str, report: bytes) -> None:
        if self._mismatch is None:
            if not self._wanted:
                self._mismatch = f"{direction} after the end of the recording"
            elif (self._wanted[0].direction, self._wanted[0].report) != (direction, report):
                self._mismatch = f"line {self._wanted[0].number}: another {direction} was recorded"
        if self._mismatch is not None:
            raise ReplayMismatchError(self._mismatch)
        self._wanted.popleft()
