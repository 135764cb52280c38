# SPDX-License-Identifier: Apache-2.0
"""Moods over OpenRGB, and a server that does everything wrong that one can."""

from __future__ import annotations

import importlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from firmware_bridge.lights.openrgb_client import (
    OpenRgbClient,
    OpenRgbError,
    OpenRgbMissingError,
    PacketSocket,
)
from firmware_bridge.lights.openrgb_lights import OpenRgbLights
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_state import LinkProblem, LinkState
from tests.helpers.openrgb_server import (
    MODE_SPECIFIC,
    NONE,
    SAVE_MODE,
    UPDATE_LEDS,
    UPDATE_MODE,
    Controller,
    Mode,
    OpenRgbServer,
)
from tests.helpers.waiting import wait_until

pytest.importorskip("openrgb", reason="the extra openrgb is not installed")

BLUE = Rgb(0, 0, 255)
# Where a server is not to answer in time; elsewhere it has all the time that it wants.
TIMEOUT_S = 0.3
PATIENT_S = 30.0
# What ends by a timeout, on whatever machine; without one it would not end at all.
SOON_S = 60 * TIMEOUT_S


def controllers() -> list[Controller]:
    return [
        Controller("memory", [Mode("Rainbow", NONE, 0), Mode("Direct")]),
        Controller("mouse", [Mode("Static", MODE_SPECIFIC, 1 << 6, [(9, 9, 9)])]),
        Controller("fan", [Mode("Rainbow", NONE, 0)]),
        Controller("flash", [Mode("Direct", flags=1 << 5 | 1 << 9), Mode("Static", flags=1 << 5)]),
        Controller("hub", [Mode("Direct")], colors=[]),
    ]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[OpenRgbServer]:
    marker = request.node.get_closest_marker("parametrize")
    fault = request.node.callspec.params.get("fault", "") if marker else ""
    server = OpenRgbServer(controllers(), fault=fault)
    yield server
    server.close()


def client_of(server: OpenRgbServer, timeout_s: float = PATIENT_S) -> OpenRgbClient:
    return OpenRgbClient(port=server.port, timeout_s=timeout_s)


def test_a_mood_shows_on_devices_that_take_colours_and_goes_without_a_trace(
    server: OpenRgbServer,
) -> None:
    client = client_of(server)
    assert client.names == ["memory", "mouse", "flash"]
    client.show(BLUE)
    client.show(Rgb(1, 0, 0))
    memory, mouse, fan, flash, hub = server.controllers
    wait_until(lambda: flash.colors == [(1, 0, 0)] * 2)
    assert (memory.active, memory.colors) == (1, [(1, 0, 0)] * 2)
    assert memory.changes == [UPDATE_MODE, UPDATE_LEDS, UPDATE_LEDS]
    assert mouse.modes[0].colors == [(1, 0, 0)]
    assert flash.active == 1  # the mode that the device saves by itself is not used
    client.give_back()
    client.close()
    wait_until(lambda: flash.active == 0)
    assert (memory.active, memory.modes[0].name) == (0, "Rainbow")
    assert mouse.modes[0].colors == [(9, 9, 9)]
    assert flash.colors == [(1, 2, 3), (4, 5, 6)]
    assert fan.changes == hub.changes == []
    assert all(SAVE_MODE not in controller.changes for controller in server.controllers)


@pytest.mark.parametrize(("version", "spoken"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 4)])
def test_the_version_is_clamped_to_what_both_sides_know(version: int, spoken: int) -> None:
    server = OpenRgbServer(controllers(), version=version)
    client = client_of(server)
    assert client.protocol == spoken
    assert server.versions == [4]
    assert client.names == ["memory", "mouse", "flash"]
    wait_until(lambda: server.names == [b"Thock\0"])
    client.close()
    server.close()


@pytest.mark.parametrize("fault", ["newer"])
def test_packets_of_newer_servers_are_passed_over(server: OpenRgbServer, fault: str) -> None:
    client = client_of(server)
    assert client.names == ["memory", "mouse", "flash"]
    assert client.is_outdated()
    client.close()


FAULTS = ["silent", "close", "magic", "huge", "garbage", "short", "slow", "chatty", "many"]


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(f"at once {fault}" for fault in FAULTS if fault != "many")]
)
def test_no_server_holds_us_for_long(server: OpenRgbServer, fault: str) -> None:
    start = time.monotonic()
    with pytest.raises(OpenRgbError):
        client_of(server, TIMEOUT_S)
    assert time.monotonic() - start < SOON_S


def show_often(client: OpenRgbClient) -> None:
    for _ in range(100):
        client.show(BLUE)


def send_much(guarded: PacketSocket) -> None:
    for _ in range(1000):
        guarded.send(bytes(100_000))


def test_a_server_that_stops_taking_ends_the_connection(server: OpenRgbServer) -> None:
    client = client_of(server)
    server.drop()
    with pytest.raises(OpenRgbError):
        show_often(client)
    with pytest.raises(OpenRgbError):
        client.is_outdated()
    client.close()


def test_a_server_that_reads_nothing_ends_the_connection() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        guarded = PacketSocket(ours, TIMEOUT_S)
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            send_much(guarded)
        assert time.monotonic() - start < SOON_S
        guarded.close()


def test_no_server_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(OpenRgbError, match="not running"):
        OpenRgbClient(port=port, timeout_s=TIMEOUT_S)


def test_without_the_library_the_advice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(OpenRgbMissingError, match=r"thock\[openrgb\]"):
        OpenRgbClient()


@pytest.mark.expected_log("need a library")
def test_lights_without_the_library_stop_by_themselves() -> None:
    def missing() -> OpenRgbClient:
        raise OpenRgbMissingError

    lights = OpenRgbLights(missing)
    lights.start()
    assert lights.wait_for(LinkState.STOPPED, 10)
    wait_until(lambda: "thock[openrgb]" in lights.advice)
    assert lights.problem is LinkProblem.NO_OPENRGB
    assert lights.stop()


class Desk:
    def __init__(self, server: OpenRgbServer) -> None:
        self.server = server
        self.lights = OpenRgbLights(
            lambda: client_of(self.server), mood_interval_s=0.05, retry_s=0.05
        )


@pytest.fixture
def desk(server: OpenRgbServer) -> Iterator[Desk]:
    desk = Desk(server)
    desk.lights.start()
    yield desk
    assert desk.lights.stop()


def test_the_newest_mood_is_shown_and_released(desk: Desk) -> None:
    memory = desk.server.controllers[0]
    desk.lights.set_lights(LightOverlay(BLUE))
    wait_until(lambda: memory.colors == [(0, 0, 255)] * 2)
    desk.lights.release()
    wait_until(lambda: memory.active == 0)
    desk.lights.set_lights(LightOverlay(leds={1: BLUE}))  # single LEDs are for keyboards
    desk.lights.set_lights(LightOverlay(Rgb(5, 5, 5)))
    wait_until(lambda: memory.colors == [(5, 5, 5)] * 2)
    assert desk.lights.stop()
    wait_until(lambda: memory.active == 0)
    assert desk.lights.state is LinkState.STOPPED


def test_a_server_that_comes_later_or_again_gets_the_mood(desk: Desk) -> None:
    assert desk.lights.wait_for(LinkState.READY, 10)
    desk.lights.set_lights(LightOverlay(BLUE))
    wait_until(lambda: desk.server.controllers[0].colors == [(0, 0, 255)] * 2)
    desk.server.close()
    assert desk.lights.wait_for(LinkState.SEARCHING, 10)
    wait_until(lambda: "not running" in desk.lights.advice)
    desk.server = OpenRgbServer(controllers())
    try:
        wait_until(lambda: desk.server.controllers[0].colors == [(0, 0, 255)] * 2)
        assert desk.lights.state is LinkState.READY
    finally:
        assert desk.lights.stop()
        desk.server.close()


def test_new_devices_get_the_mood_too(desk: Desk) -> None:
    desk.lights.set_lights(LightOverlay(BLUE))
    wait_until(lambda: desk.server.controllers[0].colors == [(0, 0, 255)] * 2)
    desk.server.controllers.append(Controller("lamp", [Mode("Direct")]))
    desk.server.announce()
    wait_until(lambda: desk.server.controllers[-1].colors == [(0, 0, 255)] * 2)


def test_setters_never_wait_for_a_hanging_server() -> None:
    hanging = threading.Event()

    def connect() -> OpenRgbClient:
        hanging.wait(30)
        raise OpenRgbError("gone")

    lights = OpenRgbLights(connect)
    lights.start()
    with pytest.raises(RuntimeError):
        lights.start()
    start = time.monotonic()
    for _ in range(1000):
        lights.set_lights(LightOverlay(BLUE))
        lights.release()
    assert time.monotonic() - start < 20  # it hangs for 30 s
    assert not lights.stop(0.05)
    hanging.set()
    assert lights.stop()


@pytest.mark.expected_log("OpenRGB: ZeroDivisionError at test_openrgb.py")
def test_a_fault_is_logged_without_content_and_survived() -> None:
    def connect() -> OpenRgbClient:
        raise ZeroDivisionError("secret")

    lights = OpenRgbLights(connect)
    lights.start()
    wait_until(lambda: lights.problem is LinkProblem.INTERNAL)
    assert lights.stop()
