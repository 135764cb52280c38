# SPDX-License-Identifier: Apache-2.0
"""From the trigger to the first report of the reply, on a virtual keyboard with everything real behind it.

The keyboard runs the firmware's C core; link, companion and engine child are those of `thock run`. A time
begins when the firmware sends the report with the trigger, and ends when the transport's write of the
reply's first report has returned. What the simulated keyboard takes before is told apart: a real one does
not share a processor with us.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from app.bench.hop import BareHop
from app.bench.typist import Trace
from app.companion.core import Companion, Mailbox
from app.companion.cycles import pass_over_what_lives
from app.companion.macros import MacroKey
from app.companion.messages import Message
from app.companion.ready import ReadyStats
from app.companion.state import CompanionState
from app.settings import ChatSettings, ModeName, Settings
from engine.client import EngineClient, EngineState
from engine.messages import ReplyGrew, ReplyReady, SuggestionsReady
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link import Link
from firmware_bridge.protocol.frames import FrameType, type_of
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from firmware_bridge.transport.wrapped import WrappedTransport

_DISPLAY = (FrameType.TEXT, FrameType.BITMAP)
_LOOK_S = 0.03  # between two looks at the state: this thread must not come in the way of the others
_START_S = 180.0
_ANSWER_S = 60.0
_REST_S = 0.3  # between a reply and the next question


@dataclass(frozen=True, slots=True)
class Shot:
    """One trigger. `is_hit`: the reply's first report went out before the engine said anything.

    `gap_s` is the time between the last key and the trigger, `seconds` from the trigger's report to the
    reply's first report written, `keyboard_s` from the press of the trigger to its report. `ready_s` is how
    long after the last key the reply's first token was there, NaN if it was not before the trigger. `hop_s`:
    what the machine took a moment later to wake a thread that does nothing else.
    """

    gap_s: float
    is_hit: bool
    seconds: float
    keyboard_s: float = 0.0
    ready_s: float = math.nan
    hop_s: float = math.nan


class BenchError(Exception):
    """The bench cannot go on; the message says why."""


class TriggerStation:
    """Keyboard, link, companion and engine, wired once. Start it with `with`."""

    def __init__(self, model: Path, engine_argv: Sequence[str], settings: Settings) -> None:
        self._model = model
        self._settings = settings
        self._is_chat = settings.mode is ModeName.CHAT
        self._keyboard = VirtualKeyboard(BoardConfig(), on_send=self._note_sent)
        self._mailbox = _TimedMailbox()
        self._last_press_at = math.nan
        self._sent_at: float | None = None
        self._written: list[float] = []
        self._engine = EngineClient(
            self._mailbox.post, self._mailbox.engine_changed, argv=engine_argv
        )
        self._link = Link(self._open_transport, self._mailbox.post)
        self._companion = Companion(self._mailbox, self._link, self._engine, settings)
        self._companion.subscribe(pass_over_what_lives())
        self._hop = BareHop()

    def __enter__(self) -> TriggerStation:
        self._hop.start()
        self._companion.start()
        self._link.start()
        settings = self._settings
        self._engine.start(
            self._model, settings.max_context, window=settings.suggest.context_tokens
        )
        try:
            self._wait(lambda s: s.engine is EngineState.READY and s.keyboard is not None, _START_S)
        except BenchError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._companion.stop()
        self._link.stop()
        self._engine.stop()
        self._hop.stop()

    @property
    def stats(self) -> ReadyStats:
        """What was ready so far, and what it cost."""
        return self._companion.state.ready

    @property
    def mode(self) -> ModeName:
        return self._settings.mode

    @property
    def model(self) -> str:
        return self._companion.state.model

    def shoot(self, trace: Trace) -> Shot:
        """Type a question, ask it, and wait for the whole reply.

        Raises:
            BenchError: keys were lost, or no reply came.
        """
        still_down = self._type(trace)
        before = self._companion.state
        self._mailbox.replied_at = None
        ready_s = self._mailbox.ready_at - self._last_press_at
        self._written.clear()
        self._sent_at = None
        pressed_at = time.perf_counter()
        if self._is_chat:
            self._keyboard.press(Usage.ENTER)
        else:
            self._keyboard.macro(MacroKey.ASK)
        state = self._wait(lambda s: s.answered > before.answered, _ANSWER_S)
        time.sleep(_LOOK_S)
        for usage in (*still_down, Usage.ENTER):
            self._keyboard.release(usage)
        if not self._is_chat:
            self._tap(Usage.RIGHT)  # ends the text: the next one begins empty
        self._wait(lambda s: not s.is_busy, _ANSWER_S)
        replied_at = self._mailbox.replied_at
        is_ready = state.latency is not None and state.latency.is_ready
        written = [at for at in self._written if is_ready or replied_at is None or at > replied_at]
        sent_at = self._sent_at
        if not written or sent_at is None:
            raise BenchError("the reply was not sent to the keyboard")
        is_hit = is_ready and (replied_at is None or written[0] < replied_at)
        time.sleep(_REST_S)  # everything sleeps again, as before the trigger
        hop_s = self._hop.seconds()
        if self._companion.state.dropped:
            raise BenchError("the virtual keyboard lost keys")
        return Shot(
            trace.trigger_gap_s, is_hit, written[0] - sent_at, sent_at - pressed_at,
            ready_s if ready_s > 0 else math.nan, hop_s,
        )  # fmt: skip

    def _tap(self, usage: int) -> None:
        self._keyboard.press(usage)
        self._keyboard.release(usage)

    def _type(self, trace: Trace) -> list[int]:
        """Presses and releases in their order; fast typists press a key before they let go of the last.

        Ends when the trigger is due; gives the keys that are still down then.
        """
        started = time.monotonic()
        at = 0.0
        events: list[tuple[float, int, int, bool]] = []
        for press in trace.presses:
            at += press.gap_s
            for number, (usage, is_down) in enumerate(press.key.actions()):
                heapq.heappush(
                    events, (at if is_down else at + press.hold_s, number, usage, is_down)
                )
        while events and events[0][0] <= at + trace.trigger_gap_s:
            due, _, usage, is_down = heapq.heappop(events)
            time.sleep(max(started + due - time.monotonic(), 0.0))
            if is_down:
                self._mailbox.ready_at = math.nan
                self._last_press_at = time.perf_counter()
                self._keyboard.press(usage)
            else:
                self._keyboard.release(usage)
        time.sleep(max(started + at + trace.trigger_gap_s - time.monotonic(), 0.0))
        return [usage for _, _, usage, _ in sorted(events)]

    def _wait(self, done: Callable[[CompanionState], bool], timeout_s: float) -> CompanionState:
        deadline = time.monotonic() + timeout_s
        while True:
            time.sleep(_LOOK_S)
            state = self._companion.state
            if done(state):
                return state
            if state.engine is EngineState.FAILED or time.monotonic() > deadline:
                raise BenchError(state.engine_detail or state.error or "no answer in time")

    def _note_sent(self, report: bytes) -> None:
        if self._sent_at is None and type_of(report) == FrameType.KEY:
            self._sent_at = time.perf_counter()

    def _open_transport(self) -> Transport:
        return _TimedTransport(VirtualTransport(self._keyboard), self._written)


class _TimedTransport(WrappedTransport):
    """Notes when a report for the display has been written."""

    def __init__(self, inner: Transport, written: list[float]) -> None:
        super().__init__(inner)
        self._written = written

    def write(self, report: bytes) -> None:
        super().write(report)
        if type_of(report) in _DISPLAY:
            self._written.append(time.perf_counter())


class _TimedMailbox(Mailbox):
    """Notes when the engine's first word about a question came in, asked for or not."""

    replied_at: float | None = None
    ready_at = math.nan

    def post(self, message: Message) -> None:
        if isinstance(message, ReplyGrew | SuggestionsReady) and self.replied_at is None:
            self.replied_at = time.perf_counter()
        elif isinstance(message, ReplyReady) and len(message.tokens) == 1:
            self.ready_at = time.perf_counter()
        super().post(message)


def bench_settings(mode: ModeName) -> Settings:
    """The usual ones, but for a chat without a history: each question costs the same."""
    return Settings(mode=mode, chat=ChatSettings(history_turns=0, max_tokens=24))
