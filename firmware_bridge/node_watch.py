# SPDX-License-Identifier: Apache-2.0
"""Linux: what other programs do with the device node of a keyboard, as the kernel tells it (inotify(7)).

An open is told before it returns, so before that program can have written anything. hidapi reads the HID
descriptors of all devices before it opens one; that is told too. Not told is a program that has a device
node of its own for the keyboard (some containers); while it runs as this user, /proc shows it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import struct
from collections.abc import Callable
from pathlib import Path

from firmware_bridge.discovery.linux_hid import SYSFS, descriptor_file
from firmware_bridge.neighbours import UNKNOWN_PROGRAM, Sign
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.wrapped import WrappedTransport

_log = logging.getLogger(__name__)

# linux/inotify.h
_OPEN, _CLOSE, _OVERFLOW = 0x20, 0x18, 0x4000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER = 1 << 14


class NodeWatch:
    """Of the node that is open now. Belongs to the thread that opens the keyboard; see `Others`."""

    def __init__(
        self,
        own_scans: Callable[[], int] = lambda: 0,
        *,
        proc: Path = Path("/proc"),
        sysfs: Path = SYSFS,
    ) -> None:
        """`own_scans` counts when we list the devices ourselves: up at the begin and at the end of each time,
        so that it is odd meanwhile.
        """
        self._own_scans = own_scans
        self._proc = proc
        self._sysfs = sysfs
        self._inotify = -1
        self._node = ""
        self._node_mark = -1
        # Whether the last thing that somebody did was to open it. Equal events in a row are told once, so
        # opens and closes cannot be counted.
        self._was_opened = False
        self._scans = 0

    def start(self, node: str) -> None:
        """Watch `node`, which was opened just now."""
        self.stop()
        self._node, self._was_opened = node, False
        try:
            self._inotify = _inotify()
            self._node_mark = _watch(self._inotify, node, _OPEN | _CLOSE)
        except OSError as error:
            _log.warning("other programs are noticed late: inotify: %s", error.strerror)
            self._end()
            return
        with contextlib.suppress(OSError):  # not a HID device
            _watch(self._inotify, str(descriptor_file(node, self._sysfs)), _OPEN)

    def stop(self) -> None:
        """Watch nothing any more, before the node is closed."""
        self._end()
        self._node = ""

    def sign(self) -> Sign | None:
        """See `Others`."""
        opened, listed = self._take()
        scans = self._own_scans()
        is_ours = scans != self._scans or scans % 2 == 1
        self._scans = scans
        if opened:
            return Sign.OPENED
        return Sign.LISTED if listed and not is_ours else None

    def present(self) -> str | None:
        """See `Others`."""
        if not self._node:
            return None
        self._take()
        program = who_has_open(self._node, self._proc)
        return UNKNOWN_PROGRAM if program is None and self._was_opened else program

    def _take(self) -> tuple[bool, bool]:
        """Take what inotify has; whether the node was opened, and whether its descriptor was."""
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

    def open(self) -> None:
        self._inner.open()
        self._watch.start(self._node)

    def close(self) -> None:
        self._watch.stop()
        self._inner.close()


def who_has_open(node: str, proc: Path = Path("/proc")) -> str | None:
    """The name of another process of this user that has the device node open; None where nobody can tell.

    Costs 20 us per open file of all processes that this user may look into (measured: 16 ms for 835).
    """
    try:
        names = os.listdir(proc)
    except OSError:
        return None
    for name in names:
        if name.isdigit() and int(name) != os.getpid() and _has_open(proc / name / "fd", node):
            try:
                return (proc / name / "comm").read_text(errors="replace").strip() or UNKNOWN_PROGRAM
            except OSError:  # it has just ended
                continue
    return None


def _has_open(handles: Path, node: str) -> bool:
    try:
        names = os.listdir(handles)
    except OSError:  # of another user, or it has just ended
        return False
    for name in names:
        try:
            if os.readlink(f"{handles}/{name}") == node:
                return True
        except OSError:
            continue
    return False


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
