# SPDX-License-Identifier: Apache-2.0
"""What a person sees in every mode, as the firmware draws it: tests/golden/oled/screen_*.png.

The companion's text goes through the real link into the C core; its picture is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from app.companion.messages import SetMode
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import LabelChosen, ReplyFinished, ReplyGrew
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.events import EventsDropped
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.companion import Desk
from tests.helpers.golden import assert_golden

REPLY = "A keyboard is a board of keys. Each key closes a switch, and the board tells the computer."


def answer(desk: Desk, *words: tuple[str, float]) -> None:
    """Answer until the newest text was: the first answer may be to a text that is already old."""
    while desk.state.status is Status.THINKING:
        desk.suggest(*words)
        desk.advance(0.1)


def suggest_inside_a_word(desk: Desk) -> None:
    desk.type("The quick br")
    answer(desk, ("own", 0.81), ("ight", 0.07), ("oad", 0.03))


def suggest_next_word(desk: Desk) -> None:
    desk.type("I would like to")
    answer(desk, (" thank", 0.14), (" know", 0.06), (" see", 0.05))


def chat_typing(desk: Desk) -> None:
    desk.post(SetMode(ModeName.CHAT))
    desk.advance(3)
    desk.type("What is a keyboard?")


def chat_streaming(desk: Desk) -> None:
    chat_typing(desk)
    desk.type("\n")
    desk.post(ReplyGrew(request=desk.request, text=REPLY[:38]))


def chat_last_page(desk: Desk) -> None:
    chat_streaming(desk)
    desk.post(ReplyGrew(request=desk.request, text=REPLY[38:]))
    desk.post(
        ReplyFinished(
            request=desk.request, reason="stop", tokens=20, first_token_ms=40, milliseconds=900
        )
    )
    desk.advance(30)


def react_mood(desk: Desk) -> None:
    desk.post(SetMode(ModeName.REACT))
    desk.advance(3)
    desk.type("It works at last!\n")
    desk.post(LabelChosen(request=desk.request, label="happy", probability=0.62, milliseconds=50))


def paused(desk: Desk) -> None:
    desk.press_macro(2)


def loading(desk: Desk) -> None:
    desk.engine_is(EngineState.LOADING)


def engine_restarting(desk: Desk) -> None:
    desk.type("Dear ")
    desk.engine_is(EngineState.RESTARTING, "it was killed by SIGKILL")


def engine_failed(desk: Desk) -> None:
    desk.engine_is(EngineState.FAILED, "it died 4 times in 10 minutes")


def keys_lost(desk: Desk) -> None:
    desk.post(EventsDropped(12))


def mode_changed(desk: Desk) -> None:
    desk.press_macro(0)


SCENES: tuple[Callable[[Desk], None], ...] = (
    suggest_inside_a_word,
    suggest_next_word,
    chat_typing,
    chat_streaming,
    chat_last_page,
    react_mood,
    paused,
    loading,
    engine_restarting,
    engine_failed,
    keys_lost,
    mode_changed,
)


def shown(desk: Desk, height: int) -> BitmapFrame:
    """The picture that the firmware draws for what the companion wants to be seen."""
    keyboard = VirtualKeyboard(BoardConfig(panel_height=height))
    link = Link(lambda: VirtualTransport(keyboard), lambda _event: None)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, 5)
        link.show(desk.keyboard.frame)
        link.set_status(desk.state.status)
        picture = keyboard.panel()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            time.sleep(0.15)  # longer than the link's limits on display updates
            previous, picture = picture, keyboard.panel()
            if picture == previous and keyboard.status == desk.state.status:
                return picture
    finally:
        link.stop()
    raise AssertionError("the display did not come to rest")


@pytest.mark.parametrize("height", [32, 64])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_screen_looks_as_committed(scene: Callable[[Desk], None], height: int) -> None:
    desk = Desk(Settings(), rows=height // 8)
    scene(desk)
    assert_golden(shown(desk, height), f"screen_{scene.__name__}_128x{height}")
