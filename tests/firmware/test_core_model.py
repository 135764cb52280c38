# SPDX-License-Identifier: Apache-2.0
"""The core against a small model of ring, subscription and waiting answer, under random operations."""

from __future__ import annotations

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from firmware_bridge.protocol.frames import Frame, FrameType
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind
from firmware_bridge.protocol.messages import (
    Ack,
    EventKinds,
    NakReason,
    Parts,
)
from tests.helpers.bench import Bench

RING, TIMEOUT_MS, EVENTS_PER_FRAME, FRAMES_PER_TASK = 32, 3000, 3, 4

Sent = tuple[str, object]


class CoreMachine(RuleBasedStateMachine):
    """Every rule does one thing to the C core and to the model; what went out must be the same."""

    def __init__(self) -> None:
        super().__init__()
        self.owner: int | None = None
        self.kinds = EventKinds(0)
        self.began = 0
        self.renewed = 0
        self.capturing = False
        self.ring: deque[KeyRecord] = deque()
        self.index = 0
        self.dropped = 0
        self.waiting: Sent | None = None
        self.expected: list[Sent] = []
        self.got: list[Sent] = []

    @initialize(now=st.sampled_from([0, 12345, 2**32 - 2000, 2**31 - 1000]))
    def start(self, now: int) -> None:
        self.bench = Bench(now=now)

    # What goes out, as the model says and as the core did it.

    def _answer(self, answer: Sent) -> None:
        if self.bench.link_open:
            self.expected.append(answer)
        else:
            self.waiting = answer

    def _flush_answer(self) -> bool:
        if self.waiting is not None and self.bench.link_open:
            self.expected.append(self.waiting)
            self.waiting = None
        return self.waiting is None

    def _forget(self) -> None:
        self.owner, self.kinds = None, EventKinds(0)
        self.capturing = False
        self.ring.clear()
        self.index = self.dropped = 0

    def _notice_silence(self) -> None:
        if self.owner is not None and self.bench.now - self.renewed >= TIMEOUT_MS:
            self._forget()

    def _collect(self, frames: list[Frame]) -> None:
        for frame in frames:
            if frame.type == FrameType.KEY:
                report = KeyReport.unpack(frame.payload)
                self.got.append(("keys", (frame.client, report.first_index, report.dropped)))
                self.got += [("event", event) for event in report.events]
            else:
                self.got.append((FrameType(frame.type).name, (frame.client, frame.payload)))

    def _frame(self, kind: FrameType, payload: bytes, client: int) -> bool:
        """Sends the frame to the core; True: the model must carry it out."""
        self._notice_silence()
        done = self._flush_answer()
        self._collect(self.bench.raw(kind, payload, client))
        return done

    def _ack(self, kind: FrameType, client: int) -> None:
        self._answer(("ACK", (client, Ack(kind, self.began & 0xFFFF).pack())))

    def _busy(self, kind: FrameType, client: int) -> None:
        self._answer(("NAK", (client, bytes((kind, NakReason.BUSY)))))

    # Operations.

    @rule(client=st.integers(1, 2), kinds=st.integers(0, 15).map(EventKinds))
    def subscribe(self, client: int, kinds: EventKinds) -> None:
        if not self._frame(FrameType.SUBSCRIBE, bytes((kinds,)), client):
            return
        if self.owner not in (None, client):
            self._busy(FrameType.SUBSCRIBE, client)
            return
        if self.owner is None:
            self.began = self.bench.now
        self.owner, self.kinds, self.renewed = client, kinds, self.bench.now
        self.capturing = self.capturing and EventKinds.CAPTURES in kinds
        self._ack(FrameType.SUBSCRIBE, client)

    @rule(client=st.integers(1, 2), parts=st.sampled_from([Parts.DISPLAY, Parts.SUBSCRIPTION]))
    def release(self, client: int, parts: Parts) -> None:
        if not self._frame(FrameType.RELEASE, bytes((parts,)), client):
            return
        if self.owner not in (None, client):
            self._busy(FrameType.RELEASE, client)
            return
        if parts == Parts.SUBSCRIPTION:
            self._forget()
        self._ack(FrameType.RELEASE, client)

    @rule(count=st.integers(1, 20), keycode=st.integers(0, 65535), pressed=st.booleans())
    def keys(self, count: int, keycode: int, pressed: bool) -> None:
        for number in range(count):
            taken = self.bench.core.key_event(number, 3, keycode, pressed, self.bench.now)
            device_ms = self.bench.now % 65536
            event = KeyRecord(pressed, RecordKind.KEY, number, 3, keycode, device_ms)
            assert taken == self._record(EventKinds.KEYS, event)

    @rule(number=st.integers(0, 255), pressed=st.booleans())
    def macro(self, number: int, pressed: bool) -> None:
        taken = self.bench.core.macro_event(number, pressed, self.bench.now)
        event = KeyRecord(pressed, RecordKind.MACRO, number, 0, 0, self.bench.now % 65536)
        assert taken == self._record(EventKinds.MACROS, event)

    @rule(count=st.integers(1, 20), pressed=st.booleans())
    def captured_keys(self, count: int, pressed: bool) -> None:
        for number in range(count):
            taken = self.bench.core.captured_key_event(number, 3, 4, pressed, self.bench.now)
            device_ms = self.bench.now % 65536
            event = KeyRecord(pressed, RecordKind.KEY, number, 3, 4, device_ms, captured=True)
            assert taken == self._record(EventKinds.KEYS, event)

    @rule()
    def begin_capture(self) -> None:
        event = KeyRecord(True, RecordKind.CAPTURE, 0, 0, 0, self.bench.now % 65536)
        expected = self.capturing or self._record(EventKinds.CAPTURES, event, kept=1)
        assert self.bench.core.begin_capture(self.bench.now) == expected
        self.capturing = expected

    @rule()
    def end_capture(self) -> None:
        self.bench.core.end_capture(self.bench.now)
        if self.capturing:
            event = KeyRecord(False, RecordKind.CAPTURE, 0, 0, 0, self.bench.now % 65536)
            assert self._record(EventKinds.CAPTURES, event, kept=0)
        self.capturing = False

    @rule()
    def accept_key(self) -> None:
        """Nothing is shown here, so nothing is typed; the host is told so."""
        assert self.bench.core.accept(self.bench.now) == ""
        event = KeyRecord(True, RecordKind.ACCEPT, 0, 0, 0, self.bench.now % 65536)
        self._record(EventKinds.TYPING, event)

    def _record(self, kind: EventKinds, event: KeyRecord, kept: int | None = None) -> bool:
        """`kept` places stay free for the end of a capture."""
        if not self.kinds & kind:
            return False
        if len(self.ring) + (int(self.capturing) if kept is None else kept) >= RING:
            self.dropped = min(self.dropped + 1, 255)
            return False
        self.ring.append(event)
        return True

    @rule()
    def task(self) -> None:
        self._collect(self.bench.task())
        self._notice_silence()
        if not self._flush_answer() or not self.bench.link_open:
            return
        for _ in range(FRAMES_PER_TASK):
            if not self.ring:
                return
            self.expected.append(("keys", (self.owner, self.index, self.dropped)))
            self.dropped = 0
            for _ in range(min(EVENTS_PER_FRAME, len(self.ring))):
                self.expected.append(("event", self.ring.popleft()))
                self.index = (self.index + 1) % 65536

    @rule(is_open=st.booleans())
    def link(self, is_open: bool) -> None:
        self.bench.link_open = is_open

    @rule(passed=st.sampled_from([1, 500, 999, 1500, 2999, 3000]))
    def wait(self, passed: int) -> None:
        self.bench.now += passed

    @invariant()
    def same(self) -> None:
        assert self.got == self.expected
        assert self.bench.core.capturing == self.capturing


CoreMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestCore = CoreMachine.TestCase
