# SPDX-License-Identifier: Apache-2.0
"""Linux: what other programs do with the device node of a keyboard, as the kernel tells it (inotify(7)).

An open is told before it returns, so before that program can have written anything. That is too late for a
request of ours that is under way, so what comes before an open counts too: hidapi and browsers read the
list of HID devices, and the Vial GUI takes seconds to start. Not told is a program that has a device node
of its own for the keyboard (some containers); while it runs as this user, /proc shows it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from firmware_bridge.discovery.linux_hid import SYSFS, list_folder
from firmware_bridge.neighbours import UNKNOWN_PROGRAM, Sign
from firmware_bridge.processes import ProcessTable
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.wrapped import WrappedTransport

_log = logging.getLogger(__name__)

# linux/inotify.h
_OPEN, _CLOSE, _OVERFLOW, _FOLDER_ONLY = 0x20, 0x18, 0x4000, 0x0100_0000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER = 1 << 14

_PROCESSES_S = 0.25  # between two looks for new processes


class NodeWatch:
    """Of the node that is open now. Belongs to the thread that opens the keyboard; see `Others`."""

    def __init__(
        self,
        own_looks: Callable[[], int] = lambda: 0,
        *,
        processes: ProcessTable | None = None,
        sysfs: Path = SYSFS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own_looks`: see `OwnLooks`."""
        self._own_looks = own_looks
        self._processes = processes or ProcessTable()
        self._sysfs = sysfs
        self._clock = clock
        self._inotify = -1
        self._node = ""
        self._node_mark = -1
        # Whether the last thing that somebody did was to open it. Equal events in a row are told once, so
        # opens and closes cannot be counted.
        self._was_opened = False
        # The last look at the processes found nobody, and since then nobody has opened it or was started.
        self._is_alone = False
        self._looks = 0
        self._looked_at = 0.0

    def start(self, node: str) -> None:
        """Watch `node`, which was opened just now."""
        self.stop()
        self._node, self._was_opened, self._is_alone = node, False, False
        self._processes.has_news()
        self._looked_at = self._clock()
        try:
            self._inotify = _inotify()
            self._node_mark = _watch(self._inotify, node, _OPEN | _CLOSE)
        except OSError as error:
            _log.warning("other programs are noticed late: inotify: %s", error.strerror)
            self._end()
            return
        with contextlib.suppress(OSError):  # no sysfs in here
            _watch(self._inotify, str(list_folder(self._sysfs)), _OPEN | _FOLDER_ONLY)

    def stop(self) -> None:
        """Watch nothing any more, before the node is closed."""
        self._end()
        self._node = ""

    def sign(self) -> Sign | None:
        """See `Others`."""
        before = self._own_looks()
        opened, listed = self._take()
        after = self._own_looks()
        # Since before the last time: a look of ours that ended meanwhile may have been told only now.
        is_ours = after != self._looks or before % 2 == 1 or after % 2 == 1
        self._looks = before
        if opened:
            return Sign.OPENED
        if self._was_started():
            self._is_alone = False
            return Sign.STARTED
        return Sign.LISTED if listed and not is_ours else None

    def present(self) -> str | None:
        """See `Others`."""
        if not self._node:
            return None
        self._take()
        if self._is_alone and self._inotify >= 0:
            return None
        program = self._processes.who_has_open(self._node) or self._processes.who_configures()
        if program is None and self._was_opened:
            program = UNKNOWN_PROGRAM
        self._is_alone = program is None
        return program

    def _was_started(self) -> bool:
        now = self._clock()
        if not self._node or now - self._looked_at < _PROCESSES_S:
            return False
        self._looked_at = now
        return self._processes.has_news()

    def _take(self) -> tuple[bool, bool]:
        """Take what inotify has; whether the node was opened, and whether the list of devices was read."""
        opened = listed = False
        while self._inotify >= 0:
            try:
                data = os.read(self._inotify, _BUFFER)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                mark, mask, _, name_length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + name_length
                opened |= bool(mask & _OVERFLOW) or (mark == self._node_mark and bool(mask & _OPEN))
                listed |= mark != self._node_mark
                if mark == self._node_mark and mask & (_OPEN | _CLOSE):
                    self._was_opened = bool(mask & _OPEN)
                    self._is_alone = False
        return opened, listed

    def _end(self) -> None:
        if self._inotify >= 0:
            os.close(self._inotify)
            self._inotify = -1


class WatchedTransport(WrappedTransport):
    """The transport of a device node, watched from open to close."""

    def __init__(self, inner: Transport, node: str, watch: NodeWatch) -> None:
        super().__init__(inner)
        self._node = node
        self._watch = watch
        self._is_watched = False

    def open(self) -> None:
        self._inner.open()
        if not self._is_watched:
            self._is_watched = True
            self._watch.start(self._node)

    def close(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._watch.stop()
        self._inner.close()


def _inotify() -> int:
    """Raises OSError: there are too many already, or this is no Linux."""
    return _checked(_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))


def _watch(inotify: int, path: str, mask: int) -> int:
    return _checked(_libc().inotify_add_watch(inotify, os.fsencode(path), mask))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
