# SPDX-License-Identifier: Apache-2.0
"""One keyboard's link: finds it, stays subscribed, hands its events on, keeps its display up to date.

`show` and the others only replace what is wanted and wake the thread that does all I/O. The hand-over costs
about 0.1 ms, a tenth of what one USB report takes; `python -m tests.bridge.bench_link` measures it on the
virtual keyboard.

A transport that cannot be woken is polled: a read lasts 2 % of the time since the last event or
update, 1 ms to 50 ms. A trigger is a key, so the first report after it waits 1 ms at most; a reply
that took a second to compute waits 20 ms more; an idle link costs 20 short reads a second.
"""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType

from firmware_bridge.discovery.candidates import is_vial
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.events import BridgeEvent
from firmware_bridge.io_thread import DeviceThread
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_output import Output
from firmware_bridge.link_reflex import Reflex, ReflexArc
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import (
    LinkOptions,
    LinkProblem,
    LinkState,
    LinkStats,
    SessionIdSource,
    random_session_ids,
)
from firmware_bridge.neighbours import Others
from firmware_bridge.protocol.capabilities import Capabilities
from firmware_bridge.protocol.messages import EventKinds, Offer, Status
from firmware_bridge.sleep_clock import SleepClock, system_sleep_clock
from firmware_bridge.transport.base import Transport

_SHORTEST_READ_S = 0.0001  # `read` wants a timeout above 0
_LONGEST_READ_S = 60.0  # and a finite one


class Link(DeviceThread):
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
        self._options = options or LinkOptions()
        super().__init__("thock-link", open_transport, listener, self._options, jitter, clock)
        self._sleep_clock = sleep_clock or system_sleep_clock()
        self._ids = client_source or random_session_ids()
        self._others = others
        self._seqs: Iterator[int] = itertools.count()
        self._output = Output(self._options)
        self._reflex = ReflexArc(self._output.display)
        self._stats = LinkStats()
        self._capabilities: Capabilities | None = None
        self._nudged = False
        self._called_back = False
        self._active_at = float("-inf")

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        """Show `frame` on the display. Where typing is allowed, the accept key may type the piece `offer`.

        The key types it once, after the display has it; then, or with the next picture, the offer is over.

        Raises:
            ValueError: `offer` is no piece of one row of a text frame.
        """
        self._nudge(self._output.show(frame, self._clock(), offer))

    def set_reflex(self, reflex: Reflex | None) -> None:
        """Show a picture without being told, when a key comes; see `Reflex`. None: no more.

        A reflex that was set off counts as a `show` before this call.
        """
        self._nudge(self._reflex.set(reflex))

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
        leds, keys = MappingProxyType(dict(overlay.leds)), MappingProxyType(dict(overlay.keys))
        own = LightOverlay(overlay.fill, overlay.effect, leds, keys)
        self._nudge(self._output.lights.want(own, self._clock()))

    def release(self) -> None:
        """Give display, lights and status back to the keyboard's own firmware; what is allowed stays."""
        now = self._clock()
        channels = (self._output.display, self._output.lights, self._output.status)
        changed = [channel.want(None, now) for channel in channels]
        self._nudge(any(changed))

    def come_back(self) -> None:
        """Go on after another program: it has the keyboard open no more, says the person. Any thread."""
        self._called_back = True
        self._nudge(True)

    @property
    def capabilities(self) -> Capabilities | None:
        """Of the keyboard that is ready now."""
        return self._capabilities

    @property
    def stats(self) -> LinkStats:
        """A copy of the counters."""
        return replace(self._stats, listener_failures=self._listener_failures)

    def _nudge(self, changed: bool) -> None:
        if changed and not self._nudged:
            self._nudged = True
            if threading.current_thread() is not self._thread:
                self._wake()

    def _serve(self, transport: Transport) -> None:
        options = self._options
        if is_vial(transport.identity):
            # Its GUI takes all that comes while it is idle for its answers.
            options = replace(options, stay_s=math.inf)
        session = Session(
            transport.report_length, self._ids(), self._seqs, self._output, options,
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
        if self._called_back:
            self._called_back = False
            session.come_back()
        self._look_around(session, now)
        now = self._write(session, transport, now)
        self._reflex.prepare(session.plan)
        wait_s = min(session.deadline() - now, _LONGEST_READ_S)
        if not transport.wakeable:
            wait_s = min(wait_s, self._poll_s(now))
        incoming = transport.read(max(wait_s, _SHORTEST_READ_S))
        if incoming is None:
            return
        now = self._clock()
        if self._reflex.is_set:
            self._react(incoming, session, transport, now)
        events = session.take(incoming, now)
        self._reflect(session)
        if events:
            self._active_at = now
        for event in events:
            self._tell(event)

    def _react(self, incoming: bytes, session: Session, transport: Transport, now: float) -> None:
        """Do what a reflex asks for at this report, before anything else is done with it."""
        press = session.first_press(incoming)
        if press is None:
            return
        is_set_off, plan = self._reflex.react(*press, now)
        if is_set_off:
            self._look_around(session, now)
        if plan is not None and session.stands(plan, now):
            transport.write(plan.request.report)  # all else can wait until it is out
            session.carried_out(plan, now, self._clock())
        elif is_set_off:
            self._write(session, transport, now)

    def _look_around(self, session: Session, now: float) -> None:
        """Give way if another program has come, before anything is written."""
        leaving = session.look_around(now)
        if leaving:
            self._reflect(session)
            for event in leaving:
                self._tell(event)

    def _tell(self, event: BridgeEvent) -> None:
        self._reflex.told(event)
        super()._tell(event)

    def _write(self, session: Session, transport: Transport, now: float) -> float:
        """Write the report that is due, if any; the time after that."""
        report = session.next_report(now)
        if report is None:
            return now
        transport.write(report)
        now = self._clock()
        session.written(now)
        return now

    def _poll_s(self, now: float) -> float:
        options = self._options
        share_s = (now - self._active_at) * options.poll_share
        return min(max(share_s, options.poll_shortest_s), options.poll_longest_s)

    def _reflect(self, session: Session) -> None:
        if session.ready and self._state is not LinkState.READY:
            self._capabilities = session.capabilities
            self._stats.connections += 1
            self._be_ready()
        elif session.problem is not None and session.problem is not self._problem:
            paused = session.problem in (LinkProblem.OTHER_PROGRAM, LinkProblem.LEFT_OPEN)
            state = LinkState.PAUSED if paused else LinkState.CONNECTING
            self._set_state(state, session.problem, session.advice)
