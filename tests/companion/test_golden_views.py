# SPDX-License-Identifier: Apache-2.0
"""What the modes look like on the OLED, drawn by the firmware core: PNGs in tests/golden/oled."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from app.companion.messages import Pause
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import LabelChosen, ReplyGrew
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.companion import Desk
from tests.helpers.golden import assert_golden
from tests.helpers.waiting import wait_until

REPLY = (
    "The sky is blue because of a process called Rayleigh scattering, which occurs when light "
    "encounters molecules of air."
)


def suggestions(rows: int) -> Desk:
    desk = Desk(rows=rows)
    desk.type("Please bring the hel", gap_s=0.005)
    desk.advance(0.2)
    desk.suggest(("p", 0.61), ("met", 0.2), ("icopter", 0.05))
    return desk


def question(rows: int) -> Desk:
    desk = Desk(Settings(mode=ModeName.CHAT), rows=rows)
    desk.type("Why is the sky blue?")
    return desk


def reply(rows: int) -> Desk:
    desk = question(rows)
    desk.type("\n")
    desk.post(ReplyGrew(request=desk.request, text=REPLY))
    return desk


def mood(rows: int) -> Desk:
    desk = Desk(Settings(mode=ModeName.REACT), rows=rows)
    desk.type("it works!\n")
    desk.post(LabelChosen(request=desk.request, label="happy", probability=0.75, milliseconds=3))
    return desk


def restart(rows: int) -> Desk:
    desk = Desk(rows=rows)
    desk.engine_is(EngineState.RESTARTING, "it was killed by SIGKILL")
    desk.type("meanwhile")
    return desk


def pause(rows: int) -> Desk:
    desk = Desk(rows=rows)
    desk.post(Pause())
    return desk


def on_a_panel(desk: Desk, rows: int) -> BitmapFrame:
    """The desk's display and status as the firmware draws them."""
    keyboard = VirtualKeyboard(BoardConfig(panel_width=128, panel_height=rows * 8))
    link = Link(lambda: VirtualTransport(keyboard), lambda event: None)
    link.show(desk.state.frame)
    link.set_status(desk.state.status)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, 30)
        wait_until(lambda: not math.isnan(link.stats.shown_s), timeout_s=30)
        wait_until(lambda: keyboard.status is desk.state.status, timeout_s=30)
        return keyboard.panel()
    finally:
        link.stop()


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize("view", [suggestions, question, reply, mood, restart, pause])
def test_a_view_looks_as_it_did_when_it_was_looked_at(
    view: Callable[[int], Desk], rows: int
) -> None:
    picture = on_a_panel(view(rows), rows)
    assert_golden(picture, f"companion-{view.__name__}-128x{rows * 8}")
