# SPDX-License-Identifier: Apache-2.0
"""The companion's end of the engine: starts the child, hands commands over, restarts it when it dies.

Imports neither torch nor numpy, so that the companion stays small and starts at once.
"""

from __future__ import annotations

import enum
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from engine.channel import ChannelClosedError, ChannelError, ProtocolVersionError, encode
from engine.child import EngineChild
from engine.door import ChildStartError
from engine.errors import EngineUnavailableError
from engine.failures import name_of_error
from engine.messages import (
    DEFAULT_WINDOW,
    Alive,
    Cancel,
    Chat,
    Choose,
    Complete,
    Device,
    Event,
    Failed,
    Forget,
    Hello,
    LoadModel,
    ModelLoaded,
    Prepare,
    RemoteServer,
    ReplyGrew,
    ReplyReady,
    Residency,
    Shutdown,
    Suggest,
)
from engine.restarts import RestartWindow
from engine.texts import Text, as_text, first_line, log_of, with_log

# -P: the code of Thock, never what the folder that it was started in happens to hold.
MODEL_ENGINE = (sys.executable, "-P", "-m", "engine.server")
FAKE_ENGINE = (*MODEL_ENGINE, "--fake")
# The client's own LoadModel. Requests of callers are numbered from 1.
LOAD_REQUEST = 0
# Requests without their last event. More are refused: whoever asks that often reads no answers.
MAX_OPEN = 256
_LOOK_S = 1.0

Request: TypeAlias = Suggest | Chat | Complete | Prepare | Choose | Forget

_log = logging.getLogger(__name__)


class EngineState(enum.Enum):
    """Where the engine child is in its life. Requests are taken in all states but STOPPED and FAILED."""

    STOPPED = "stopped"
    STARTING = "starting"  # the process starts
    LOADING = "loading"  # connected, reads the model
    READY = "ready"
    RESTARTING = "restarting"  # died; the next one starts
    FAILED = "failed"  # not started again until `start` is called


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Time limits in seconds, and how often a child that died is started again.

    `silence_s`: a child that gave no sign of life for so long, though something was asked of it, hangs.
    """

    connect_s: float = 20.0
    silence_s: float = 10.0
    exit_s: float = 2.0
    restarts: int = 3
    restart_window_s: float = 600.0


class _HungError(Exception):
    """The child is there and does nothing."""


class _GiveUpError(Exception):
    """The next child would fail in the same way."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class EngineClient:
    """One engine child at a time, supervised.

    `on_event` gets the model's ModelLoaded and, for each request, exactly one last event (Failed if the
    child died), with ReplyGrew or ReplyReady before it. `on_state` gets each new state and, where something
    went wrong, the reason. Both are called on the client's own thread: they must return soon, and may call
    `send` and `unload` but not `start` or `stop`.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        on_state: Callable[[EngineState, str], None],
        *,
        argv: Sequence[str] = MODEL_ENGINE,
        limits: ClientLimits = ClientLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_event = on_event
        self._on_state = on_state
        self._argv = tuple(argv)
        self._limits = limits
        self._clock = clock
        self._supervisor: threading.Thread | None = None
        self._stopping = threading.Event()
        # The condition guards what follows.
        self._changed = threading.Condition()
        self._state = EngineState.STOPPED
        self._child: EngineChild | None = None
        self._may_use_gpu = False  # the child loads its model, perhaps there, or has it there
        self._open: set[int] = set()
        self._frames: deque[bytes] = deque()

    @property
    def state(self) -> EngineState:
        """The present state; `on_state` tells each change."""
        return self._state

    @property
    def pid(self) -> int | None:
        """Process id of the child, None while there is none."""
        child = self._child
        return child.pid if child is not None else None

    def start(
        self,
        model: Path | str,
        max_context: int = 2048,
        device: Device = Device.AUTO,
        server: RemoteServer | None = None,
        window: int = DEFAULT_WINDOW,
        *,
        residency: Residency = Residency.LAUNCH,
        title: str = "",
    ) -> None:
        """Start a child that loads `model`; returns at once. A child that runs already is stopped first.

        With Device.REMOTE the child talks to `server`, and `model` is not looked at. Suggestions are made
        from the last `window` tokens of a text. `residency` and `title`: see messages.LoadModel.

        Raises:
            pydantic.ValidationError: `max_context` or `window` is out of range.
        """
        path = str(Path(model).absolute())  # the child has another working directory
        load = LoadModel(
            request=LOAD_REQUEST, path=path, max_context=max_context, window=window,
            device=device, server=server, residency=residency, title=title,
        )  # fmt: skip
        self.stop()
        self._stopping.clear()
        self._state = EngineState.STARTING
        self._supervisor = threading.Thread(
            target=self._supervise, args=(load,), name="engine-supervisor", daemon=True
        )
        self._supervisor.start()

    def send(self, command: Request | Cancel) -> None:
        """Hand a command over; never waits for the child. While a child starts, commands wait for it.

        Raises:
            EngineUnavailableError: STOPPED or FAILED, or MAX_OPEN requests are open.
            MessageTooLargeError: over the limit of one message.
            ValueError: the request number is below 1, or still open.
        """
        frame = encode(command)
        with self._changed:
            if self._stopping.is_set() or self._state in (EngineState.STOPPED, EngineState.FAILED):
                raise EngineUnavailableError("the engine does not run: start it first")
            if isinstance(command, Cancel):
                if command.request not in self._open:
                    return  # answered already
            else:
                if command.request <= LOAD_REQUEST or command.request in self._open:
                    raise ValueError(f"request number {command.request} is below 1 or still open")
                if len(self._open) >= MAX_OPEN:
                    raise EngineUnavailableError(
                        Text("{count} requests wait for their answers", count=MAX_OPEN)
                    )
                self._open.add(command.request)
            self._frames.append(frame)
            self._changed.notify_all()

    def unload(self) -> None:
        """End the child, which gives all its memory back. Returns at once; `on_state` tells STOPPED."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()

    def stop(self, timeout: float = 5.0) -> None:
        """End the child and every thread of this client; a child still there after `timeout` s is killed."""
        supervisor = self._supervisor
        if supervisor is None:
            return
        self.unload()
        supervisor.join(timeout)
        if supervisor.is_alive():
            child = self._child
            if child is not None:
                child.kill()
            supervisor.join()
        self._supervisor = None

    # -------------------------------------------------------------- supervisor thread

    def _supervise(self, load: LoadModel) -> None:
        try:
            self._run_children(load)
        except _GiveUpError as error:
            _log.warning("engine given up: %s", error.reason)
            self._finish(EngineState.FAILED, error.code, error.reason)
        except Exception as error:  # noqa: BLE001  the thread's top; a callback may have raised it
            reason = Text(
                "unexpected {error} in the engine's supervisor", error=name_of_error(error)
            )
            _log.error("%s", reason)
            self._finish(EngineState.FAILED, "engine-died", reason)
        else:
            self._finish(EngineState.STOPPED, "engine-stopped", "")

    def _run_children(self, load: LoadModel) -> None:
        """Return when the client is stopped.

        Raises:
            _GiveUpError: no further child is to be started.
        """
        limits = self._limits
        restarts = RestartWindow(limits.restarts, limits.restart_window_s, self._clock)
        self._on_state(EngineState.STARTING, "")
        while not self._stopping.is_set():
            reason = self._run_child(load)
            if self._stopping.is_set():
                return
            _log.warning("engine child died: %s", reason)
            if not restarts.allow():
                raise _GiveUpError(
                    "engine-died",
                    with_log(
                        Text(
                            "the engine died {count} times within {minutes:g} minutes; the last time {reason}",
                            count=limits.restarts + 1,
                            minutes=limits.restart_window_s / 60,
                            reason=first_line(reason),
                        ),
                        log_of(reason),
                    ),
                )
            self._fail_open("engine-died", Text("the engine ended in the middle of this request"))
            self._enter(EngineState.RESTARTING, reason)
            if self._may_use_gpu:  # a driver can take a process down: once is enough
                note = Text(
                    "on the CPU: the engine died before, {reason}", reason=first_line(reason)
                )
                load = load.model_copy(update={"device": Device.CPU, "reason": note})

    def _run_child(self, load: LoadModel) -> Text:
        """The life of one child; gives the reason of its end, with its last log lines."""
        self._may_use_gpu = False
        try:
            child = EngineChild(self._argv)
        except ChildStartError as error:
            return as_text(str(error))
        self._child = child
        writer: threading.Thread | None = None
        grace_s = 0.0
        trouble: Text | None = None
        try:
            child.connect(self._limits.connect_s, self._stopping.is_set)
            writer = threading.Thread(
                target=self._write, args=(child, load), name="engine-writer", daemon=True
            )
            writer.start()
            self._may_use_gpu = load.device in (Device.AUTO, Device.CUDA)
            self._enter(EngineState.LOADING, "")
            while True:
                self._await_sign(child)
                self._take(child.channel.receive())
        except ChannelClosedError:
            grace_s = self._limits.exit_s  # it is leaving: how it ended tells why
        except ProtocolVersionError as error:
            raise _GiveUpError(error.code, str(error)) from error
        except (ChildStartError, ChannelError, _HungError) as error:
            trouble = as_text(str(error))
        finally:
            end = child.end(grace_s)  # a writer that waits for the child gets an error from here on
            with self._changed:
                self._child = None
                self._changed.notify_all()
            if writer is not None:
                writer.join()
            child.close()
        if trouble is not None:
            end = with_log(
                Text("{trouble}; {end}", trouble=trouble, end=first_line(end)), log_of(end)
            )
        return end

    def _await_sign(self, child: EngineChild) -> None:
        """Return when something came. Counts looks and not time, which goes on while the computer sleeps.

        Raises:
            _HungError: nothing came for `silence_s` while something was to be done.
        """
        silent_s = 0.0
        while not child.channel.poll(_LOOK_S):
            is_idle = self._state is EngineState.READY and not self._open
            silent_s = 0.0 if is_idle else silent_s + _LOOK_S
            if silent_s >= self._limits.silence_s:
                raise _HungError(
                    Text("it gave no sign of life for {seconds:g} s", seconds=silent_s)
                )

    def _take(self, event: Event) -> None:
        match event:
            case Hello():
                raise ChannelError("the engine said hello twice")
            case Alive():
                pass  # that it came is all
            case Failed(request=number, code=code, message=message) if number == LOAD_REQUEST:
                raise _GiveUpError(code, message)
            case ModelLoaded(backend=backend):
                self._may_use_gpu = backend == Device.CUDA
                self._enter(EngineState.READY, "")
                self._on_event(event)
            case ReplyGrew(request=number) | ReplyReady(request=number):
                if number in self._open:
                    self._on_event(event)
            case _:
                with self._changed:
                    known = event.request in self._open
                    self._open.discard(event.request)
                if known:
                    self._on_event(event)

    def _enter(self, state: EngineState, reason: str) -> None:
        with self._changed:
            self._state = state
        self._on_state(state, reason)

    def _finish(self, state: EngineState, code: str, reason: str) -> None:
        with self._changed:
            self._state = state  # before the requests fail, so that none comes after them
        self._fail_open(code, reason or Text("the engine was stopped"))
        self._on_state(state, reason)

    def _fail_open(self, code: str, reason: str) -> None:
        with self._changed:
            failed = sorted(self._open)
            self._open.clear()
            self._frames.clear()
        for request in failed:
            self._on_event(Failed(request=request, code=code, message=reason))

    # -------------------------------------------------------------- writer thread

    def _write(self, child: EngineChild, load: LoadModel) -> None:
        """Everything that goes to one child. Apart from the reader, because a pipe can be full."""
        try:
            child.channel.send(load)
            while (frame := self._next_frame(child)) is not None:
                child.channel.send_frame(frame)
            if self._child is not child:
                return
            child.channel.send(Shutdown())
        except ChannelClosedError:
            return  # the reader sees the same end
        if not child.wait(self._limits.exit_s):
            child.kill()

    def _next_frame(self, child: EngineChild) -> bytes | None:
        """None: the client stops, or `child` is gone."""

        def due() -> bool:
            return bool(self._frames) or self._stopping.is_set() or self._child is not child

        with self._changed:
            self._changed.wait_for(due)
            if self._stopping.is_set() or self._child is not child:
                return None
            return self._frames.popleft()
