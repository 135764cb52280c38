# SPDX-License-Identifier: Apache-2.0
"""Which keyboard a command works on: the virtual one, or the first real one with the Thock module."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.commands.speech import CommandError
from app.companion.lights_port import AnyKeyboard, Listener
from app.config.paths import lights_file, runtime_folder
from app.platform.sleep import SleepWatch
from app.settings import LightsSettings
from engine.texts import Text
from firmware_bridge.discovery.candidates import SERIAL, Candidate
from firmware_bridge.discovery.opener import DeviceOpener
from firmware_bridge.discovery.system import system_lights_opener, system_opener, system_watch
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import DeviceGoneError, TransportError
from firmware_bridge.lights.openrgb_client import OpenRgbClient
from firmware_bridge.lights.openrgb_lights import OpenRgbLights
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkState
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.hid_library import load_hid_library
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.stock_lights import StockLights

_log = logging.getLogger(__name__)

MakeLink = Callable[[Listener], Link]
"""Makes the link to a keyboard, given who listens to its events."""

# A change of the list wakes the link. The search in between is for a keyboard that may not be opened yet,
# because udevd lets the user in a moment after it is listed.
LINK_OPTIONS = LinkOptions(search_s=0.2)

_HAS_BOARD = (LinkState.CONNECTING, LinkState.READY, LinkState.PAUSED)


@contextmanager
def device_list() -> Iterator[DeviceWatch]:
    """The list of devices of this computer, kept up to date until the block ends.

    Raises:
        click.ClickException: the HID library is missing or the wrong one.
    """
    try:
        watch = system_watch(load_hid_library())
    except TransportError as error:
        raise CommandError(str(error)) from error
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
        raise CommandError(str(error)) from error


def lock_folder() -> Path | None:
    """Where lock files of keyboards are, so that one Thock at a time uses each; None: there is no place."""
    try:
        return runtime_folder()
    except OSError as error:
        _log.warning("no locks on keyboards: %s", error)
        return None


def virtual_keyboard(keyboard: VirtualKeyboard) -> MakeLink:
    """The link to a keyboard in this process."""
    return lambda listener: Link(lambda: VirtualTransport(keyboard), listener)


def find_chosen(candidates: Sequence[Candidate], name: str) -> DeviceIdentity:
    """The device that a person means: by its place, its serial number or its path.

    Raises:
        click.ClickException: there is none, or more than one.
    """
    fitting = _fitting(candidates, name)
    if len(fitting) != 1:
        reason = Text(
            "no device is {name!r}; `thock devices --all` lists them by place.", name=name
        )
        if fitting:
            reason = Text(
                "more than one device is {name!r}; `thock devices --all` lists them by place.",
                name=name,
            )
        raise CommandError(reason)
    return fitting.pop()


def _fitting(candidates: Sequence[Candidate], name: str) -> set[DeviceIdentity]:
    return {
        c.identity
        for c in candidates
        if name in (c.identity.location, c.identity.serial, c.path)
        and (c.matches or c.identity.transport == SERIAL)
    }


@contextmanager
def real_keyboard(
    chosen: str = "", wrap: Callable[[Transport], Transport] = lambda t: t
) -> Iterator[MakeLink]:
    """The link to the chosen keyboard, or the first with the Thock module; found again after each replug.

    `chosen`: see `find_chosen`. `wrap` may put something around each transport. The link gives way to
    other programs on the keyboard.
    """
    with device_list() as watch:
        opener = _opener(watch, chosen)
        yield lambda listener: _make_link(watch, opener, wrap, listener)


@contextmanager
def any_keyboard(
    lights: LightsSettings, chosen: str = "", wrap: Callable[[Transport], Transport] = lambda t: t
) -> Iterator[Callable[[Listener], AnyKeyboard]]:
    """As `real_keyboard`; while no keyboard has the module, the lights of one that has none are used, as far
    as `lights` say. They are set back before the computer sleeps. A chosen keyboard that is not plugged in
    is waited for.
    """
    with device_list() as watch, ExitStack() as end:
        opener = _patient_opener(watch, chosen)
        lights_opener = system_lights_opener(load_hid_library(), watch, opener, lock_folder())
        store = BaselineStore(lights_file())

        def make(listener: Listener) -> AnyKeyboard:
            link: Link

            def make_link(listener: Listener) -> Link:
                nonlocal link
                link = _make_link(watch, opener, wrap, listener)
                return link

            def open_lights() -> Transport:
                if link.state in _HAS_BOARD:
                    raise DeviceGoneError("A keyboard with the Thock module is used.")
                return wrap(lights_opener())

            def make_stock(listener: Listener) -> StockLights:
                return StockLights(open_lights, listener, store, others=lights_opener.others)

            keyboard = AnyKeyboard(
                listener, lights, make_link=make_link, make_stock=make_stock,
                make_openrgb=make_openrgb,
            )  # fmt: skip
            sleep = SleepWatch(keyboard.suspend, keyboard.resume)
            sleep.start()
            end.callback(sleep.stop)
            return keyboard

        yield make


def make_openrgb(lights: LightsSettings) -> OpenRgbLights:
    """Lights of other makers, through the OpenRGB of this computer."""
    return OpenRgbLights(lambda: OpenRgbClient(lights.openrgb_host, lights.openrgb_port))


def _opener(watch: DeviceWatch, chosen: str) -> DeviceOpener:
    selected = find_chosen(candidates_of(watch), chosen) if chosen else None
    return system_opener(load_hid_library(), watch, selected, lock_folder())


def _patient_opener(watch: DeviceWatch, chosen: str) -> DeviceOpener:
    if not chosen:
        return _opener(watch, chosen)

    def select(candidates: Sequence[Candidate]) -> DeviceIdentity | None:
        fitting = _fitting(candidates, chosen)
        return fitting.pop() if len(fitting) == 1 else None

    if select(candidates_of(watch)) is None:
        _log.warning("no device is %r yet; `thock devices --all` lists them by place.", chosen)
    return system_opener(load_hid_library(), watch, locks=lock_folder(), select=select)


def _make_link(
    watch: DeviceWatch,
    opener: DeviceOpener,
    wrap: Callable[[Transport], Transport],
    listener: Listener,
) -> Link:
    link = Link(lambda: wrap(opener()), listener, options=LINK_OPTIONS, others=opener.others)
    watch.subscribe(link.search_now)
    return link
