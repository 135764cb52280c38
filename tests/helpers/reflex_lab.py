# SPDX-License-Identifier: Apache-2.0
"""A link on a virtual keyboard, turn by turn on the test's thread."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import BridgeEvent, LinkReady
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link import Link
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import LinkOptions, SessionIds
from firmware_bridge.protocol.frames import FrameType, decode
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from firmware_bridge.transport.wrapped import WrappedTransport

ASK = 1
ENTER = frozenset({int(Usage.ENTER)})
TEXT_INTERVAL_S = LinkOptions().text_interval_s


class WatchedTransport(WrappedTransport):
    """Does not wait, and keeps the texts that go out with the events that were told before."""

    def __init__(self, inner: Transport, lab: ReflexLab) -> None:
        super().__init__(inner)
        self._lab = lab

    def read(self, timeout_s: float) -> bytes | None:
        while self._lab.meanwhile:
            self._lab.meanwhile.popleft()()
        return super().read(1e-6)

    def write(self, report: bytes) -> None:
        super().write(report)
        frame = decode(report)
        if frame.type is FrameType.TEXT and frame.payload[0] == 0:
            # A run clears its row to the right of it.
            row = self._lab.row[: frame.payload[1]] + frame.payload[2:].decode()
            self._lab.row = row
            self._lab.texts.append((row, len(self._lab.told)))
            while self._lab.while_writing:
                self._lab.while_writing.popleft()()


class ReflexLab:
    """A link on a virtual keyboard, turn by turn on the test's thread, in invented time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.told: list[BridgeEvent] = []
        self.row = ""  # the first row of the display
        self.meanwhile: deque[Callable[[], object]] = deque()  # happens while the link waits
        self.while_writing: deque[Callable[[], object]] = deque()  # while its next text goes out
        self.texts: list[tuple[str, int]] = []
        self.keyboard = VirtualKeyboard(BoardConfig(), lambda: self.now)
        self.transport = WatchedTransport(VirtualTransport(self.keyboard), self)
        self.link = Link(lambda: self.transport, self.told.append, clock=lambda: self.now)
        self.transport.open()
        self._numbers = itertools.count()
        self.connect()

    def connect(self) -> None:
        """A new session, until it is ready."""
        self.session = Session(
            self.transport.report_length, SessionIds(7, 1), self._numbers, self.link._output,
            LinkOptions(), self.link._stats, lambda: 0.0,
        )  # fmt: skip
        self.turns(8)
        assert self.session.ready
        assert isinstance(self.told[-1], LinkReady)

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.link._turn(self.session, self.transport)

    def show(self, text: str) -> None:
        self.link.show(TextFrame((text,)))
        self.now += TEXT_INTERVAL_S
        self.turns(4)

    def expect(self, text: str, after: BridgeEvent | None = None) -> None:
        """A reflex for Enter and the ask key."""
        after = after or self.told[-1]
        self.link.set_reflex(Reflex(TextFrame((text,)), ENTER, frozenset({ASK}), after))
        self.turns(1)

    def last_texts(self) -> list[str]:
        texts = [text for text, _ in self.texts]
        self.texts.clear()
        return texts
