# SPDX-License-Identifier: Apache-2.0
"""The companion: one mailbox, and one thread that owns all state.

Everything that happens outside comes in through `Mailbox.post`, which never waits; everything that
the companion does goes out through its ports. So nobody waits for the engine, and no lock is needed.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from app.companion.machine import CompanionMachine
from app.companion.messages import EngineChanged, Message, Stop
from app.companion.own_files import OwnFiles
from app.companion.ports import EnginePort, KeyboardPort
from app.companion.state import CompanionState
from app.settings import Settings
from engine.client import EngineState
from engine.failures import name_of_error
from firmware_bridge.inbox import Inbox

# After an error, time-driven work waits this long, so that one that comes back does not spin.
REST_S = 1.0

_log = logging.getLogger(__name__)

Subscriber = Callable[[CompanionState], None]


class Mailbox:
    """Messages to the companion in the order of their arrival. Any thread may post."""

    def __init__(self) -> None:
        self._queue: Inbox[Message] = Inbox()

    def post(self, message: Message) -> None:
        """Leave a message; returns at once. Fits `Link`'s listener and `EngineClient`'s `on_event`."""
        self._queue.put(message)

    def engine_changed(self, state: EngineState, detail: str) -> None:
        """Leave an EngineChanged. Fits `EngineClient`'s `on_state`."""
        self._queue.put(EngineChanged(state, detail))

    def take(self, timeout_s: float | None) -> Message | None:
        """The oldest message; None if none came in `timeout_s` seconds (None: wait for ever)."""
        try:
            return self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Companion:
    """Ties a keyboard to an engine. Neither is started, stopped or closed here.

    Subscribers get each new state on the companion's thread and must return soon; they may not
    change the companion but by posting to its mailbox. `own`: where the person's own files are.

    Raises (by the constructor):
        ValueError: there is no keyboard layout of the name in `settings`.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        keyboard: KeyboardPort,
        engine: EnginePort,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        own: OwnFiles = OwnFiles(),  # noqa: B008  immutable
    ) -> None:
        self._mailbox = mailbox
        self._machine = CompanionMachine(keyboard, engine, settings, clock, own)
        self._clock = clock
        self._rest_until = float("-inf")
        self._subscribers: tuple[Subscriber, ...] = ()
        self._state = self._machine.state()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> CompanionState:
        """The newest published state."""
        return self._state

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with the present state now, and with each new one. Call before `start`."""
        self._subscribers = (*self._subscribers, subscriber)
        subscriber(self._state)

    def start(self, on_end: Callable[[], None] = lambda: None) -> None:
        """Start the thread. It ends after a Stop, and calls `on_end` as the last thing."""

        def live() -> None:
            try:
                self.run()
            finally:
                on_end()

        self._thread = threading.Thread(target=live, name="companion", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Post Stop and wait for the thread. Safe to call twice."""
        self._mailbox.post(Stop())
        if self._thread is not None:
            self._thread.join(timeout_s)

    def run(self) -> None:
        """The thread: take a message or wait for the next timer, until Stop."""
        while not self._machine.is_stopped:
            self.step(self._mailbox.take(self.wait_s()))

    def wait_s(self) -> float | None:
        """Seconds until something is to be done without a message; None: nothing is."""
        deadline = self._machine.deadline
        if deadline is None:
            return None
        return max(max(deadline, self._rest_until) - self._clock(), 0.0)

    def step(self, message: Message | None) -> None:
        """Take one message (None: time has passed), send what changed, publish the state."""
        if message is not None:
            self._guarded(lambda: self._machine.handle(message))
        if self._clock() >= self._rest_until and not self._guarded(self._machine.wake):
            self._rest_until = self._clock() + REST_S
        state = self._machine.state()
        if state != self._state:
            self._state = state
            self._publish()

    def _guarded(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001  the thread's top
            # Neither the text nor the traceback of an exception is logged: they may hold content.
            name = name_of_error(error)
            _log.error("unexpected %s", name)
            self._machine.failed(name)
            return False
        return True

    def _publish(self) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(self._state)
            except Exception as error:  # noqa: BLE001  it is not ours, and runs on our thread
                _log.error("a subscriber is dropped after %s", name_of_error(error))
                self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)
