# SPDX-License-Identifier: Apache-2.0
"""Discovery wired to this computer: `system_watch` lists what is connected, `system_opener` opens it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from firmware_bridge.device_lock import LockedTransport
from firmware_bridge.discovery.candidates import SERIAL, Candidate
from firmware_bridge.discovery.caution import load_caution_list
from firmware_bridge.discovery.hid_scan import HidScan
from firmware_bridge.discovery.linux_hid import is_claimed
from firmware_bridge.discovery.opener import DeviceOpener, LightsOpener
from firmware_bridge.discovery.serial_scan import SerialScan
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.node_watch import NodeWatch
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.hid import HidInterface, HidTransport
from firmware_bridge.transport.hid_library import HidLibrary
from firmware_bridge.transport.serial_port import SerialTransport

_ON_LINUX = sys.platform.startswith("linux")


def system_watch(library: HidLibrary) -> DeviceWatch:
    """All HID devices and USB serial ports of this computer; not started yet."""
    return DeviceWatch([HidScan(library.enumerate, load_caution_list()), SerialScan()])


def make_transport(
    library: HidLibrary, candidate: Candidate, locks: Path | None = None
) -> Transport:
    """A transport of that device, not opened yet. `locks` is a folder for lock files; None: without."""
    if candidate.identity.transport == SERIAL:
        return SerialTransport(candidate.path, candidate.identity)  # locks by itself
    path = os.fsencode(candidate.path)
    transport = HidTransport(
        library, HidInterface(path, candidate.identity, candidate.report_length)
    )
    return transport if locks is None else LockedTransport(transport, locks)


def system_opener(
    library: HidLibrary,
    watch: DeviceWatch,
    selected: DeviceIdentity | None = None,
    locks: Path | None = None,
    select: Callable[[Sequence[Candidate]], DeviceIdentity | None] | None = None,
) -> DeviceOpener:
    """Opens the chosen keyboard, or the first with the Thock module.

    `locks`: see `make_transport`; `select`: see `DeviceOpener`.
    """
    return DeviceOpener(
        watch.candidates, partial(make_transport, library, locks=locks), selected=selected,
        select=select, is_claimed=is_claimed if _ON_LINUX else lambda vendor, product: False,
        node_watch=system_node_watch(watch),
    )  # fmt: skip


def system_lights_opener(
    library: HidLibrary, watch: DeviceWatch, opener: DeviceOpener, locks: Path | None = None
) -> LightsOpener:
    """Opens the first keyboard whose lights will do, of those that `opener` found to have no module."""
    return LightsOpener(
        lambda: opener.with_lights,
        partial(make_transport, library, locks=locks),
        node_watch=system_node_watch(watch),
    )


def system_node_watch(watch: DeviceWatch) -> NodeWatch | None:
    """Tells of other programs on a keyboard; None on systems that do not."""
    return NodeWatch(lambda: watch.looks.count) if _ON_LINUX else None
