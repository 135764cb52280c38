# SPDX-License-Identifier: Apache-2.0
"""The main job on real drivers: connect, type, suggest, chat, lights; unplugged and plugged in between."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from app.companion.core import Companion, Mailbox
from app.companion.macros import MacroKey
from app.settings import Settings
from engine.client import FAKE_ENGINE, ClientLimits, EngineClient, EngineState
from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.hid_library import HidLibrary
from tests.helpers.companion import US
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS, wait_for_port
from tests.vm.ports import UsbNames


class Desk:
    """A board to type on, and the companion that answers."""

    def __init__(self, board: Board, link: Link, companion: Companion) -> None:
        self.board = board
        self.link = link
        self.companion = companion

    def type(self, text: str) -> None:
        for stroke in keys_for(text, US):
            for usage, is_down in stroke.actions():
                assert (self.board.press if is_down else self.board.release)(usage)

    def until_shown(self, text: str) -> None:
        """On the companion's display, and on the panel of the board."""
        wait_until(lambda: any(text in row for row in self.companion.state.frame.rows), LONG_S)
        wait_until(lambda: any(self.board.panel().pages), LONG_S)


class SharedEngine:
    """One engine child with scripted replies for all desks: to start it takes 20 s of emulation."""

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.client = EngineClient(
            lambda event: self.mailbox.post(event),
            lambda state, detail: self.mailbox.engine_changed(state, detail),
            argv=FAKE_ENGINE,
            limits=ClientLimits(connect_s=300, silence_s=LONG_S),
        )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedEngine]:
    script = tmp_path_factory.mktemp("engine") / "script.json"
    words = {"words": ["soundly", "sleeps"], "replies": ["One two three four five."], "token_ms": 5}
    script.write_text(json.dumps(words))
    engine = SharedEngine()
    engine.client.start(script)
    wait_until(lambda: engine.client.state is EngineState.READY, 300)
    yield engine
    engine.client.stop()


@pytest.fixture(params=["uhid", "usb", "serial"])
def desk(
    request: pytest.FixtureRequest,
    make_board: MakeBoard,
    watch: DeviceWatch,
    library: HidLibrary,
    engine: SharedEngine,
) -> Iterator[Desk]:
    board = make_board(UsbNames(serial=f"main {request.param}"))
    board.udc = None if request.param == "uhid" else 0
    board.plug()
    mailbox = engine.mailbox = Mailbox()
    mailbox.engine_changed(EngineState.READY, "")
    # a serial port has to be chosen, a raw HID interface is found
    selected = wait_for_port(watch).identity if request.param == "serial" else None
    link = Link(system_opener(library, watch, selected), mailbox.post, options=OPTIONS)
    companion = Companion(mailbox, link, engine.client, Settings())
    companion.start()
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S), link.problem
        yield Desk(board, link, companion)
    finally:
        companion.stop()
        assert link.stop(LONG_S)


def test_connect_type_suggest_chat_lights(desk: Desk) -> None:
    desk.type("it sl")
    desk.until_shown("sleeps")
    desk.board.macro(MacroKey.NEXT_MODE)
    desk.type("count\n")
    desk.until_shown("One two three four")
    wait_until(lambda: any(desk.board.leds()), LONG_S)
    desk.board.unplug()
    wait_until(lambda: desk.companion.state.keyboard is None, LONG_S)
    desk.board.plug()
    wait_until(lambda: desk.companion.state.keyboard is not None, LONG_S)
    desk.type("again\n")
    desk.until_shown("One two three four")
    wait_until(lambda: any(desk.board.leds()), LONG_S)
    assert desk.companion.state.dropped == 0
    assert desk.link.stats.dropped == 0
    desk.board.macro(MacroKey.PAUSE)
    wait_until(lambda: desk.board.status is Status.PAUSED, LONG_S)
    wait_until(lambda: not any(desk.board.leds()), LONG_S)
    desk.companion.stop()
    wait_until(lambda: not desk.board.display_taken, LONG_S)
