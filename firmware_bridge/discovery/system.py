# SPDX-License-Identifier: Apache-2.0
"""Discovery wired to this computer: `system_watch` lists what is connected, `system_opener` opens it."""

from __future__ import annotations

import os
import sys
from functools import partial

from firmware_bridge.discovery.candidates import SERIAL, Candidate
from firmware_bridge.discovery.caution import load_caution_list
from firmware_bridge.discovery.hid_scan import HidScan
from firmware_bridge.discovery.linux_hid import is_claimed
from firmware_bridge.discovery.opener import DeviceOpener
from firmware_bridge.discovery.serial_scan import SerialScan
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.node_watch import NodeWatch
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.hid import HidInterface, HidTransport
from firmware_bridge.transport.hid_library import HidLibrary
from firmware_bridge.transport.serial_port import SerialTransport


def system_watch(library: HidLibrary) -> DeviceWatch:
    """All HID devices and USB serial ports of this computer; not started yet."""
    return DeviceWatch([HidScan(library.enumerate, load_caution_list()), SerialScan()])


def make_transport(library: HidLibrary, candidate: Candidate) -> Transport:
    """A transport of that device, not opened yet."""
    if candidate.identity.transport == SERIAL:
        return SerialTransport(candidate.path, candidate.identity)
    return HidTransport(
        library,
        HidInterface(os.fsencode(candidate.path), candidate.identity, candidate.report_length),
    )


def system_opener(
    library: HidLibrary, watch: DeviceWatch, selected: DeviceIdentity | None = None
) -> DeviceOpener:
    """Opens the chosen keyboard, or the first with the Thock module."""
    on_linux = sys.platform.startswith("linux")
    return DeviceOpener(
        watch.candidates, partial(make_transport, library), selected=selected,
        is_claimed=is_claimed if on_linux else lambda vendor, product: False,
        node_watch=NodeWatch(lambda: watch.looks.count) if on_linux else None,
    )  # fmt: skip
