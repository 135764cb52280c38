# SPDX-License-Identifier: Apache-2.0
"""Another process opens the keyboard on the kernel's hidraw, with the library that such programs use."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from firmware_bridge.discovery.system import system_opener
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.errors import DeviceBusyError
from firmware_bridge.events import BridgeEvent, LinkLost
from firmware_bridge.link_state import LinkProblem, LinkState
from firmware_bridge.transport.hid_library import HidLibrary
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.desk import LONG_S, OPTIONS, running_link, wait_for_boards

# Lists the devices as hidapi does it, opens the keyboard, and prints how many reports come in 3 s.
SCRIPT = """
import sys, time, hidraw
hidraw.enumerate()
device = hidraw.device()
device.open_path(sys.argv[1].encode())
print("open", flush=True)
end, count = time.monotonic() + 3, 0
while (left := end - time.monotonic()) > 0:
    count += bool(device.read(64, max(int(left * 1000), 1)))
print(count, flush=True)
sys.stdin.read()
device.close()
"""


class Program:
    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, path], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._line() == "open"

    def count(self) -> int:
        return int(self._line())

    def end(self) -> None:
        self._process.communicate(timeout=LONG_S)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def test_nothing_is_said_while_another_process_has_the_keyboard_open(
    board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    """The keyboard answers 60 requests a minute else; a key is sent until the subscription has run out."""
    [candidate] = wait_for_boards(watch, 1)
    events: list[BridgeEvent] = []
    options = replace(OPTIONS, quiet_s=1.0)
    with running_link(library, watch, events.append, options=options) as link:
        program = Program(candidate.path)
        assert link.wait_for(LinkState.PAUSED, LONG_S)
        assert link.problem is LinkProblem.OTHER_PROGRAM
        assert link.advice.startswith("python")
        assert any(isinstance(event, LinkLost) for event in events)
        assert program.count() == 0
        assert link.state is LinkState.PAUSED
        wait_until(lambda: not board.subscribed, LONG_S)
        program.end()
        assert link.wait_for(LinkState.READY, LONG_S)


def test_a_keyboard_that_another_process_has_open_is_not_asked(
    board: Board, watch: DeviceWatch, library: HidLibrary
) -> None:
    [candidate] = wait_for_boards(watch, 1)
    program = Program(candidate.path)
    opener = system_opener(library, watch)
    with pytest.raises(DeviceBusyError, match="is using the keyboard"):
        opener()
    assert program.count() == 0
    program.end()
    assert opener().identity == candidate.identity
