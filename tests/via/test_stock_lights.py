# SPDX-License-Identifier: Apache-2.0
"""Tier B as a keyboard that has lights only: one thread, the port of Link, and nothing left behind."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.companion.lights_port import Lights
from firmware_bridge.errors import DeviceGoneError, DevicePermissionError
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.neighbours import Sign
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.moods import Moods
from firmware_bridge.via.stock_lights import StockLights, StockLightsOptions
from tests.helpers.lights_desk import QUICK, LightsDesk
from tests.helpers.others import FakeOthers
from tests.helpers.peers import make_peer
from tests.helpers.timing import undisturbed
from tests.helpers.transports import DeafTransport, ScriptedTransport, WrappedTransport
from tests.helpers.via_lab import ANSWER_S, transport_of
from tests.helpers.via_peers import (
    Peer,
    ViableBoard,
    ViaBoard,
    VialBoard,
)
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))
RED = LightOverlay(Rgb(255, 0, 0))
HUE_BLUE, HUE_OWN = 170, 100


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "lights.json")


@pytest.fixture
def desk(store: BaselineStore) -> Iterator[LightsDesk]:
    desk = LightsDesk(ViaBoard(12), store)
    yield desk
    for lights in desk.all:
        assert lights.stop(30)
    assert not desk.peer.trapped


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


def test_another_program_is_left_alone_and_its_settings_stay(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    desk.overhear(b"\x01\0\x0c", b"\x11\4")
    assert lights.wait_for(LinkState.PAUSED, 10)
    assert lights.problem is LinkProblem.LEFT_OPEN
    assert lights.advice == "VIA is using the keyboard. Close it, then resume."
    wait_until(lambda: LinkLost("VIA is using the keyboard") in desk.events)
    count = len(desk.peer.writes)
    lights.set_lights(RED)
    time.sleep(0.2)
    assert len(desk.peer.writes) == count
    assert lights.stop(30)  # and no word at the end either; the next start puts it right
    assert len(desk.peer.writes) == count
    assert desk.lights().wait_for(LinkState.READY, 10)
    assert desk.hue() == HUE_OWN


def test_it_goes_on_when_the_person_says_so(desk: LightsDesk) -> None:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    desk.overhear(b"\x01\0\x0c", b"\x11\4")
    assert lights.wait_for(LinkState.PAUSED, 10)
    assert not lights.wait_for(LinkState.READY, 0.5)
    lights.come_back()
    assert lights.wait_for(LinkState.READY, 10)
    wait_until(lambda: lights._shown == BLUE)


def test_the_person_is_asked_to_resume_when_vial_goes_on_after_the_unlocking(
    store: BaselineStore,
) -> None:
    desk = LightsDesk(VialBoard(rgb_leds=9, unlocking=True), store)
    lights = desk.lights(QUICK)
    wait_until(lambda: lights.problem is LinkProblem.UNLOCKING)
    desk.overhear(b"\x01\0\x0c", b"\x11\4")
    wait_until(lambda: lights.problem is LinkProblem.LEFT_OPEN)
    assert lights.advice == "VIA is using the keyboard. Close it, then resume."
    assert lights.stop(30)


def test_the_person_is_asked_to_resume_when_via_comes_after_another_program(
    desk: LightsDesk,
) -> None:
    lights = desk.lights(replace(QUICK, quiet_s=1))
    assert lights.wait_for(LinkState.READY, 10)
    desk.overhear(b"\x21\0", b"\x21\0")
    wait_until(lambda: lights.problem is LinkProblem.OTHER_PROGRAM)
    desk.overhear(b"\x11\4")
    wait_until(lambda: lights.problem is LinkProblem.LEFT_OPEN)


def test_it_goes_on_when_the_program_has_closed_the_keyboard(desk: LightsDesk) -> None:
    others = FakeOthers()
    lights = desk.lights(replace(QUICK, hush_s=0.02, open_hush_s=0.05, quiet_s=0.1), others)
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    others.program, others.come = "vial", Sign.OPENED
    assert lights.wait_for(LinkState.PAUSED, 10)
    assert "vial is using the keyboard" in lights.advice
    count = len(desk.peer.writes)
    assert isinstance(desk.peer, ViaBoard)
    desk.peer.lights[3].saturation = 9  # the person's wish, in the other program
    time.sleep(0.3)
    assert len(desk.peer.writes) == count
    others.program = None
    assert lights.wait_for(LinkState.READY, 10)
    wait_until(lambda: lights._shown == BLUE)
    assert lights.stop(30)
    assert (desk.peer.lights[3].hue, desk.peer.lights[3].saturation) == (HUE_OWN, 9)


@pytest.mark.parametrize("begins", ["before", "while a mood is shown"])
def test_nothing_is_set_while_vial_is_being_unlocked(begins: str, store: BaselineStore) -> None:
    peer = VialBoard(rgb_leds=9, unlocking=begins == "before")
    desk = LightsDesk(peer, store)
    lights = desk.lights(replace(QUICK, unlock_check_s=0.2))
    lights.set_lights(BLUE)
    if begins != "before":
        wait_until(lambda: lights._shown == BLUE)
        peer.unlocking = True
        lights.set_lights(RED)
    assert lights.wait_for(LinkState.PAUSED, 10)
    assert lights.problem is LinkProblem.UNLOCKING
    time.sleep(0.5)
    asked = {write[:2] for write in peer.writes[-2:]}
    assert asked == {b"\xfe\x05"}
    desk.overhear(b"\0\1\x32")  # Vial asks too: now we listen only
    wait_until(lambda: not desk.transports[-1]._queue)
    count = len(peer.writes)
    for _ in range(20):
        desk.overhear(b"\0\1\x31")
        time.sleep(0.005)
    assert len(peer.writes) <= count + 1
    peer.unlocking = False
    assert lights.wait_for(LinkState.READY, 10)
    wait_until(lambda: lights._shown in (BLUE, RED) and peer.rgb.effect == 2)
    assert lights.stop(30)
    assert peer.rgb.effect == 13
    assert not peer.trapped


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
