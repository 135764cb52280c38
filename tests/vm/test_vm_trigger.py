# SPDX-License-Identifier: Apache-2.0
"""Ready replies on real drivers: from the trigger's report to the reply's first one, at the keyboard's end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from app.companion.core import Companion, Mailbox
from app.companion.ports import EngineCommand
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import Chat, Prepare, Prepared, ReplyFinished, ReplyReady
from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.events import KeyReleased
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.transport.hid_library import HidLibrary
from tests.helpers.companion import US
from tests.helpers.timing import undisturbed
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS
from tests.vm.ports import UsbNames

TRIGGERS = 20
REST_S = 0.2  # a person that types and asks faster meets the display's limit of updates a second
LIMIT_S = 0.5  # of a machine that is busy and emulated


class ReadyEngine:
    """Has every reply ready at once, as a small model on a real machine has."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self.prepared = 0

    def send(self, command: EngineCommand) -> None:
        match command:
            case Prepare(request=number, context=context):
                text = f"reply {self.prepared}"
                self._mailbox.post(
                    ReplyReady(request=number, context=context, text=text, tokens=[1])
                )
                self._mailbox.post(Prepared(request=number, computed=1, wasted=0))
                self.prepared += 1
            case Chat(request=number):
                self._mailbox.post(
                    ReplyFinished(
                        request=number, reason="stop", tokens=0, first_token_ms=0, milliseconds=0
                    )
                )


@pytest.fixture(params=["uhid", "usb"])
def board(request: pytest.FixtureRequest, make_board: MakeBoard) -> Board:
    board = make_board(UsbNames(serial=f"trigger {request.param}"))
    board.udc = None if request.param == "uhid" else 0
    board.plug()
    return board


@pytest.fixture
def companion(board: Board, watch: DeviceWatch, library: HidLibrary) -> Iterator[Companion]:
    mailbox = Mailbox()
    mailbox.engine_changed(EngineState.READY, "")
    link = Link(system_opener(library, watch), mailbox.post, options=OPTIONS)
    companion = Companion(mailbox, link, ReadyEngine(mailbox), Settings(mode=ModeName.CHAT))
    companion.start()
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S), link.problem
        yield companion
    finally:
        companion.stop()
        assert link.stop(LONG_S)


def test_a_ready_reply_comes_right_after_its_trigger(
    board: Board,
    companion: Companion,
    record_property: Callable[[str, object], None],
) -> None:
    seconds = sorted(ask(board, companion, number) for number in range(TRIGGERS))
    assert (companion.state.ready.hits, companion.state.ready.misses) == (TRIGGERS, 0)
    name = "usb" if board.udc is not None else "uhid"
    record_property(
        f"trigger to first report, {name}",
        f"median {statistics.median(seconds) * 1e3:.2f} ms, p99 {seconds[-1] * 1e3:.2f} ms"
        f" of {TRIGGERS} (an emulated processor)",
    )
    assert undisturbed(seconds) < LIMIT_S


def ask(board: Board, companion: Companion, number: int) -> float:
    """Type a question, wait until its reply is ready, ask it; the seconds to the reply's first report."""
    text = "why"[: 1 + number % 3]
    for stroke in keys_for(text, US):
        for usage, is_down in stroke.actions():
            assert (board.press if is_down else board.release)(usage)
    wait_until(lambda: is_ready_for(companion, text), LONG_S)
    time.sleep(REST_S)
    board.answers()  # of the letters
    board.press(Usage.ENTER)
    answers: list[float] = []

    def is_answered() -> bool:
        answers.extend(board.answers())
        return bool(answers) and companion.state.ready.hits > number

    wait_until(is_answered, LONG_S)
    board.release(Usage.ENTER)
    wait_until(lambda: not companion.state.is_busy, LONG_S)
    return answers[0]


def is_ready_for(companion: Companion, text: str) -> bool:
    """Whether all keys were told, and the reply is ready on the display's threshold."""
    machine = companion._machine
    reflex, newest = machine._sight.out._reflex, machine._newest_event
    is_all = machine._modes.chat.typed == text and isinstance(newest, KeyReleased)
    return is_all and reflex is not None and reflex.after is newest
