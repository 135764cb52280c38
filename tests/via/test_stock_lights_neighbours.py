# SPDX-License-Identifier: Apache-2.0
"""Stock lights beside other programs on the same keyboard."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from firmware_bridge.events import LinkLost
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.neighbours import Sign
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.stock_lights import StockLights
from tests.helpers.lights_desk import QUICK, LightsDesk
from tests.helpers.others import FakeOthers
from tests.helpers.via_peers import (
    ViaBoard,
    VialBoard,
)
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))
RED = LightOverlay(Rgb(255, 0, 0))
HUE_BLUE, HUE_OWN = 170, 100


def paused_by_via(desk: LightsDesk) -> StockLights:
    lights = desk.lights()
    lights.set_lights(BLUE)
    wait_until(lambda: lights._shown == BLUE)
    desk.overhear(b"\x01\0\x0c", b"\x11\4")
    assert lights.wait_for(LinkState.PAUSED, 10)
    return lights


def test_another_program_is_left_alone_and_its_settings_stay(desk: LightsDesk) -> None:
    lights = paused_by_via(desk)
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
    lights = paused_by_via(desk)
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
