# SPDX-License-Identifier: Apache-2.0
"""Which keyboard a command works on: the virtual one, or the first real one with the Thock module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from firmware_bridge.discovery.system import system_opener, system_watch
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import TransportError
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.hid_library import load_hid_library

OpenTransport = Callable[[], Transport]


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


@contextmanager
def real_keyboard() -> Iterator[OpenTransport]:
    """What opens the keyboard for a Link, again after each replug."""
    with device_list() as watch:
        yield system_opener(load_hid_library(), watch)
