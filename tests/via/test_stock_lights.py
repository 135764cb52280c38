# SPDX-License-Identifier: Apache-2.0
"""Tier B as a keyboard that has lights only: one thread, the port of Link, and nothing left behind."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from app.companion.lights_port import Lights
from firmware_bridge.errors import DeviceGoneError, DevicePermissionError
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.moods import Moods
from firmware_bridge.via.stock_lights import StockLights, StockLightsOptions
from tests.helpers.lights_desk import QUICK, LightsDesk
from tests.helpers.peers import make_peer
from tests.helpers.timing import undisturbed
from tests.helpers.transports import DeafTransport, ScriptedTransport, WrappedTransport
from tests.helpers.via_lab import ANSWER_S, transport_of
from tests.helpers.via_peers import (
    Peer,
    ViableBoard,
    ViaBoard,
)
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))
RED = LightOverlay(Rgb(255, 0, 0))
HUE_BLUE, HUE_OWN = 170, 100


def test_it_is_a_keyboard_that_has_lights_only(desk: LightsDesk) -> None:
    port: Lights
    port = lights = desk.lights()
    assert lights.wait_for(LinkState.READY, 10)
    (event,) = desk.events
    assert isinstance(event, LinkReady)
    assert event.capabilities.features == Feature.LIGHTS
    assert not event.capabilities.has_display
    assert event.capabilities.led_count == 0
    port.set_lights(BLUE)
    wait_until(lambda: desk.hue() == HUE_BLUE)
    port.release()
    wait_until(lambda: desk.hue() == HUE_OWN)


def test_what_was_wanted_before_the_keyboard_came_is_shown(desk: LightsDesk) -> None:
    desk.plugged = False
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights.problem is LinkProblem.NO_DEVICE)
    assert lights.suspend(5)  # nothing to set back
    lights.resume()
    desk.plugged = True
    wait_until(lambda: desk.hue() == HUE_BLUE)


def test_the_end_gives_the_lights_back(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: desk.hue() == HUE_BLUE)
    assert lights.stop(30)
    assert desk.hue() == HUE_OWN
    assert lights.state is LinkState.STOPPED
    assert lights.stop(30)
    assert desk.transports[-1].closed == 1


def test_it_is_started_once_and_may_be_stopped_before(desk: LightsDesk) -> None:
    lights = desk.lights()
    with pytest.raises(RuntimeError):
        lights.start()
    other = StockLights(lambda: transport_of(desk.peer), lambda event: None, desk.store)
    assert other.stop(30)


def test_suspend_gives_the_lights_back_and_resume_takes_them_again(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: desk.hue() == HUE_BLUE)
    assert lights.suspend(10)
    assert desk.hue() == HUE_OWN
    lights.set_lights(RED)
    time.sleep(0.1)
    assert desk.hue() == HUE_OWN
    lights.resume()
    wait_until(lambda: desk.hue() == 0)


def test_after_sleep_all_is_read_anew(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    assert isinstance(desk.peer, ViaBoard)
    desk.peer.eeprom[3].hue = 7
    desk.peer.power_cycle()  # the port had no power meanwhile
    desk.asleep += 3600
    lights.resume()  # the wake-up of the computer
    wait_until(lambda: desk.hue() == HUE_BLUE)
    assert LinkLost(LinkProblem.SUSPENDED) in desk.events
    assert lights.stop(30)
    assert desk.hue() == 7


def test_a_crash_is_repaired_at_the_next_start(desk: LightsDesk) -> None:
    class Dead(WrappedTransport):
        """The process is gone: nothing it wants to write goes out."""

        dead = threading.Event()

        def write(self, report: bytes) -> None:
            if self.dead.is_set():
                raise DeviceGoneError("dead")
            super().write(report)

    desk.wrap = Dead
    first = desk.lights()
    first.set_lights(BLUE)
    wait_until(lambda: desk.hue() == HUE_BLUE)
    wait_until(lambda: first._shown == BLUE)
    Dead.dead.set()
    desk.plugged = False
    assert first.stop()
    assert desk.hue() == HUE_BLUE
    desk.plugged, desk.wrap = True, lambda transport: transport
    second = desk.lights()
    assert second.wait_for(LinkState.READY, 10)
    assert desk.hue() == HUE_OWN


def test_an_unplugged_keyboard_comes_back_with_its_mood(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: desk.hue() == HUE_BLUE)
    transport = desk.transports[-1]
    desk.plugged = False

    def gone(timeout_s: float) -> bytes | None:
        raise DeviceGoneError("unplugged")

    transport.read = gone  # type: ignore[method-assign]
    transport.wake()
    wait_until(lambda: lights.problem is LinkProblem.NO_DEVICE)
    assert LinkLost(LinkProblem.GONE) in desk.events
    assert isinstance(desk.peer, ViaBoard)
    desk.peer.power_cycle()
    desk.plugged = True
    wait_until(lambda: desk.hue() == HUE_BLUE)
    assert transport.closed == 1


def test_moods_change_once_a_second_at_most(
    desk: LightsDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[float, float]] = []
    show = Moods.show

    def timed(moods: Moods, overlay: LightOverlay) -> None:
        start = time.monotonic()
        show(moods, overlay)
        shown.append((start, time.monotonic()))

    monkeypatch.setattr(Moods, "show", timed)
    lights = desk.lights(StockLightsOptions(answer_s=ANSWER_S, mood_interval_s=0.3))
    moods = itertools.cycle((BLUE, RED, LightOverlay()))
    wait_until(lambda: lights.set_lights(next(moods)) or len(shown) >= 5)
    assert StockLightsOptions().mood_interval_s == 1.0
    assert all(later[0] - earlier[1] >= 0.3 for earlier, later in itertools.pairwise(shown))


@pytest.mark.parametrize(
    ("peer", "problem"),
    [(make_peer("echo"), LinkProblem.NO_LIGHTS), (make_peer("silent receiver"), LinkProblem.NO_ANSWER),
     (ViaBoard(13, ()), LinkProblem.NO_LIGHTS)],
)  # fmt: skip
def test_a_device_without_lights_is_told(
    peer: Peer, problem: LinkProblem, store: BaselineStore
) -> None:
    desk = LightsDesk(peer, store)
    lights = desk.lights()
    wait_until(lambda: lights.problem is problem)
    assert lights.stop(30)
    assert desk.events == []


def test_no_permission_is_told_with_its_advice(desk: LightsDesk) -> None:
    def refused(transport: ScriptedTransport) -> Transport:
        transport.open_error = DevicePermissionError("no", "do this")
        return transport

    desk.wrap = refused
    lights = desk.lights()
    wait_until(lambda: lights.problem is LinkProblem.NO_PERMISSION)
    assert lights.advice == "do this"


def test_viable_boards_have_lights_too(store: BaselineStore) -> None:
    desk = LightsDesk(ViableBoard(), store)
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    assert isinstance(desk.peer, ViableBoard)
    desk.peer.expire()
    assert lights.stop(30)
    assert desk.hue() == HUE_OWN


def test_a_transport_that_cannot_be_woken_is_polled(desk: LightsDesk) -> None:
    desk.wrap = DeafTransport
    lights = desk.lights()
    assert lights.wait_for(LinkState.READY, 10)
    times = []
    for mood, hue in 4 * ((BLUE, HUE_BLUE), (RED, 0)):
        start = time.monotonic()
        lights.set_lights(mood)
        wait_until(lambda hue=hue: desk.hue() == hue)
        times.append(time.monotonic() - start)
    assert (
        undisturbed(times) < 0.5
    )  # QUICK has a mood every 0.05 s; a wait for a report is one of 1 s


@pytest.mark.expected_log("lights: ValueError at test_stock_lights.py")
def test_a_fault_is_logged_without_content_and_survived(desk: LightsDesk) -> None:
    faults = [True]

    def faulty(transport: ScriptedTransport) -> Transport:
        if faults:
            faults.clear()
            raise ValueError("secret")
        return transport

    desk.wrap = faulty
    lights = desk.lights()
    assert lights.wait_for(LinkState.READY, 10)


@pytest.mark.expected_log("listener failed")
def test_a_listener_that_fails_does_not_end_the_lights(store: BaselineStore) -> None:
    peer = ViaBoard(12)

    def listener(event: BridgeEvent) -> None:
        raise RuntimeError("secret")

    lights = StockLights(lambda: transport_of(peer), listener, store, options=QUICK)
    lights.start()
    lights.set_lights(BLUE)
    wait_until(lambda: peer.lights[3].hue == HUE_BLUE)
    assert lights.stop(30)


def test_setters_never_wait(desk: LightsDesk) -> None:
    free = threading.Event()

    class Stuck(WrappedTransport):
        def write(self, report: bytes) -> None:
            free.wait(30)
            super().write(report)

    desk.wrap = Stuck
    lights = desk.lights()
    wait_until(lambda: desk.transports)
    start = time.monotonic()
    for _ in range(1000):
        lights.set_lights(BLUE)
        lights.set_lights(RED)
        lights.release()
    assert time.monotonic() - start < 20
    assert not lights.stop(0.1)  # the device holds the thread
    free.set()
