# SPDX-License-Identifier: Apache-2.0
"""Frames in VIA form on the kernel's hidraw, and a program that asks for VIA's version beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import BridgeEvent, KeyPressed, KeyReleased, LinkLost
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType, type_of
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.hid_library import HidLibrary
from firmware_bridge.transport.wrapped import WrappedTransport
from tests.helpers.waiting import wait_until
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS, wait_for_boards

VERSION = "01000c"  # VIA 12, high byte first
IN_VIA_FORM = bytes.fromhex(VERSION) + b"\x4c"

# Asks as the VIA app does, the version first, and prints each first report that comes after a request.
SCRIPT = """
import sys, hidraw
device = hidraw.device()
device.open_path(sys.argv[1].encode())
for request in (b"\\x01", b"\\x0d", b"\\x11"):
    device.write(b"\\0" + request.ljust(32, b"\\0"))
    print(bytes(device.read(64, 60_000)).hex(), flush=True)
sys.stdin.read()
device.close()
"""


class Recording(WrappedTransport):
    """Keeps what comes from the keyboard."""

    def __init__(self, inner: Transport, seen: list[bytes]) -> None:
        super().__init__(inner)
        self._seen = seen

    def read(self, timeout_s: float) -> bytes | None:
        report = super().read(timeout_s)
        if report is not None:
            self._seen.append(report)
        return report


@pytest.mark.parametrize(
    "udc", [pytest.param(None, id="uhid"), pytest.param(0, id="usb", marks=pytest.mark.slow)]
)
def test_keys_come_in_via_form_and_a_foreign_question_is_answered_right(
    udc: int | None, make_board: MakeBoard, watch: DeviceWatch, library: HidLibrary
) -> None:
    board = make_board(config=BoardConfig(via_version=12))
    board.udc = udc
    board.plug()
    [candidate] = wait_for_boards(watch, 1)
    opener = system_opener(library, watch)
    seen: list[bytes] = []
    events: list[BridgeEvent] = []
    link = Link(
        lambda: Recording(opener(), seen), events.append, options=OPTIONS, others=opener.others
    )
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S), link.problem
        assert link.capabilities is not None
        assert Feature.VIA_FORM in link.capabilities.features
        link.show(TextFrame(("text",)))
        for keycode in (4, 5, 6):
            board.press(keycode)
            board.release(keycode)
        wait_until(lambda: sum(isinstance(e, KeyReleased) for e in events) == 3, LONG_S)
        assert [e.keycode for e in events if isinstance(e, KeyPressed)] == [4, 5, 6]
        kinds = {type_of(report) for report in seen}
        assert {FrameType.KEY, FrameType.ACK} <= kinds
        assert {report[:4] for report in seen if type_of(report) != FrameType.CAPS} == {IN_VIA_FORM}
        assert link.stats.foreign == 0

        program = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, candidate.path], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert program.stdout is not None
        version, unlocked, layers = (program.stdout.readline().strip() for _ in range(3))
        assert version.startswith(VERSION)
        assert (unlocked[:2], layers[:2]) == ("0d", "11")
        assert link.wait_for(LinkState.PAUSED, LONG_S)
        assert link.problem is LinkProblem.OTHER_PROGRAM
        assert any(isinstance(event, LinkLost) for event in events)
        program.communicate(timeout=LONG_S)
        assert link.wait_for(LinkState.READY, LONG_S)
    finally:
        assert link.stop(LONG_S)
