# SPDX-License-Identifier: Apache-2.0
"""One thread that alone opens, reads, writes and closes one device, and the state that it is in.

hidapi frees memory under a read when another thread closes, and shares its error text between a read and a
write; other libraries are no better. So whoever wants something leaves word and wakes that thread.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from firmware_bridge.errors import BridgeError, TransportError
from firmware_bridge.events import BridgeEvent, LinkLost
from firmware_bridge.link_state import (
    LinkProblem,
    LinkState,
    SessionEndedError,
    described,
    problem_of,
)
from firmware_bridge.transport.base import Transport

_log = logging.getLogger(__name__)


class IoThread(ABC):
    """A subclass has `_run`, the thread's work, which ends soon after `_stopping` was set and `_wake` called.

    `state`, `problem`, `advice` and `wait_for` may be asked from any thread.
    """

    def __init__(self, name: str) -> None:
        """`name` is that of the thread."""
        self._name = name
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._state = LinkState.STOPPED
        self._problem: LinkProblem | None = None
        self._advice = ""
        self._watcher: Callable[[], None] = lambda: None

    def watch_state(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` after the state or its problem was set, on the thread that set it. Before `start`."""
        self._watcher = watcher

    def start(self) -> None:
        """Begin to search.

        Raises:
            RuntimeError: it was started before; it lives once.
        """
        if self._thread is not None:
            raise RuntimeError(f"{self._name} is started once")
        self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
        self._set_state(LinkState.SEARCHING)
        self._thread.start()

    def stop(self, timeout_s: float = 3.0) -> bool:
        """Give everything back and end the thread. Safe to call twice.

        Returns False when the device did not let go of the thread within `timeout_s`; it then ends by
        itself as soon as the device does.
        """
        self._stopping.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        self._wake()
        thread.join(timeout_s)
        return not thread.is_alive()

    @property
    def state(self) -> LinkState:
        return self._state

    @property
    def problem(self) -> LinkProblem | None:
        """Why it is not ready; None when it is, or when nothing went wrong yet."""
        return self._problem

    @property
    def advice(self) -> str:
        """What the person can do about the problem; may be empty."""
        return self._advice

    def wait_for(self, state: LinkState, timeout_s: float) -> bool:
        """Wait until the state is `state`; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state is state, timeout_s)

    def _set_state(
        self, state: LinkState, problem: LinkProblem | None = None, advice: str = ""
    ) -> None:
        with self._changed:
            self._state, self._problem, self._advice = state, problem, advice
            self._changed.notify_all()
        self._watcher()

    def _live(self) -> None:
        self._run()
        if self._stopping.is_set():
            self._set_state(LinkState.STOPPED)
        else:  # it gave up
            self._set_state(LinkState.STOPPED, self._problem, self._advice)

    @abstractmethod
    def _run(self) -> None: ...

    @abstractmethod
    def _wake(self) -> None:
        """End whatever the thread waits for."""


class PauseOptions(Protocol):
    """Times between two tries to connect, in seconds."""

    @property
    def search_s(self) -> float:
        """While no device is there."""
        ...

    @property
    def backoff_first_s(self) -> float:
        """After a failure; doubles with every further one."""
        ...

    @property
    def backoff_limit_s(self) -> float: ...

    @property
    def backoff_jitter(self) -> float:
        """Share of the back-off that is random, up or down."""
        ...


class DeviceThread(IoThread):
    """Finds a device, serves it, and begins anew when that fails. A subclass has `_serve`."""

    def __init__(
        self,
        name: str,
        open_transport: Callable[[], Transport],
        listener: Callable[[BridgeEvent], None],
        pauses: PauseOptions,
        jitter: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_transport` makes a transport for each try to connect; it raises TransportError when there is
        no device. Events go to `listener` on the thread. `jitter` gives 0..1. `clock` must be the one that
        `Transport.read` waits by.
        """
        super().__init__(name)
        self._open_transport = open_transport
        self._listener = listener
        self._pauses = pauses
        self._jitter = jitter
        self._clock = clock
        self._hurry = threading.Event()  # ends the pause before the next try to connect
        self._transport: Transport | None = None
        self._failures = 0  # since it was ready
        self._listener_failures = 0

    def search_now(self) -> None:
        """The list of devices has changed: try to connect at once, if not connected. Any thread."""
        self._hurry.set()

    @abstractmethod
    def _serve(self, transport: Transport) -> None:
        """Talk to the open device until it fails or `_stopping` is set, and give everything back then."""

    def _meaning_of(self, error: BridgeError) -> LinkProblem | None:
        """What an error that `_serve` let through means; None: a fault in Thock."""
        return None

    def _pause_s(self) -> float:
        pauses = self._pauses
        if self._problem is LinkProblem.NO_DEVICE:
            return pauses.search_s
        doubled_s = pauses.backoff_first_s * 2.0 ** min(self._failures - 1, 16)
        pause_s = min(doubled_s, pauses.backoff_limit_s)
        return pause_s * (1 + pauses.backoff_jitter * (2 * self._jitter() - 1))

    def _be_ready(self) -> None:
        self._failures = 0
        self._set_state(LinkState.READY)

    def _tell(self, event: BridgeEvent) -> None:
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - a fault of the listener must not end the thread
            self._listener_failures += 1
            if self._listener_failures == 1:
                _log.error(
                    "listener failed (further failures are only counted): %s", described(error)
                )

    def _wake(self) -> None:
        if self._stopping.is_set():
            self._hurry.set()
        transport = self._transport
        if transport is not None:
            transport.wake()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._visit()
            except SessionEndedError as error:
                self._ended(error.problem)
            except TransportError as error:
                searching = self._state is LinkState.SEARCHING
                self._ended(problem_of(error, searching=searching), error.advice)
            except Exception as error:  # noqa: BLE001 - the thread's top
                problem = self._meaning_of(error) if isinstance(error, BridgeError) else None
                if problem is None:
                    _log.error("%s: %s", self._name, described(error))
                self._ended(problem or LinkProblem.INTERNAL)
            self._failures += 1
            if not self._stopping.is_set():
                self._hurry.wait(self._pause_s())
                self._hurry.clear()

    def _visit(self) -> None:
        """Open the device and serve it until it fails or the end is wanted."""
        self._set_state(LinkState.SEARCHING, self._problem, self._advice)
        transport = self._open_transport()
        self._transport = transport
        try:
            transport.open()
            self._set_state(LinkState.CONNECTING, self._problem, self._advice)
            self._serve(transport)
        finally:
            self._transport = None
            transport.close()

    def _ended(self, problem: LinkProblem, advice: str = "") -> None:
        before = self._state
        searching = before is LinkState.SEARCHING
        self._set_state(before if searching else LinkState.LOST, problem, advice)
        if before is LinkState.READY:
            _log.info("%s: lost: %s", self._name, problem)
            self._tell(LinkLost(problem))
