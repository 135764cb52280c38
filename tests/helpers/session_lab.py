# SPDX-License-Identifier: Apache-2.0
"""A link session against a real firmware core in invented time, with a wire that can be cut."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

import pytest

from firmware_bridge.events import BridgeEvent
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.link_output import Output
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import (
    LinkOptions,
    LinkProblem,
    LinkStats,
    SessionEndedError,
    SessionIds,
)
from firmware_bridge.protocol.frames import Frame, decode, encode
from firmware_bridge.protocol.messages import Message

Wire = Callable[[bytes], list[bytes]]
"""What becomes of a report on its way: [] lost, [report] carried, more: other reports too."""


def carry(report: bytes) -> list[bytes]:
    return [report]


def lose(report: bytes) -> list[bytes]:
    return []


class SessionLab:
    """`now` and `asleep` in seconds. `sent` holds the frames that the session wrote, lost ones too."""

    def __init__(
        self,
        config: BoardConfig | None = None,
        options: LinkOptions | None = None,
        client: int = 7,
    ) -> None:
        self.now = 1000.0
        self.asleep = 0.0  # how long the computer has slept
        self.options = options or LinkOptions()
        self.stats = LinkStats()
        self.output = Output(self.options)
        self.seqs = itertools.count()
        self.client = client
        self.to_keyboard: Wire = carry
        self.to_host: Wire = carry
        self.queue: deque[bytes] = deque()
        self.sent: list[Frame] = []
        self.events: list[BridgeEvent] = []
        self.config = config or BoardConfig()
        self.core = FirmwareCore(self.config, self._send)
        self.connect()

    @property
    def ms(self) -> int:
        return int(self.now * 1000)

    def connect(self) -> None:
        """A new session with the same firmware, as after a reconnect."""
        self.queue.clear()
        self.session = Session(
            self.config.report_length,
            SessionIds(self.client, 0x12345678),
            self.seqs,
            self.output,
            self.options,
            self.stats,
            lambda: self.asleep,
        )

    def power_cycle(self) -> None:
        """The firmware starts anew while the handle stays open."""
        self.core = FirmwareCore(self.config, self._send)

    def settle(self) -> None:
        """Write and read until nothing is left to do at this moment."""
        for _ in range(1000):
            if not self._exchange():
                return
        raise AssertionError("the session never comes to rest")

    def run(self, seconds: float, step_s: float = 0.01) -> None:
        """Let time pass."""
        end = self.now + seconds
        self.settle()
        while self.now < end - 1e-9:
            due = self.session.deadline()
            self.now = min(self.now + step_s, end, due if due > self.now else end)
            self.core.task(self.ms)
            self.settle()

    def press(self, keycode: int, row: int = 0, column: int = 0) -> None:
        self.key(keycode, row, column, pressed=True)

    def key(self, keycode: int, row: int, column: int, *, pressed: bool) -> None:
        self.core.key_event(row, column, keycode, pressed, self.ms)
        self.core.task(self.ms)

    def give(self, report: bytes) -> None:
        """Hand a report straight to the session."""
        self.events += self.session.take(report, self.now)

    def _exchange(self) -> bool:
        moved = False
        self.events += self.session.look_around(self.now)
        report = self.session.next_report(self.now)
        if report is not None:
            moved = True
            self.session.written(self.now)
            self.sent.append(decode(report))
            for carried in self.to_keyboard(report):
                self._receive(carried)
                self.core.task(self.ms)
        while self.queue:
            moved = True
            for carried in self.to_host(self.queue.popleft()):
                self.give(carried)
        return moved

    def _receive(self, report: bytes) -> None:
        self.core.receive(report, self.ms)

    def _send(self, report: bytes) -> bool:
        self.queue.append(report)
        return True


def ready_lab(config: BoardConfig | None = None) -> SessionLab:
    """A session after its handshake; `sent` is empty."""
    lab = SessionLab(config)
    lab.settle()
    assert lab.session.ready
    lab.sent.clear()
    return lab


def from_keyboard(lab: SessionLab, message: Message, seq: int) -> bytes:
    """A report that carries `message` to the client of the lab."""
    return encode(Frame(message.type, lab.client, seq, message.pack()), lab.config.report_length)


def ended(lab: SessionLab, seconds: float) -> LinkProblem:
    """Why the session ends within `seconds`, which it must."""
    with pytest.raises(SessionEndedError) as caught:
        lab.run(seconds)
    return caught.value.problem
