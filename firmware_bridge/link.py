# SPDX-License-Identifier: Apache-2.0
"""One keyboard's link: finds it, stays subscribed, hands its events on, keeps its display up to date.

One I/O thread opens, reads, writes and closes the device, because hidapi frees memory under a read
when another thread closes, and shares its error text between a read and a write. `show` and the
others only replace what is wanted and wake that thread. The hand-over costs about 0.1 ms, a tenth of
what one USB report takes; `python -m tests.bridge.bench_link` measures it on the virtual keyboard.

A transport that cannot be woken is polled: a read lasts 2 % of the time since the last event or
update, 1 ms to 50 ms. A trigger is a key, so the first report after it waits 1 ms at most; a reply
that took a second to compute waits 20 ms more; an idle link costs 20 short reads a second.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType

from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.errors import TransportError
from firmware_bridge.events import BridgeEvent, LinkLost
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_output import Output
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import (
    LinkOptions,
    LinkProblem,
    LinkState,
    LinkStats,
    SessionEndedError,
    SessionIdSource,
    described,
    problem_of,
    random_session_ids,
)
from firmware_bridge.neighbours import Others
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.messages import EventKinds, Offer, Status
from firmware_bridge.sleep_clock import SleepClock, system_sleep_clock
from firmware_bridge.transport.base import Transport

_log = logging.getLogger(__name__)

_SHORTEST_READ_S = 0.0001  # `read` wants a timeout above 0


class Link:
    """Events go to `listener` on the I/O thread; it must return soon and may call any method here.

    `show`, `set_status`, `set_lights`, `allow` and `release` may be called from any thread, at any time, and
    never wait. What they ask for holds until it is replaced, over lost and new connections; parts that the
    keyboard lacks are left out.
    """

    def __init__(
        self,
        open_transport: Callable[[], Transport],
        listener: Callable[[BridgeEvent], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep_clock: SleepClock | None = None,
        client_source: SessionIdSource | None = None,
        options: LinkOptions | None = None,
        jitter: Callable[[], float] = random.random,
        others: Others | None = None,
    ) -> None:
        """`open_transport` makes a transport, not opened yet, for each try to connect; it raises
        TransportError when there is no device. `clock` must be the one that `Transport.read` waits by.
        `jitter` gives 0..1. `others` tells of programs that open the same keyboard, where the system does.
        """
        self._open_transport = open_transport
        self._listener = listener
        self._clock = clock
        self._sleep_clock = sleep_clock or system_sleep_clock()
        self._ids = client_source or random_session_ids()
        self._options = options or LinkOptions()
        self._jitter = jitter
        self._others = others
        self._seqs: Iterator[int] = itertools.count()
        self._output = Output(self._options)
        self._stats = LinkStats()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._hurry = threading.Event()  # ends the pause before the next try to connect
        self._changed = threading.Condition()
        self._state = LinkState.STOPPED
        self._problem: LinkProblem | None = None
        self._advice = ""
        self._capabilities: Capabilities | None = None
        self._transport: Transport | None = None
        self._nudged = False
        self._active_at = float("-inf")

    def start(self) -> None:
        """Begin to search for the keyboard.

        Raises:
            RuntimeError: it was started before; a link lives once.
        """
        if self._thread is not None:
            raise RuntimeError("a link is started once")
        self._thread = threading.Thread(target=self._run, name="thock-link", daemon=True)
        self._set_state(LinkState.SEARCHING)
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> bool:
        """Give everything back to the keyboard and end the thread. Safe to call twice.

        Returns False when the device did not let go of the thread within `timeout_s`; it then ends by
        itself as soon as the device does.
        """
        self._stopping.set()
        self._hurry.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        self._wake()
        thread.join(timeout_s)
        return not thread.is_alive()

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        """Show `frame` on the display. Where typing is allowed, the accept key may type the piece `offer`.

        The key types it once, after the display has it; then, or with the next picture, the offer is over.

        Raises:
            ValueError: `offer` is no piece of one row of a text frame.
        """
        self._nudge(self._output.show(frame, self._clock(), offer))

    def allow(self, *, capture: bool, typing: bool) -> None:
        """What the person lets the keyboard's own keys do; neither at the beginning.

        `capture`: a capture key may send the keys after it to the companion only. `typing`: the accept key
        may type what was offered with `show`. What is no longer allowed ends at once.
        """
        allowed = EventKinds(0)
        if capture:
            allowed |= EventKinds.CAPTURES
        if typing:
            allowed |= EventKinds.TYPING
        changed = allowed != self._output.allowed
        self._output.allowed = allowed
        self._nudge(changed)

    def set_status(self, status: int) -> None:
        """Show this state (a `Status` or its number) in the status glyph."""
        self._nudge(self._output.status.want(Status(status), self._clock()))

    def set_lights(self, overlay: LightOverlay) -> None:
        """Lay `overlay` over the board's own lights."""
        own = LightOverlay(overlay.fill, overlay.effect, MappingProxyType(dict(overlay.leds)))
        self._nudge(self._output.lights.want(own, self._clock()))

    def release(self) -> None:
        """Give display, lights and status back to the keyboard's own firmware; what is allowed stays."""
        now = self._clock()
        channels = (self._output.display, self._output.lights, self._output.status)
        changed = [channel.want(None, now) for channel in channels]
        self._nudge(any(changed))

    def search_now(self) -> None:
        """The list of devices has changed: try to connect at once, if not connected. Any thread."""
        self._hurry.set()

    @property
    def state(self) -> LinkState:
        return self._state

    @property
    def problem(self) -> LinkProblem | None:
        """Why the link is not ready; None when it is, or when nothing went wrong yet."""
        return self._problem

    @property
    def advice(self) -> str:
        """What the person can do about the problem; may be empty."""
        return self._advice

    @property
    def capabilities(self) -> Capabilities | None:
        """Of the keyboard that is ready now."""
        return self._capabilities

    @property
    def stats(self) -> LinkStats:
        """A copy of the counters."""
        return replace(self._stats)

    def wait_for(self, state: LinkState, timeout_s: float) -> bool:
        """Wait until the link is in `state`; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state is state, timeout_s)

    def _nudge(self, changed: bool) -> None:
        if changed and not self._nudged:
            self._nudged = True
            if threading.current_thread() is not self._thread:
                self._wake()

    def _wake(self) -> None:
        transport = self._transport
        if transport is not None:
            transport.wake()

    def _set_state(
        self, state: LinkState, problem: LinkProblem | None = None, advice: str = ""
    ) -> None:
        with self._changed:
            self._state, self._problem, self._advice = state, problem, advice
            self._changed.notify_all()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            connections = self._stats.connections
            try:
                self._visit()
            except SessionEndedError as error:
                self._ended(error.problem)
            except TransportError as error:
                self._ended(
                    problem_of(error, searching=self._state is LinkState.SEARCHING), error.advice
                )
            except Exception as error:  # noqa: BLE001 - the thread's top
                _log.error("link: %s", described(error))
                self._ended(LinkProblem.INTERNAL)
            failures = 1 if self._stats.connections != connections else failures + 1
            if not self._stopping.is_set():
                self._hurry.wait(self._pause_s(failures))
                self._hurry.clear()
        self._set_state(LinkState.STOPPED)

    def _pause_s(self, failures: int) -> float:
        if self._problem is LinkProblem.NO_DEVICE:
            return self._options.search_s
        longest = self._options.backoff_limit_s
        pause_s = min(self._options.backoff_first_s * 2.0 ** min(failures - 1, 16), longest)
        return pause_s * (1 + self._options.backoff_jitter * (2 * self._jitter() - 1))

    def _ended(self, problem: LinkProblem, advice: str = "") -> None:
        before = self._state
        searching = before is LinkState.SEARCHING
        self._set_state(before if searching else LinkState.LOST, problem, advice)
        if before is LinkState.READY:
            _log.info("link lost: %s", problem)
            self._tell(LinkLost(problem))

    def _visit(self) -> None:
        """Open the device and serve it until it fails or the link is stopped."""
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

    def _serve(self, transport: Transport) -> None:
        session = Session(
            transport.report_length, self._ids(), self._seqs, self._output, self._options,
            self._stats, self._sleep_clock, self._others,
        )  # fmt: skip
        try:
            while not self._stopping.is_set():
                self._turn(session, transport)
            farewell = session.farewell()
            if farewell is not None:
                transport.write(farewell)
        finally:
            self._capabilities = None
            for event in session.lift_keys(self._clock()):
                self._tell(event)

    def _turn(self, session: Session, transport: Transport) -> None:
        """Write what is due, then read until something comes or something is due."""
        now = self._clock()
        if self._nudged:
            self._nudged = False  # before looking, so that a later change wakes the read below
            self._active_at = now
        leaving = session.look_around(now)
        if leaving:
            self._reflect(session)
            for event in leaving:
                self._tell(event)
        report = session.next_report(now)
        if report is not None:
            transport.write(report)
            now = self._clock()
            session.written(now)
        wait_s = session.deadline() - now
        if not transport.wakeable:
            wait_s = min(wait_s, self._poll_s(now))
        incoming = transport.read(max(wait_s, _SHORTEST_READ_S))
        if incoming is None:
            return
        now = self._clock()
        events = session.take(incoming, now)
        self._reflect(session)
        if events:
            self._active_at = now
        for event in events:
            self._tell(event)

    def _poll_s(self, now: float) -> float:
        options = self._options
        share_s = (now - self._active_at) * options.poll_share
        return min(max(share_s, options.poll_shortest_s), options.poll_longest_s)

    def _reflect(self, session: Session) -> None:
        if session.ready and self._state is not LinkState.READY:
            self._capabilities = session.capabilities
            self._stats.connections += 1
            self._set_state(LinkState.READY)
        elif session.problem is not None and session.problem is not self._problem:
            paused = session.problem is LinkProblem.OTHER_PROGRAM
            state = LinkState.PAUSED if paused else LinkState.CONNECTING
            self._set_state(state, session.problem, session.advice)

    def _tell(self, event: BridgeEvent) -> None:
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - a fault of the listener must not end the link
            self._stats.listener_failures += 1
            if self._stats.listener_failures == 1:
                _log.error(
                    "listener failed (further failures are only counted): %s", described(error)
                )
