# SPDX-License-Identifier: Apache-2.0
"""One raw HID interface that several programs have open, in invented time.

The device takes reports one after the other and sends every answer to every open handle, as hidraw and the
Windows HID class do. Time passes only while somebody reads or sleeps, so code that waits runs as it is.
The Vial GUI is a generator that follows its sources; for the VIA app see `via_app`.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from firmware_bridge.neighbours import Sign
from firmware_bridge.transport.base import DeviceIdentity
from tests.helpers.others import FakeOthers
from tests.helpers.via_peers import REPORT_LENGTH, Peer

Device = Callable[[bytes, float], list[bytes]]
"""What comes back for a report at a time, in seconds."""

# Seconds. Measured with vial-gui 9bb3c6b and a HID library that does nothing: 4.8 to 5.6 from its start to its
# first open, 0.00014 to 0.00019 from that open to the next, 0.00004 from there to the first request. A release
# may start faster. How long libudev takes to list the devices: 0.8 to 10, by what an emulated machine needed.
VIAL_STARTS_S = (0.5, 6.0)
VIAL_LISTS_S = (0.0008, 0.01)
VIAL_CHOOSES_S = 0.00015
VIAL_ASKS_S = 0.00004
VIAL_WAITS_S = 0.5

_VERSION = 0x01  # the question for VIA's version, with which both begin (vial-gui keyboard_comm.py)


@dataclass(frozen=True)
class Answer:
    """A report on its way to all handles; `asked_by` wrote the request at `asked_at`."""

    report: bytes
    asked_by: object
    asked_at: float


class Bus:
    """The cable and the device behind it."""

    def __init__(self, device: Device, dice: Random) -> None:
        self.now = 100.0
        self.handles: list[Handle] = []
        self.dice = dice
        self._device = device
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._free_at = 0.0
        self.asking: tuple[object, float] = (None, 0.0)
        """Who wrote the report that the device has now, and when."""

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (max(time, self.now), next(self._order), action))

    def run_until(self, time: float, done: Callable[[], object] = lambda: False) -> None:
        """Let time pass up to `time`, or until `done`."""
        while not done():
            if not self._agenda or self._agenda[0][0] > time:
                self.now = max(self.now, time)
                return
            self.now, _, action = heapq.heappop(self._agenda)
            action()

    def sleep(self, seconds: float) -> None:
        self.run_until(self.now + seconds)

    def write(self, writer: object, report: bytes) -> None:
        """The device takes it after what it has to do already; USB and firmware need 0.5 to 4 ms."""
        asked_at = self.now
        self._free_at = max(self._free_at, self.now) + self.dice.uniform(0.0005, 0.004)

        def answer() -> None:
            self.asking = writer, asked_at
            for answered in self._device(report.ljust(REPORT_LENGTH, b"\0"), self.now):
                self.send(Answer(answered, writer, asked_at))

        self.at(self._free_at, answer)

    def send(self, answer: Answer) -> None:
        for handle in self.handles:
            handle.queue.append((self.now, answer))
            handle.notify()


class Handle:
    """One open file on the interface."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.queue: deque[tuple[float, Answer]] = deque()
        self.notify: Callable[[], None] = lambda: None

    def open(self) -> None:
        self.queue.clear()
        self.bus.handles.append(self)

    def close(self) -> None:
        self.bus.handles.remove(self)


class BusTransport:
    """Our handle, as a Transport. `writes` are the times of our writes, `read_at` that of each report."""

    wakeable = True
    report_length = REPORT_LENGTH
    identity = DeviceIdentity("hid", 0xFEED, 1, "", "usb-1")

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._handle = Handle(bus)
        self.foreign_read: list[float] = []
        self.writes: list[float] = []

    def wake(self) -> None: ...

    def open(self) -> None:
        self._handle.open()

    def read(self, timeout_s: float) -> bytes | None:
        queue = self._handle.queue
        self._bus.run_until(self._bus.now + timeout_s, lambda: queue)
        if not queue:
            return None
        _, answer = queue.popleft()
        if answer.asked_by is not self and answer.asked_by is not None:
            self.foreign_read.append(self._bus.now)
        return answer.report

    def write(self, report: bytes) -> None:
        self.writes.append(self._bus.now)
        self._bus.write(self, report)

    def close(self) -> None:
        self._handle.close()


Script = Iterator[tuple[float, bytes]]
"""How long the program thinks before a request, in seconds, and the request."""


@dataclass
class WrongAnswer:
    """A report that the program took for its answer although it was not."""

    answer: Answer
    seen_at: float


@dataclass
class Program:
    """Another program with the keyboard, which lives through `_run` in the bus's time.

    What the system tells of it, `FakeOthers` for our side; `opened_at` is the time of its own open. `version`
    is that of the VIA protocol that the keyboard speaks.
    """

    bus: Bus
    script: Script
    version: int
    wrong: list[WrongAnswer] = field(default_factory=list, init=False)
    shifted: int = field(default=0, init=False)  # answers to an earlier request of its own
    right: int = field(default=0, init=False)
    # Reports of ours that said what the answer would have said.
    as_good: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.handle = Handle(self.bus)
        self.handle.notify = self._came
        self.others = FakeOthers()
        self.opened_at = float("inf")
        self._asked_at = float("nan")
        self._steps = self._run()

    @property
    def is_open(self) -> bool:
        return self.others.program is not None

    @property
    def has_closed(self) -> bool:
        return self.opened_at < self.bus.now and not self.is_open

    def start(self, at: float) -> None:
        self.bus.at(at, self._advance)

    def _run(self) -> Generator[None, None, None]:
        raise NotImplementedError

    def _came(self) -> None:
        """The kernel has a report for it."""
        raise NotImplementedError

    def _advance(self) -> None:
        next(self._steps, None)

    def _judge(self, request: bytes, answer: Answer) -> None:
        """What the program takes for the answer to its newest request."""
        version = bytes((_VERSION, *self.version.to_bytes(2, "big")))
        if answer.asked_by is self and answer.asked_at == self._asked_at:
            self.right += 1
        elif answer.asked_by is self:
            self.shifted += 1
        elif request[0] == _VERSION and answer.report[:3] == version:
            self.as_good += 1
        else:
            self.wrong.append(WrongAnswer(answer, self.bus.now))

    def _wait(self, seconds: float) -> Generator[None, None, None]:
        resume_at = self.bus.now + seconds
        self.bus.at(resume_at, self._advance)
        while self.bus.now < resume_at:
            yield


class VialGui(Program):
    """It takes the oldest report for its answer, whatever it is, and waits 0.5 s (util.py, hid_send)."""

    def _run(self) -> Generator[None, None, None]:
        yield from self._begin()
        for think_s, request in self.script:
            yield from self._wait(think_s)
            self._asked_at = self.bus.now
            self.bus.write(self, request)
            give_up_at = self.bus.now + VIAL_WAITS_S
            self.bus.at(give_up_at, self._advance)
            while not self.handle.queue and self.bus.now < give_up_at:
                yield
            if self.handle.queue:
                self._judge(request, self.handle.queue.popleft()[1])
        self.handle.close()
        self.others.program = None

    def _begin(self) -> Generator[None, None, None]:
        """It starts, lists the devices, opens each and closes it, and opens the chosen one."""
        dice = self.bus.dice
        self.others.program, self.others.come = "Vial", Sign.STARTED
        yield from self._wait(dice.uniform(*VIAL_STARTS_S))
        self.others.come = Sign.LISTED
        yield from self._wait(dice.uniform(*VIAL_LISTS_S))
        self.others.come = Sign.OPENED
        yield from self._wait(VIAL_CHOOSES_S)
        self.handle.open()
        self.opened_at = self.bus.now
        self.others.come = Sign.OPENED
        yield from self._wait(VIAL_ASKS_S)
        self._look_again()

    def _look_again(self) -> None:
        """Its thread that looks for keyboards (autorefresh_thread.py) opens each once a second."""
        if self.is_open:
            self.others.come = Sign.OPENED
            self.bus.at(self.bus.now + 1.05, self._look_again)

    def _came(self) -> None:
        self._advance()


def vial_gui(dice: Random, busy_s: float = 20.0) -> Script:
    """Connect and load everything, then what a person does (protocol/keyboard_comm.py, reload)."""
    yield 0.0, b"\x01"
    yield 0.00001, b"\xfe\x00"
    yield 0.001, b"\xfe\x01"
    for block in range(22):
        yield 0.001, b"\xfe\x02" + block.to_bytes(4, "little")
    yield 0.001, b"\x11"
    for offset in range(0, 280, 28):
        yield 0.001, bytes((0x12, offset >> 8, offset & 255, 28))
    yield 0.001, b"\x02\x02"
    for request in (b"\x0c", b"\x0d", b"\xfe\x05"):
        yield 0.001, request
    spent_s = 0.0
    while spent_s < busy_s:
        think_s = dice.choice((0.02, 0.3, dice.uniform(1, 12)))
        spent_s += think_s
        yield think_s, bytes((0x05, 0, dice.randrange(4), dice.randrange(8), 0, 4))


def device_of(peer: Peer) -> Device:
    """The peer without its trap: what others may do, they do."""

    def answer(report: bytes, now: float) -> list[bytes]:
        data = bytearray(report)
        return [bytes(data)] if peer.answer(data) else []

    return answer
