# SPDX-License-Identifier: Apache-2.0
"""How fast a model answers on this computer: an engine child of its own, one question, two figures."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.client import MODEL_ENGINE, EngineClient, EngineState
from engine.messages import Chat, Event, Failed, ModelLoaded, ReplyFinished, Turn
from engine.texts import Text, first_line

_QUESTION = "Write one sentence about a small house by the sea."
_MAX_TOKENS = 48
_LOAD_LIMIT_S = 300.0
_ANSWER_LIMIT_S = 120.0
_LOOK_UP_S = 0.1  # how often the person's Cancel is looked for


class SpeedTestError(Exception):
    """The model gave no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds to load, milliseconds to the first token, tokens a second after it (0 for a single token)."""

    load_s: float
    first_token_ms: float
    tokens_per_s: float


def measure_speed(
    model: Path,
    max_context: int,
    still_wanted: Callable[[], object],
    argv: Sequence[str] = MODEL_ENGINE,
) -> Speed:
    """Load `model` in a child, ask it a question, and end the child.

    `still_wanted` is called while waiting, and raises to stop the test.

    Raises:
        SpeedTestError: the child or the model failed.
    """
    events: queue.Queue[Event] = queue.Queue()
    failures: queue.SimpleQueue[str] = queue.SimpleQueue()

    def note(state: EngineState, detail: str) -> None:
        if state in (EngineState.FAILED, EngineState.RESTARTING):
            failures.put(first_line(detail))

    engine = EngineClient(events.put, note, argv=argv)
    started = time.perf_counter()
    engine.start(model, max_context)
    try:
        _wait(events, failures, still_wanted, ModelLoaded, _LOAD_LIMIT_S)
        load_s = time.perf_counter() - started
        turns = [Turn(role="user", content=_QUESTION)]
        engine.send(Chat(request=1, turns=turns, max_tokens=_MAX_TOKENS))
        last = _wait(events, failures, still_wanted, ReplyFinished, _ANSWER_LIMIT_S)
        assert isinstance(last, ReplyFinished)
        rest_ms = last.milliseconds - last.first_token_ms
        rate = (last.tokens - 1) / rest_ms * 1e3 if rest_ms > 0 else 0.0
        return Speed(load_s, last.first_token_ms, rate)
    finally:
        engine.stop()


def _wait(
    events: queue.Queue[Event],
    failures: queue.SimpleQueue[str],
    still_wanted: Callable[[], object],
    kind: type,
    limit_s: float,
) -> Event:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        still_wanted()
        try:
            event = events.get(timeout=_LOOK_UP_S)
        except queue.Empty:
            if not failures.empty():
                raise SpeedTestError(failures.get()) from None
            continue
        if isinstance(event, Failed):
            raise SpeedTestError(event.message)
        if isinstance(event, kind):
            return event
    raise SpeedTestError(Text("no answer within {limit_s:.0f} s.", limit_s=limit_s))
