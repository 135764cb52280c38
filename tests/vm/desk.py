# SPDX-License-Identifier: Apache-2.0
"""A link on the devices of the test machine, found and opened as the program does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from firmware_bridge.discovery.candidates import HID, SERIAL, Candidate
from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.events import BridgeEvent
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkState
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.hid import HidInterface, HidTransport
from firmware_bridge.transport.hid_library import HidLibrary
from firmware_bridge.transport.serial_port import SerialTransport
from tests.helpers.waiting import wait_until

LONG_S = 120.0  # an emulated processor that others use too
# The search is a look at a list that the watch keeps.
OPTIONS = LinkOptions(search_s=0.1, backoff_first_s=0.1, backoff_limit_s=0.5, answer_timeout_s=2.0)


def matching(watch: DeviceWatch) -> list[Candidate]:
    return [candidate for candidate in watch.candidates() if candidate.matches]


def wait_for_boards(watch: DeviceWatch, count: int) -> list[Candidate]:
    wait_until(lambda: len(matching(watch)) == count, LONG_S)
    return matching(watch)


def wait_for_port(watch: DeviceWatch) -> Candidate:
    """The CDC-ACM port of the one board that is plugged in."""
    wait_until(lambda: _ports(watch), LONG_S)
    return _ports(watch)[0]


def _ports(watch: DeviceWatch) -> list[Candidate]:
    return [c for c in watch.candidates() if c.identity.transport == SERIAL]


def serial_transport(candidate: Candidate) -> SerialTransport:
    return SerialTransport(candidate.path, candidate.identity)


def hid_transport(library: HidLibrary, candidate: Candidate) -> HidTransport:
    assert candidate.identity.transport == HID
    path = os.fsencode(candidate.path)
    interface = HidInterface(path, candidate.identity, candidate.report_length)
    return HidTransport(library, interface)


@contextmanager
def running_link(
    library: HidLibrary,
    watch: DeviceWatch,
    listener: Callable[[BridgeEvent], None],
    selected: DeviceIdentity | None = None,
    options: LinkOptions = OPTIONS,
) -> Iterator[Link]:
    """Connected when it is given, stopped at the end."""
    opener = system_opener(library, watch, selected)
    link = Link(opener, listener, options=options, others=opener.others)
    watch.subscribe(link.search_now)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S), link.problem
        yield link
    finally:
        assert link.stop(LONG_S)
