# SPDX-License-Identifier: Apache-2.0
"""One port over a board with the module, the lights of one without it, and OpenRGB."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.companion.lights_port import AnyKeyboard, Listener
from app.companion.ports import KeyboardPort
from app.settings import LightsSettings
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.events import BridgeEvent, KeyPressed, LinkLost, LinkReady
from firmware_bridge.lights.openrgb_client import OpenRgbClient
from firmware_bridge.lights.openrgb_lights import OpenRgbLights
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkProblem, LinkState
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.stock_lights import StockLights
from tests.helpers.lights_desk import QUICK, LightsDesk
from tests.helpers.openrgb_server import Controller, Mode, OpenRgbServer
from tests.helpers.via_peers import ViaBoard, VialBoard
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))
RED = LightOverlay(Rgb(255, 0, 0))
HUE_BLUE, HUE_RED, HUE_OWN = 170, 0, 100
OFF = LightsSettings(stock=False)
STOCK = LightsSettings()


class Desk:
    """A board with the module that comes and goes, a VIA board beside it, and what the companion heard."""

    def __init__(self, folder: Path) -> None:
        self.module = VirtualKeyboard()
        self.is_plugged = False
        self.via = LightsDesk(ViaBoard(12), BaselineStore(folder / "lights.json"))
        self.servers: list[OpenRgbServer] = []
        self.events: list[BridgeEvent] = []
        self.keyboards: list[AnyKeyboard] = []

    def keyboard(self, settings: LightsSettings) -> AnyKeyboard:
        keyboard = AnyKeyboard(
            self.events.append, settings, make_link=self._link, make_stock=self._stock,
            make_openrgb=self._openrgb,
        )  # fmt: skip
        self.keyboards.append(keyboard)
        keyboard.start()
        return keyboard

    def unplug_module(self) -> None:
        self.is_plugged = False
        self.module.unplug()

    @property
    def heard(self) -> list[str]:
        """The boards that came and went: M with the module, L with lights only, a dash for none."""
        names = {LinkLost: "-"}
        return [
            names.get(type(event))
            or ("L" if event.capabilities.features == Feature.LIGHTS else "M")
            for event in self.events
            if isinstance(event, LinkReady | LinkLost)
        ]

    def _link(self, listener: Listener) -> Link:
        options = LinkOptions(search_s=0.02, backoff_first_s=0.02, backoff_limit_s=0.05)
        return Link(self._open_module, listener, options=options)

    def _open_module(self) -> Transport:
        if not self.is_plugged:
            raise DeviceGoneError("none")
        return VirtualTransport(self.module)

    def _stock(self, listener: Listener) -> StockLights:
        return StockLights(
            self.via._open, listener, self.via.store, options=QUICK, sleep=lambda seconds: None
        )

    def _openrgb(self, settings: LightsSettings) -> OpenRgbLights:
        connect: Callable[[], OpenRgbClient] = lambda: OpenRgbClient(  # noqa: E731
            settings.openrgb_host, settings.openrgb_port, timeout_s=1
        )
        return OpenRgbLights(connect, mood_interval_s=0.05, retry_s=0.05)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    for keyboard in desk.keyboards:
        assert keyboard.stop()
    for server in desk.servers:
        server.close()
    assert not desk.via.peer.trapped


def test_without_the_module_the_lights_of_another_board_are_used_and_given_back(desk: Desk) -> None:
    port: KeyboardPort
    port = keyboard = desk.keyboard(STOCK)
    wait_until(lambda: desk.heard == ["L"])
    port.show(TextFrame(("text",)))
    port.set_status(Status.THINKING)
    port.allow(capture=True, typing=True)
    port.set_lights(BLUE)
    wait_until(lambda: desk.via.hue() == HUE_BLUE)
    port.release()
    wait_until(lambda: desk.via.hue() == HUE_OWN)
    port.set_lights(RED)
    wait_until(lambda: desk.via.hue() == HUE_RED)
    assert keyboard.stop()
    assert desk.via.hue() == HUE_OWN


def test_a_board_with_the_module_takes_over_and_hands_back(desk: Desk) -> None:
    keyboard = desk.keyboard(STOCK)
    keyboard.set_lights(BLUE)
    wait_until(lambda: desk.via.hue() == HUE_BLUE)
    desk.is_plugged = True
    wait_until(lambda: desk.heard == ["L", "-", "M"])
    wait_until(lambda: desk.via.hue() == HUE_OWN)
    wait_until(lambda: desk.module.leds()[0] == Rgb(0, 0, 255))
    desk.module.press(4)
    wait_until(lambda: any(isinstance(event, KeyPressed) for event in desk.events))
    keyboard.set_lights(RED)
    wait_until(lambda: desk.module.leds()[0] == Rgb(255, 0, 0))
    assert desk.via.hue() == HUE_OWN
    desk.unplug_module()
    wait_until(lambda: desk.heard == ["L", "-", "M", "-", "L"])
    wait_until(lambda: desk.via.hue() == HUE_RED)


def test_with_the_module_from_the_beginning_nobody_else_is_announced(desk: Desk) -> None:
    desk.is_plugged = True
    desk.via.plugged = False
    desk.keyboard(STOCK)
    wait_until(lambda: desk.heard == ["M"])
    desk.via.plugged = True
    wait_until(lambda: desk.via.transports)
    assert desk.heard == ["M"]
    desk.unplug_module()
    wait_until(lambda: desk.heard == ["M", "-", "L"])


def test_the_settings_turn_stock_lights_off_and_on(desk: Desk) -> None:
    keyboard = desk.keyboard(OFF)
    keyboard.set_lights(BLUE)
    assert desk.via.transports == []
    keyboard.configure(STOCK)
    wait_until(lambda: desk.via.hue() == HUE_BLUE)
    assert desk.heard == ["L"]
    keyboard.configure(LightsSettings(enabled=False))
    wait_until(lambda: desk.heard == ["L", "-"])
    wait_until(lambda: desk.via.hue() == HUE_OWN)
    keyboard.configure(STOCK)
    wait_until(lambda: desk.heard == ["L", "-", "L"])
    wait_until(lambda: desk.via.hue() == HUE_BLUE)


def test_before_sleep_the_lights_are_given_back_and_after_it_taken_again(desk: Desk) -> None:
    keyboard = desk.keyboard(STOCK)
    keyboard.set_lights(BLUE)
    wait_until(lambda: desk.via.hue() == HUE_BLUE)
    assert keyboard.suspend(5)
    assert desk.via.hue() == HUE_OWN
    keyboard.resume()
    wait_until(lambda: desk.via.hue() == HUE_BLUE)


def test_a_crash_is_repaired_at_the_next_start(desk: Desk, tmp_path: Path) -> None:
    first = desk.keyboard(STOCK)
    first.set_lights(BLUE)
    wait_until(lambda: desk.via.hue() == HUE_BLUE)
    stored = (tmp_path / "lights.json").read_bytes()
    assert first.stop()
    # as if the process had been killed: the mood is on the board, the file tells what was before
    (tmp_path / "lights.json").write_bytes(stored)
    assert isinstance(desk.via.peer, ViaBoard)
    desk.via.peer.lights[3].hue, desk.via.peer.lights[3].effect = HUE_BLUE, 1
    desk.via.peer.lights[3].saturation = desk.via.peer.lights[3].value = 255
    second = desk.keyboard(STOCK)
    wait_until(lambda: desk.via.hue() == HUE_OWN)
    assert second.stop()


def test_vialrgb_works_too(desk: Desk) -> None:
    peer = VialBoard(rgb_leds=9)
    desk.via.peer = peer
    keyboard = desk.keyboard(STOCK)
    keyboard.set_lights(BLUE)
    wait_until(lambda: (peer.rgb.effect, peer.rgb.hue) == (2, HUE_BLUE))
    assert keyboard.stop()
    assert peer.rgb.effect == 13


def test_setters_wait_for_nobody(desk: Desk) -> None:
    free = threading.Event()
    desk.via.wrap = lambda transport: free.wait(30) and transport  # type: ignore[return-value]
    keyboard = desk.keyboard(STOCK)
    done = threading.Event()

    def use() -> None:
        for _ in range(200):
            keyboard.set_lights(BLUE)
            keyboard.release()
        keyboard.configure(OFF)
        done.set()

    threading.Thread(target=use, daemon=True).start()
    try:
        assert done.wait(5)
    finally:
        free.set()


@pytest.mark.skipif(importlib.util.find_spec("openrgb") is None, reason="the extra openrgb")
def test_openrgb_shows_the_same_only_if_the_settings_say_so(desk: Desk) -> None:
    servers = [
        OpenRgbServer([Controller("memory", [Mode("Rainbow", 0, 0), Mode("Direct")])]) for _ in "ab"
    ]
    desk.servers += servers
    keyboard = desk.keyboard(LightsSettings(stock=False, openrgb_port=servers[0].port))
    keyboard.set_lights(BLUE)
    assert servers[0].names == []
    colours = [server.controllers[0] for server in servers]
    keyboard.configure(LightsSettings(openrgb=True, openrgb_port=servers[0].port))
    wait_until(lambda: colours[0].colors == [(0, 0, 255)] * 2)
    keyboard.configure(LightsSettings(openrgb=True, openrgb_port=servers[1].port))
    wait_until(lambda: colours[1].colors == [(0, 0, 255)] * 2)
    wait_until(lambda: colours[0].active == 0)
    assert keyboard.suspend(5)
    wait_until(lambda: colours[1].active == 0)
    keyboard.resume()
    wait_until(lambda: colours[1].active == 1)
    keyboard.configure(STOCK)
    wait_until(lambda: colours[1].active == 0)
    assert desk.heard.count("M") == 0


@pytest.mark.parametrize("host", ["192.168.1.4", "example.org", "127.0.0.1.example.org", "::1"])
def test_openrgb_is_spoken_to_on_this_computer_only(host: str) -> None:
    with pytest.raises(ValueError, match="openrgb_host"):
        LightsSettings(openrgb_host=host)
    LightsSettings(openrgb_host="localhost")


def test_it_tells_that_another_program_has_the_keyboard_and_comes_back_when_told(
    desk: Desk,
) -> None:
    keyboard = desk.keyboard(STOCK)
    wait_until(lambda: desk.heard == ["L"])
    assert keyboard.away is None
    desk.via.overhear(b"\x01\0\x0c", b"\x11\4")
    wait_until(lambda: desk.heard == ["L", "-"])
    away = keyboard.away
    assert away is not None
    assert away.until_resumed
    assert away.reason == "VIA is using the keyboard. Close it, then resume."
    keyboard.come_back()
    wait_until(lambda: desk.heard == ["L", "-", "L"])
    assert keyboard.away is None


def test_of_two_keyboards_the_one_with_the_module_counts(desk: Desk) -> None:
    keyboard = desk.keyboard(STOCK)
    wait_until(lambda: desk.heard == ["L"])
    desk.is_plugged = True
    wait_until(lambda: desk.heard == ["L", "-", "M"])
    stock = keyboard._stock
    assert stock is not None
    desk.via.overhear(b"\x01\0\x0c", b"\x11\4")
    wait_until(lambda: stock.problem is LinkProblem.LEFT_OPEN)
    assert keyboard.away is None  # keys are read
    desk.unplug_module()
    wait_until(lambda: keyboard.away is not None)


def test_who_watches_is_told_of_each_part(desk: Desk) -> None:
    keyboard = desk.keyboard(STOCK)
    wait_until(lambda: desk.heard == ["L"])
    seen: list[tuple[bool, LinkState]] = []
    keyboard.watch_away(lambda: seen.append((keyboard.away is not None, keyboard._link.state)))
    desk.via.overhear(b"\x01\0\x0c", b"\x11\4")
    wait_until(lambda: any(is_away for is_away, _ in seen))
    keyboard.come_back()
    wait_until(lambda: bool(seen) and not seen[-1][0])
    desk.is_plugged = True
    wait_until(lambda: (False, LinkState.READY) in seen)
