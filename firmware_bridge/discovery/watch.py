# SPDX-License-Identifier: Apache-2.0
"""Lists devices in a thread of its own, again whenever the system says that one came or went.

hidapi's list may hang on a broken device, and takes seconds on some Windows machines. So nobody else
calls it: whoever wants to know the devices takes the newest list, and learns when there is none.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Protocol

from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.linux_hid import device_names
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.texts import Text

_log = logging.getLogger(__name__)

SCAN_LIMIT_S = 5.0
POLL_S = 1.5  # where the system tells nothing
_AGAIN_S = 1.0  # once more after a change: a device may be told before all of it is there
SELDOM_S = 10.0  # where it does: in case that it left something out
# The nodes of one keyboard come one after the other, within some milliseconds; one list is made for all.
_SETTLE_S = 0.02
_SETTLE_LIMIT_S = 0.2
_LOOK_S = 0.1  # between two looks at the names of device nodes, and at `stop`

# linux/netlink.h; the group of the kernel's own messages, not of udevd's
_KOBJECT_UEVENT, _KERNEL_GROUP = 15, 1
_UEVENT_BYTES = 1 << 14

Scan = Callable[[], Sequence[Candidate]]


class EnumerationHungError(DeviceGoneError):
    """Listing the devices takes too long."""

    def __init__(self) -> None:
        super().__init__(
            Text(
                "Listing the devices takes more than {scan_limit_s:.0f} s.",
                scan_limit_s=SCAN_LIMIT_S,
            ),
            "One of the connected devices does not answer; unplug them one by one to find it.",
        )


class ChangeSource(Protocol):
    """Says when it is worth looking again; every `poll_s` it is in any case."""

    @property
    def poll_s(self) -> float: ...

    def wait(self, timeout_s: float) -> bool:
        """True as soon as something changed, False after `timeout_s`.

        Raises:
            OSError: the system tells nothing any more.
        """
        ...

    def close(self) -> None:
        """Nobody will wait any more."""
        ...


class OwnLooks:
    """Counts begins and ends of the times that we read the list of devices ourselves: odd meanwhile.

    Other programs that read it are noticed by that (`NodeWatch`).
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count += 1


class NoSource:
    """The system tells nothing."""

    poll_s = POLL_S

    def wait(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return False

    def close(self) -> None:
        pass


class NameSource:
    """Linux without udev: the names of device nodes, looked at every 0.1 s (0.1 ms each).

    With `uevents` it looks as soon as the kernel says that a device came or went; a container may not hear it.
    """

    poll_s = SELDOM_S

    def __init__(
        self,
        names: Callable[[], Hashable] = device_names,
        looks: OwnLooks | None = None,
        uevents: socket.socket | None = None,
    ) -> None:
        self._names = names
        self._looks = looks or OwnLooks()
        self._uevents = uevents
        self._known = names()

    def wait(self, timeout_s: float) -> bool:
        if not self._have_changed():  # while the devices were listed
            self._pause(timeout_s)
            if not self._have_changed():
                return False
        end = time.monotonic() + _SETTLE_LIMIT_S
        while time.monotonic() < end:
            time.sleep(_SETTLE_S)
            if not self._have_changed():
                break
        return True

    def close(self) -> None:
        if self._uevents is not None:
            self._uevents.close()

    def _pause(self, timeout_s: float) -> None:
        if self._uevents is None:
            time.sleep(timeout_s)
        elif select.select([self._uevents], [], [], timeout_s)[0]:
            # OSError: there is nothing more, or there was more than the kernel could keep for us
            with contextlib.suppress(OSError):
                while self._uevents.recv(_UEVENT_BYTES):
                    pass

    def _have_changed(self) -> bool:
        with self._looks:
            known, self._known = self._known, self._names()
        return known != self._known


class UdevSource:
    """Events of udevd, which come after its rules were applied: the device can be opened by then."""

    poll_s = SELDOM_S

    def __init__(self) -> None:
        """Raises ImportError without pyudev or libudev."""
        import pyudev  # type: ignore[import-untyped,import-not-found,unused-ignore]

        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context())
        for subsystem in ("hidraw", "tty"):
            self._monitor.filter_by(subsystem)
        self._monitor.start()

    def wait(self, timeout_s: float) -> bool:
        if self._monitor.poll(timeout_s) is None:
            return False
        end = time.monotonic() + _SETTLE_LIMIT_S
        while time.monotonic() < end and self._monitor.poll(_SETTLE_S) is not None:
            pass
        return True

    def close(self) -> None:
        pass  # libudev closes its socket with the monitor


def kernel_uevents() -> socket.socket | None:
    """What the kernel tells of devices (netlink(7), NETLINK_KOBJECT_UEVENT); None where that is not allowed."""
    if sys.platform != "linux":
        return None
    try:
        uevents = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _KOBJECT_UEVENT)
    except (AttributeError, OSError):
        return None
    try:
        uevents.bind((0, _KERNEL_GROUP))
        uevents.setblocking(False)
    except OSError:
        uevents.close()
        return None
    return uevents


def best_source(looks: OwnLooks) -> ChangeSource:
    """The quickest that works here; `looks` counts what it reads itself."""
    if not sys.platform.startswith("linux"):
        return NoSource()
    if Path("/run/udev/control").exists():  # udevd runs
        with contextlib.suppress(ImportError):
            return UdevSource()
    return NameSource(looks=looks, uevents=kernel_uevents())


class DeviceWatch:
    """Start it with `start`. `candidates` and `wait_change` from any thread."""

    def __init__(
        self,
        scans: Sequence[Scan],
        source: ChangeSource | None = None,
        *,
        limit_s: float = SCAN_LIMIT_S,
    ) -> None:
        """Each of `scans` lists one kind of device; what one of them raises is logged once."""
        self._scans = scans
        self.looks = OwnLooks()
        self._source = source or best_source(self.looks)
        self._limit_s = limit_s
        self._stopping = False
        self._changed = threading.Condition()
        self._candidates: tuple[Candidate, ...] | None = None
        self._scanning_since: float | None = None
        self._failures: set[str] = set()
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._thread = threading.Thread(target=self._run, name="thock-devices", daemon=True)

    def start(self) -> None:
        """Begin to list."""
        self._scanning_since = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that hangs in a list is left behind."""
        self._stopping = True
        self._thread.join(self._limit_s)
        if self._thread.is_alive():
            _log.warning("the thread that lists devices hangs and is left behind")

    def candidates(self) -> tuple[Candidate, ...]:
        """The newest list; waits for the first one.

        Raises:
            EnumerationHungError: the list under way takes longer than the limit.
        """
        with self._changed:
            while self._candidates is None or self._is_late():
                if self._is_late():
                    raise EnumerationHungError
                self._changed.wait(_LOOK_S)
            return self._candidates

    def wait_change(self, known: tuple[Candidate, ...], timeout_s: float) -> bool:
        """Wait until the list differs from `known`; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._candidates != known, timeout_s)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the watch's thread whenever the list has changed; it must return at once."""
        with self._changed:
            self._listeners += (listener,)

    def _is_late(self) -> bool:
        since = self._scanning_since
        return since is not None and time.monotonic() - since > self._limit_s

    def _run(self) -> None:
        has_changed = True
        while not self._stopping:
            self._scanning_since = time.monotonic()
            with self.looks:
                found = self._scan()
            with self._changed:
                is_new, self._candidates = found != self._candidates, found
                self._scanning_since = None
                self._changed.notify_all()
                listeners = self._listeners if is_new else ()
            for listener in listeners:
                listener()
            has_changed = self._rest(_AGAIN_S if has_changed else self._source.poll_s)
        self._source.close()

    def _scan(self) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        for scan in self._scans:
            try:
                found += scan()
            except Exception as error:  # noqa: BLE001 - libraries and drivers raise what they like
                kind = type(error).__name__
                if kind not in self._failures:
                    self._failures.add(kind)
                    _log.error("listing devices failed (further failures are not told): %s", kind)
        return tuple(found)

    def _rest(self, rest_s: float) -> bool:
        """Wait until something changes, for `rest_s` at most; whether it did."""
        until = time.monotonic() + min(rest_s, self._source.poll_s)
        while not self._stopping and time.monotonic() < until:
            try:
                if self._source.wait(_LOOK_S):
                    return True
            except OSError as error:
                _log.warning("the system tells no changes of devices any more: %s", error.strerror)
                self._source.close()
                self._source = NoSource()
                break
        return False
