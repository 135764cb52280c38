# SPDX-License-Identifier: Apache-2.0
"""Engines to talk to in tests: the server in a thread, or a real child behind EngineClient."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path

from engine.channel import Channel, ChannelClosedError
from engine.client import FAKE_ENGINE, MODEL_ENGINE, ClientLimits, EngineClient, EngineState
from engine.messages import (
    COMMANDS,
    EVENTS,
    Alive,
    Command,
    Event,
    Hello,
    LoadModel,
    ModelLoaded,
    ReplyGrew,
    ReplyReady,
    Shutdown,
)
from engine.server import Loader, serve

WAIT_S = 60.0


def argv_for(model: Path) -> tuple[str, ...]:
    """The engine for a model file, or for a script of the fake one."""
    return FAKE_ENGINE if model.suffix == ".json" else MODEL_ENGINE


class Talk:
    """Sends commands and keeps the events that come back."""

    def __init__(self, send: Callable[[Command], None]) -> None:
        self.send = send
        self.events: queue.Queue[Event] = queue.Queue()
        self._numbers = iter(range(1, 1_000_000))

    def number(self) -> int:
        """A fresh request number."""
        return next(self._numbers)

    def next(self) -> Event:
        """The next event."""
        return self.events.get(timeout=WAIT_S)

    def until_last(self, request: int) -> list[Event]:
        """All events up to the last one of `request`; asserts that none belongs to another request."""
        events = [self.next()]
        while isinstance(events[-1], ReplyGrew | ReplyReady):
            events.append(self.next())
        for event in events:
            assert not isinstance(event, Hello)
            assert event.request == request
        return events

    def ask(self, command: Command) -> Event:
        """Send a request and give its last event."""
        assert not isinstance(command, Shutdown)
        self.send(command)
        return self.until_last(command.request)[-1]


@contextmanager
def engine_in_thread(load: Loader) -> Iterator[Talk]:
    """The child's server loop in a thread of this process, its channel's other end in `Talk`."""
    near, far = Pipe()
    channel = Channel(near, EVENTS)
    talk = Talk(channel.send)

    def read() -> None:
        try:
            while True:
                event = channel.receive()
                if not isinstance(event, Alive):  # they come when they come
                    talk.events.put(event)
        except ChannelClosedError:
            return

    served = Channel(far, COMMANDS)
    server = threading.Thread(target=serve, args=(served, load, lambda code: None))
    reader = threading.Thread(target=read)
    server.start()
    reader.start()
    try:
        yield talk
    finally:
        channel.send(Shutdown())
        server.join(WAIT_S)
        served.close()
        reader.join(WAIT_S)
        channel.close()
        assert not server.is_alive()
        assert not reader.is_alive()


@contextmanager
def loaded_engine_in_thread(load: Loader) -> Iterator[Talk]:
    """As `engine_in_thread`, with its model loaded."""
    with engine_in_thread(load) as talk:
        loaded = talk.ask(LoadModel(request=talk.number(), path="default"))
        assert isinstance(loaded, ModelLoaded)
        yield talk


class Supervised(Talk):
    """An EngineClient and everything that it told."""

    def __init__(
        self,
        argv: tuple[str, ...] = FAKE_ENGINE,
        limits: ClientLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = EngineClient(
            lambda event: self.events.put(event),
            lambda state, reason: self.states.put((state, reason)),
            argv=argv,
            limits=limits or ClientLimits(),
            clock=clock,
        )
        super().__init__(self.client.send)  # type: ignore[arg-type]
        self.states: queue.Queue[tuple[EngineState, str]] = queue.Queue()

    def until(self, state: EngineState) -> str:
        """Wait for `state`; gives the reason that came with it."""
        while True:
            came, reason = self.states.get(timeout=WAIT_S)
            if came is state:
                return reason
            assert came is not EngineState.FAILED, reason

    def start(self, model: Path | str = "default", max_context: int = 2048) -> ModelLoaded:
        """Start and wait until the model is loaded."""
        self.client.start(model, max_context)
        self.until(EngineState.READY)
        loaded = self.next()
        assert isinstance(loaded, ModelLoaded)
        return loaded


@contextmanager
def supervised(
    argv: tuple[str, ...] = FAKE_ENGINE,
    limits: ClientLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Supervised]:
    """A client that is stopped at the end."""
    talk = Supervised(argv, limits, clock)
    try:
        yield talk
    finally:
        talk.client.stop()
