# SPDX-License-Identifier: Apache-2.0
"""One connection to one keyboard as a state machine: reports and clock times in, reports and events out.

It reads no clock and touches no device, so every fault can be tested without waiting. At most one of our
frames waits for its answer. It is sent again under a new seq if none comes; an answer to any copy counts.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator

from firmware_bridge.errors import FrameError
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.link_channel import UnfitContentError
from firmware_bridge.link_keys import KeyFeed
from firmware_bridge.link_offer import Picture
from firmware_bridge.link_output import Output
from firmware_bridge.link_plan import Plan, plan_for
from firmware_bridge.link_request import Request
from firmware_bridge.link_state import (
    LinkOptions,
    LinkProblem,
    LinkStats,
    SessionEndedError,
    SessionIds,
)
from firmware_bridge.neighbours import Others, QuietTimes
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import PROTOCOL_VERSION, Frame, FrameType, decode
from firmware_bridge.protocol.key_messages import KeyReport, RecordKind, first_press
from firmware_bridge.protocol.messages import (
    NONCE_TRANSFORM,
    Ack,
    Caps,
    EventKinds,
    Hello,
    Nak,
    NakReason,
    Parts,
    Poll,
    Release,
    Subscribe,
)
from firmware_bridge.sleep_clock import NAP_S, SleepClock

_log = logging.getLogger(__name__)


class _Phase(enum.Enum):
    GREETING = enum.auto()
    SUBSCRIBING = enum.auto()
    READY = enum.auto()
    PAUSED = enum.auto()  # another program talks to the keyboard


class Session:
    """From HELLO to the end of one connection."""

    def __init__(
        self,
        report_length: int,
        ids: SessionIds,
        seqs: Iterator[int],
        output: Output,
        options: LinkOptions,
        stats: LinkStats,
        sleep_clock: SleepClock,
        others: Others | None = None,
    ) -> None:
        """`seqs` gives the number of each frame and outlives the session, so that an answer to a frame of the
        session before never fits. `others`: see `Link`.
        """
        self._report_length = report_length
        self._ids = ids
        self._seqs = seqs
        self._output = output
        self._options = options
        self._stats = stats
        self._sleep_clock = sleep_clock
        self._slept = sleep_clock()
        self._quiet = QuietTimes.of(options, others)
        self._phase = _Phase.GREETING
        self._request: Request | None = None
        self._not_before = float("-inf")  # of the next SUBSCRIBE
        self._began_ms = 0  # by which the keyboard names our subscription
        self._keys = KeyFeed(stats, output.offer.pressed, output.offer.outdated)
        self._kinds = EventKinds(0)  # which the keyboard has acknowledged
        # On boards that send no event by themselves: the next POLL, and the last event.
        self._poll_at = float("inf")
        self._event_at = float("-inf")
        self._announced = False
        self._warned: set[str] = set()
        self.capabilities: Capabilities | None = None
        self.problem: LinkProblem | None = None
        """Why the session is not ready although it goes on."""
        self.advice = ""

    @property
    def ready(self) -> bool:
        return self._phase is _Phase.READY

    @property
    def _is_polled(self) -> bool:
        return self.capabilities is not None and Feature.POLL in self.capabilities.features

    def look_around(self, now: float) -> list[BridgeEvent]:
        """Notice programs that opened the keyboard; call it right before `next_report`."""
        begins = self._quiet.look(now)
        return self._give_way(now) if begins and self._phase is not _Phase.PAUSED else []

    def next_report(self, now: float) -> bytes | None:
        """The report to write now; call `written` after it.

        Raises:
            SessionEndedError: the keyboard left a frame unanswered too often, or the computer was asleep.
        """
        self._check_awake()
        if now < self._quiet.silent_until or not self._is_over_pause(now):
            return None
        request = self._request
        if request is None:
            request = self._request = self._next_request(now)
            if request is None:
                return None
        elif now < request.deadline:
            return None
        elif len(request.seqs) > self._options.retries:
            raise SessionEndedError(
                LinkProblem.NO_ANSWER if self._phase is _Phase.GREETING else LinkProblem.SILENT
            )
        else:
            self._stats.retries += 1
        report = self._copy(request)
        if request.channel is self._output.offer:
            self._output.offer.sent_as(request.seqs[-1])
        return report

    def written(self, now: float) -> None:
        """The report of the last `next_report`, or of a plan, has gone out."""
        self._stats.reports_out += 1
        request = self._request
        if request is None:
            return
        request.sent_at = now
        request.deadline = now + self._options.answer_timeout_s
        display = self._output.display
        if request.channel is display and not display.begun and len(request.seqs) == 1:
            self._stats.first_report_s = now - display.wanted_at

    def deadline(self) -> float:
        """The clock time at which `next_report` must be asked again if no report comes before."""
        due = self._not_before
        if self._request is not None:
            due = self._request.deadline
        elif self._phase is _Phase.READY:
            due = min(due, self._poll_at, self._output.due())
            if self._output.kinds(self.capabilities) != self._kinds:
                due = float("-inf")
        return max(due, self._quiet.silent_until)

    def first_press(self, report: bytes) -> tuple[RecordKind, int] | None:
        """What a report presses first, for certain; it is not taken. See `key_messages.first_press`."""
        is_ready = self._phase is _Phase.READY
        return first_press(report, self._ids.client, self._keys.next_index) if is_ready else None

    def plan(self, picture: Picture) -> Plan | None:
        """All that can be done for `picture` before it is wanted; None while the display is being changed."""
        board = self.capabilities if self.ready else None
        return None if board is None else plan_for(picture, self._output.display, board, self._copy)

    def stands(self, plan: Plan, now: float) -> bool:
        """Whether its report may be written: all is as planned, and the picture wanted; else `next_report`."""
        is_busy = self._request is not None or not self.ready
        if is_busy or now < self._quiet.silent_until or now < plan.free_at:
            return False
        return self._output.display.stands_as_planned(plan.picture, plan.updates)

    def carried_out(self, plan: Plan, wanted_at: float, now: float) -> None:
        """The report of a plan that stood at `wanted_at` has gone out."""
        self._output.display.take_up_planned(plan.picture, plan.steps, wanted_at)
        self._request = plan.request
        self.written(now)

    def take(self, report: bytes, now: float) -> list[BridgeEvent]:
        """What a report from the keyboard means.

        Raises:
            SessionEndedError: the keyboard refused us, or is not one of ours.
        """
        self._stats.reports_in += 1
        try:
            self._refuse_echo(report)
            frame = decode(report)
            if frame.client != self._ids.client:
                raise FrameError("client", "not ours")
            return self._take_frame(frame, now)
        except FrameError:
            self._stats.foreign += 1
            begins = self._quiet.notice(report, now)
            goes_on = self._phase is _Phase.PAUSED and self._quiet.program is not None
            return self._give_way(now) if begins or goes_on else []

    def come_back(self) -> None:
        """No other program has the keyboard open any more, says the person."""
        if self._phase is _Phase.PAUSED:
            self._quiet.forget()

    def farewell(self) -> bytes | None:
        """A last report that gives everything back; None if the keyboard has nothing of ours."""
        if self._phase is not _Phase.READY:
            return None
        everything = Parts.DISPLAY | Parts.LIGHTS | Parts.STATUS | Parts.SUBSCRIPTION
        return self._copy(Request(Release(everything)))

    def lift_keys(self, now: float) -> list[BridgeEvent]:
        """The end of all presses and of a capture, because nobody will tell of it any more."""
        return self._keys.lift_all(now)

    def _give_way(self, now: float) -> list[BridgeEvent]:
        """Say nothing while another program talks, the same or another one; the keyboard takes all back."""
        self._phase = _Phase.PAUSED
        self._request = None
        self.problem = LinkProblem.of_others(self._quiet.is_left_open)
        self.advice = self._quiet.told
        announced, self._announced = self._announced, False
        reason = f"{self._quiet.program} is using the keyboard"
        return [*self.lift_keys(now), LinkLost(reason)] if announced else []

    def _is_over_pause(self, now: float) -> bool:
        """False while others are here; when the last of them has left, the session begins anew."""
        if self._phase is not _Phase.PAUSED:
            return True
        if not self._quiet.is_over(now):
            return False
        self._phase = _Phase.GREETING if self.capabilities is None else _Phase.SUBSCRIBING
        self._not_before = float("-inf")
        return True

    def _next_request(self, now: float) -> Request | None:
        if self._phase is _Phase.GREETING:
            hello = Hello(self._ids.nonce, PROTOCOL_VERSION, PROTOCOL_VERSION)
            return Request(hello)
        assert self.capabilities is not None
        kinds = self._output.kinds(self.capabilities)
        is_new = self._phase is _Phase.READY and kinds != self._kinds
        if now >= self._not_before or is_new:
            return Request(Subscribe(kinds))
        if self._phase is _Phase.READY and now >= self._poll_at:
            return Request(Poll())
        while self._phase is _Phase.READY:
            try:
                turn = self._output.next_turn(now, self.capabilities)
            except UnfitContentError as error:  # the channel has given it up, so this ends
                self._warn_once(f"not shown: {error}")
                continue
            if turn is None:
                break
            channel, step = turn
            return Request(step.message, step.first, step.last, channel)
        return None

    def _check_awake(self) -> None:
        """After a sleep the handle may be dead, and the keyboard has long given everything back."""
        before, self._slept = self._slept, self._sleep_clock()
        if self._slept - before > NAP_S and self._phase is not _Phase.PAUSED:
            raise SessionEndedError(LinkProblem.SUSPENDED)

    def _copy(self, request: Request) -> bytes:
        return request.copy(self._ids.client, next(self._seqs) & 0xFF, self._report_length)

    def _refuse_echo(self, report: bytes) -> None:
        request = self._request
        if self._phase is _Phase.GREETING and request is not None and request.came_back_as(report):
            raise SessionEndedError(LinkProblem.NO_MODULE)

    def _take_frame(self, frame: Frame, now: float) -> list[BridgeEvent]:
        match frame.type:
            case FrameType.KEY:
                if self._phase is not _Phase.READY:
                    self._stats.stale += 1  # of a subscription before this session
                    return []
                report = KeyReport.unpack(frame.payload)
                if self._is_polled:  # also an answer to an older copy of POLL brings new events
                    self._answered(frame.seq, FrameType.POLL, now)
                    self._event_at = self._poll_at = now
                return self._keys.take(report, now)
            case FrameType.CAPS:
                caps = Caps.unpack(frame.payload)
                if caps.proof != self._ids.nonce ^ NONCE_TRANSFORM:
                    raise FrameError("nonce", "not ours")
                if self._answered(frame.seq, FrameType.HELLO, now) is not None:
                    self._meet(caps.capabilities)
            case FrameType.ACK:
                ack = Ack.unpack(frame.payload)
                if ack.done is FrameType.HELLO:
                    raise FrameError("type", "an ACK where CAPS must come")
                request = self._answered(frame.seq, ack.done, now)
                if request is not None:
                    return self._acknowledged(request, ack, now)
            case FrameType.NAK:
                nak = Nak.unpack(frame.payload)
                request = self._answered(frame.seq, nak.refused, now)
                if request is not None:
                    self._stats.naks += 1
                    return self._refused(request, nak.reason, now)
            case _:
                raise FrameError("type", "from a host")
        return []

    def _answered(self, seq: int, kind: int, now: float) -> Request | None:
        """The open request if this answers it, which it then no longer is."""
        request = self._request
        if request is None or seq not in request.seqs or kind != request.message.type:
            self._stats.stale += 1
            return None
        self._request = None
        if len(request.seqs) == 1:  # else it is not known which copy was answered
            self._stats.rtt_s = now - request.sent_at
            self._stats.rtt_worst_s = max(self._stats.rtt_worst_s, self._stats.rtt_s)
        return request

    def _meet(self, board: Capabilities) -> None:
        speaks_ours = board.protocol_low <= PROTOCOL_VERSION <= board.protocol_high
        if not speaks_ours or board.report_length != self._report_length:
            raise SessionEndedError(LinkProblem.INCOMPATIBLE)
        self.capabilities = board
        self._phase = _Phase.SUBSCRIBING

    def _acknowledged(self, request: Request, ack: Ack, now: float) -> list[BridgeEvent]:
        if request.message.type is FrameType.POLL:
            options = self._options
            idle = now - self._event_at > options.events_idle_after_s
            self._poll_at = now + (options.events_idle_poll_s if idle else options.events_poll_s)
            return []
        if isinstance(request.message, Subscribe):
            return self._subscribed(request.message.kinds, ack.began_ms, now)
        assert request.channel is not None
        if request.channel.acknowledged() and request.channel is self._output.display:
            self._stats.shown_s = now - request.channel.wanted_at
        return []

    def _subscribed(self, kinds: EventKinds, began_ms: int, now: float) -> list[BridgeEvent]:
        board = self.capabilities
        assert board is not None
        self._not_before = now + self._options.heartbeat_s
        is_ours = self._phase is _Phase.READY and began_ms == self._began_ms
        events: list[BridgeEvent] = []
        if is_ours and EventKinds.CAPTURES not in kinds:
            events = self._keys.end_capture(now)
        elif not is_ours:
            events = self._begin(began_ms, now)
        self._kinds = kinds
        self._output.offer.allow(board if EventKinds.TYPING in kinds else None)
        if not self._announced:
            self._announced = True
            events.append(LinkReady(board))
        return events

    def _begin(self, began_ms: int, now: float) -> list[BridgeEvent]:
        """A new subscription: of this session, or since the keyboard restarted or gave us up."""
        if self._phase is _Phase.READY:
            _log.info("%s; all is sent anew", LinkProblem.RESTARTED)
        self._phase = _Phase.READY
        self.problem = None
        self._began_ms = began_ms
        lifted = self.lift_keys(now)
        self._keys.begin()
        self._poll_at = now if self._is_polled else float("inf")
        self._output.forget()
        return lifted

    def _refused(self, request: Request, reason: NakReason, now: float) -> list[BridgeEvent]:
        if request.message.type is FrameType.HELLO:
            raise SessionEndedError(LinkProblem.INCOMPATIBLE)
        if reason is NakReason.BUSY and request.channel is self._output.offer:
            request.channel.refused()  # a key was pressed meanwhile; it is on its way to us
            return []
        if reason is NakReason.BUSY:
            if self._announced:
                raise SessionEndedError(LinkProblem.IN_USE)
            self.problem = LinkProblem.IN_USE
            self._not_before = now + self._options.busy_retry_s
            return []
        if reason is NakReason.NOT_SUBSCRIBED:
            self._phase = _Phase.SUBSCRIBING
            self._not_before = float("-inf")
            return self.lift_keys(now)
        if request.channel is None:
            raise SessionEndedError(LinkProblem.INCOMPATIBLE)
        self._warn_once(f"the keyboard refused {request.message.type.name}: {reason.name}")
        request.channel.refused()
        return []

    def _warn_once(self, message: str) -> None:
        """A stream of updates may meet the same refusal 20 times a second."""
        if message not in self._warned:
            self._warned.add(message)
            _log.warning("%s", message)
