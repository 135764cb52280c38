# SPDX-License-Identifier: Apache-2.0
"""Which keyboard a command works on: the virtual one, or the first real one with the Thock module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from firmware_bridge.discovery.candidates import SERIAL, Candidate
from firmware_bridge.discovery.system import system_opener, system_watch
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import TransportError
from firmware_bridge.events import BridgeEvent
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.hid_library import load_hid_library
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport

MakeLink = Callable[[Callable[[BridgeEvent], None]], Link]
"""Makes the link to a keyboard, given who listens to its events."""

# A change of the list wakes the link. The search in between is for a keyboard that may not be opened yet,
# because udevd lets the user in a moment after it is listed.
LINK_OPTIONS = LinkOptions(search_s=0.2)


@contextmanager
def device_list() -> Iterator[DeviceWatch]:
    """The list of devices of this computer, kept up to date until the block ends.

    Raises:
        click.ClickException: the HID library is missing or the wrong one.
    """
    try:
        watch = system_watch(load_hid_library())
    except TransportError as error:
        raise click.ClickException(str(error)) from error
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def candidates_of(watch: DeviceWatch) -> Sequence[Candidate]:
    """What is connected now.

    Raises:
        click.ClickException: listing the devices hangs.
    """
    try:
        return watch.candidates()
    except TransportError as error:
        raise click.ClickException(str(error)) from error


def virtual_keyboard(keyboard: VirtualKeyboard) -> MakeLink:
    """The link to a keyboard in this process."""
    return lambda listener: Link(lambda: VirtualTransport(keyboard), listener)


def find_chosen(candidates: Sequence[Candidate], name: str) -> DeviceIdentity:
    """The device that a person means: by its place, its serial number or its path.

    Raises:
        click.ClickException: there is none, or more than one.
    """
    fitting = {
        c.identity
        for c in candidates
        if name in (c.identity.location, c.identity.serial, c.path)
        and (c.matches or c.identity.transport == SERIAL)
    }
    if len(fitting) != 1:
        number = "more than one device is" if fitting else "no device is"
        raise click.ClickException(f"{number} {name!r}; `thock devices --all` lists them by place.")
    return fitting.pop()


@contextmanager
def real_keyboard(
    chosen: str = "", wrap: Callable[[Transport], Transport] = lambda t: t
) -> Iterator[MakeLink]:
    """The link to the chosen keyboard, or the first with the Thock module; found again after each replug.

    `chosen`: see `find_chosen`. `wrap` may put something around each transport. The link gives way to
    other programs on the keyboard.
    """
    with device_list() as watch:
        selected = find_chosen(candidates_of(watch), chosen) if chosen else None
        opener = system_opener(load_hid_library(), watch, selected)

        def make_link(listener: Callable[[BridgeEvent], None]) -> Link:
            link = Link(
                lambda: wrap(opener()), listener, options=LINK_OPTIONS, others=opener.others
            )
            watch.subscribe(link.search_now)
            return link

        yield make_link
