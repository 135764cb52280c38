# SPDX-License-Identifier: Apache-2.0
"""What the link costs on top of hidapi, and that nothing is lost or left over when plugs are pulled."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from app.commands.keyboards import LINK_OPTIONS
from firmware_bridge.discovery.candidates import Candidate
from firmware_bridge.discovery.watch import DeviceWatch
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.events import BridgeEvent, KeyPressed, KeyReleased
from firmware_bridge.link import Link
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.hid_library import HidLibrary
from tests.contract.test_transport_contract import HELLO_REPORT
from tests.helpers.timing import undisturbed
from tests.helpers.transports import WrappedTransport
from tests.helpers.waiting import wait_until
from tests.vm.boards import Board
from tests.vm.conftest import MakeBoard
from tests.vm.desk import LONG_S, OPTIONS, hid_transport, running_link, wait_for_boards
from tests.vm.ports import UsbNames

BLOCKS = 5
ROUNDS = 50  # in a block
# Between two requests, in both measurements: an emulated processor that rested is slow to wake up.
PACE_S = 0.005
RATIO = 1.3


def bare_round_trips(library: HidLibrary, path: bytes) -> list[float]:
    """Seconds of one 32-byte request and its answer with hidapi alone."""
    device = library.open(path)
    while device.read(32, 20):
        pass  # the answer to the farewell of the link before
    times = []
    for _ in range(ROUNDS):
        time.sleep(PACE_S)
        start = time.perf_counter()
        device.write(b"\0" + HELLO_REPORT)
        answer = device.read(32, 1000)
        times.append(time.perf_counter() - start)
        assert bytes(answer[:2]) == HELLO_REPORT[:2]
    library.close(device)
    return times


def link_round_trips(library: HidLibrary, candidate: Candidate) -> TimedTransport:
    """The same through a link, whose keepalive is the request: no other thread takes part."""
    timed = TimedTransport(hid_transport(library, candidate))
    link = Link(lambda: timed, lambda event: None, options=replace(OPTIONS, heartbeat_s=PACE_S))
    link.start()
    while len(timed.until_done) < ROUNDS:
        time.sleep(ROUNDS * PACE_S)  # this thread would take the interpreter lock from the link's
    assert link.stop(LONG_S)
    assert link.stats.retries == 0
    return timed


class TimedTransport(WrappedTransport):
    """Times of each request in seconds: until its answer is here, and until the link has dealt with it."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.until_here: list[float] = []
        self.until_done: list[float] = []
        self._started = 0.0
        self._is_answered = False

    def write(self, report: bytes) -> None:
        self._note()
        self._started = time.perf_counter()
        super().write(report)

    def read(self, timeout_s: float) -> bytes | None:
        self._note()
        report = super().read(timeout_s)
        if report is not None:
            self.until_here.append(time.perf_counter() - self._started)
            self._is_answered = True
        return report

    def _note(self) -> None:
        """The link comes back when it is done with what `read` gave it."""
        if self._is_answered:
            self.until_done.append(time.perf_counter() - self._started)
        self._is_answered = False


@pytest.mark.parametrize("udc", [None, 0], ids=["uhid", "usb"])
def test_a_round_trip_through_the_link_is_as_quick_as_through_hidapi_alone(
    udc: int | None,
    make_board: MakeBoard,
    watch: DeviceWatch,
    library: HidLibrary,
    record_property: Callable[[str, object], None],
) -> None:
    board = make_board(UsbNames(serial="speed"))
    board.udc = udc
    board.plug()
    candidate = wait_for_boards(watch, 1)[0]
    bare: list[float] = []
    here: list[float] = []
    done: list[float] = []
    ratios: list[float] = []
    # In turns, because a machine that others use too gets slower and faster by itself; longer, if it did.
    # What the link costs it costs in every block, so the one that was disturbed least counts.
    while len(ratios) < BLOCKS or (min(ratios) > RATIO and len(ratios) < 4 * BLOCKS):
        alone = bare_round_trips(library, os.fsencode(candidate.path))
        timed = link_round_trips(library, candidate)
        ratios.append(undisturbed(timed.until_here) / undisturbed(alone))
        bare += alone
        here += timed.until_here
        done += timed.until_done
    name = "uhid" if udc is None else "usb"
    record_property(
        f"round trip on hidraw, {name}",
        f"bare {_spread(bare)}; link {_spread(here)}; ratios of quarters"
        f" {min(ratios):.2f} to {max(ratios):.2f} ({len(ratios)} blocks);"
        f" with the link's own work {_spread(done)}",
    )
    assert min(ratios) <= RATIO


@pytest.mark.parametrize("udc", [None, 0], ids=["uhid", "usb"])
def test_ten_plug_cycles_lose_and_leave_nothing(
    udc: int | None,
    make_board: MakeBoard,
    watch: DeviceWatch,
    library: HidLibrary,
    record_property: Callable[[str, object], None],
) -> None:
    cycles = plug_cycles(10, udc, make_board, watch, library, record_property)
    # By hand, on a machine that does nothing else, it is 1 s (below); what only looks now and then takes 10 s.
    assert undisturbed([c.ready - c.node for c in cycles]) <= 5.0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("udc", [None, 0], ids=["uhid", "usb"])
def test_200_plug_cycles_lose_and_leave_nothing(
    udc: int | None,
    make_board: MakeBoard,
    watch: DeviceWatch,
    library: HidLibrary,
    record_property: Callable[[str, object], None],
) -> None:
    cycles = plug_cycles(200, udc, make_board, watch, library, record_property)
    assert _p99([c.ready - c.node for c in cycles]) <= 1.0


@dataclass(frozen=True)
class Cycle:
    """Monotonic times of one replug."""

    plugged: float
    node: float  # the kernel made the device node
    listed: float
    ready: float


def plug_cycles(
    count: int,
    udc: int | None,
    make_board: MakeBoard,
    watch: DeviceWatch,
    library: HidLibrary,
    record_property: Callable[[str, object], None],
) -> list[Cycle]:
    """Each cycle: a key goes down, a picture is being sent, the plug is pulled; then all must come back."""
    board = make_board(UsbNames(serial="cycles"))
    board.udc = udc
    board.plug()
    wait_for_boards(watch, 1)
    events: list[BridgeEvent] = []
    with running_link(
        library,
        watch,
        events.append,
        options=replace(LINK_OPTIONS, answer_timeout_s=OPTIONS.answer_timeout_s),
    ) as link:
        cycles = [one_cycle(0, board, link, watch, events)]
        before = resources()
        cycles += [one_cycle(number, board, link, watch, events) for number in range(1, count)]
        after = resources()
    assert pressed(events) == released(events) == count
    name = "uhid" if udc is None else "usb"
    record_property(
        f"{count} plug cycles, {name}",
        f"plug to ready {_spread([c.ready - c.plugged for c in cycles])};"
        f" of that the kernel until the node is there {_spread([c.node - c.plugged for c in cycles])};"
        f" node to ready {_spread([c.ready - c.node for c in cycles])};"
        f" list to ready {_spread([c.ready - c.listed for c in cycles])};"
        f" threads and descriptors {before} -> {after}",
    )
    assert after == before
    return cycles


def resources() -> tuple[int, int]:
    """Threads and descriptors, without those that are open for a moment only: a list of devices under way."""
    samples = []
    for _ in range(20):
        samples.append((threading.active_count(), len(os.listdir("/proc/self/fd"))))
        time.sleep(0.02)
    return min(samples)


def one_cycle(
    number: int, board: Board, link: Link, watch: DeviceWatch, events: list[BridgeEvent]
) -> Cycle:
    picture = BitmapFrame(128, 32, bytes((number % 255 + 1,)) * 512)
    board.press(0x04)
    wait_until(lambda: pressed(events) == number + 1)
    board.unplug_at(3 + number % 20)
    link.show(picture)
    wait_until(lambda: released(events) == number + 1)
    wait_for_boards(watch, 0)
    before = link.stats.connections
    plugged = board.plug()
    [candidate] = wait_for_boards(watch, 1)
    listed = time.monotonic()
    wait_until(lambda: link.stats.connections > before, LONG_S)
    ready = time.monotonic()
    node = os.stat(candidate.path).st_ctime - (time.time() - time.monotonic())
    wait_until(lambda: board.panel() == picture)  # the picture that was cut off came after all
    return Cycle(plugged, node, listed, ready)


def pressed(events: list[BridgeEvent]) -> int:
    return sum(isinstance(event, KeyPressed) for event in events)


def released(events: list[BridgeEvent]) -> int:
    return sum(isinstance(event, KeyReleased) for event in events)


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) * 99 // 100, len(times) - 1)]


def _spread(times: list[float]) -> str:
    return f"median {statistics.median(times) * 1e3:.2f} ms, p99 {_p99(times) * 1e3:.2f} ms"
