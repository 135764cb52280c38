# SPDX-License-Identifier: Apache-2.0
"""Questions to VIA, one at a time, and their answers picked from all reports by content.

Every report of the keyboard comes to every program that has it open, so order says nothing. An answer
repeats the bytes of its request that say what was asked.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from firmware_bridge.errors import BridgeError
from firmware_bridge.neighbours import QuietTimes
from firmware_bridge.texts import Text
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.protocol import UNHANDLED, VIA_VERSIONS, Command, check_request
from firmware_bridge.via.viable import ClientId, ClientIdInvalidError, ViableError

_log = logging.getLogger(__name__)

_DRAIN_REPORTS = 64  # what a system keeps per handle
_SHORTEST_READ_S = 0.001
_FILLERS = (0xA5, 0x5A)  # of the bytes that an answer must overwrite


class NoAnswerError(BridgeError):
    """The keyboard left a request unanswered too often."""


class UnhandledError(BridgeError):
    """The firmware does not know the request."""


class EchoError(BridgeError):
    """The keyboard returns requests as they are: it is no VIA keyboard, or is being unlocked in Vial."""


class NotViaError(BridgeError):
    """The keyboard answered, but not as VIA does."""


class OtherProgramError(BridgeError):
    """Another program talks to the keyboard; nothing was sent."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program} is using the keyboard")
        self.program = program


@dataclass(slots=True)
class ConversationStats:
    """Counters since the conversation began."""

    requests: int = 0
    retries: int = 0
    stale: int = 0  # answers that came after their request was sent again or given up
    foreign: int = 0  # reports that were no answers to us


class Conversation:
    """Belongs to the I/O thread that opened `transport`."""

    def __init__(
        self,
        transport: Transport,
        *,
        answer_s: float = 0.5,
        retries: int = 2,
        quiet: QuietTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` must be the one that `Transport.read` waits by."""
        self._transport = transport
        self._answer_s = answer_s
        self._retries = retries
        self._quiet = quiet or QuietTimes()
        self._clock = clock
        self._client: ClientId | None = None
        self._owed: deque[Callable[[bytes], bool]] = deque(maxlen=16)  # answers that may come yet
        self.stats = ConversationStats()
        # What stood at a path that was to be set back when another program came.
        self.unfinished: dict[bytes, bytes] = {}

    def version(self) -> int:
        """VIA's protocol version, 9 to 13.

        Raises:
            NotViaError: it is another one, or none.
        """
        asked, foreign = self.stats.requests, self.stats.foreign
        try:
            answer = self.ask(bytes((Command.GET_VERSION,)))
        except UnhandledError:
            raise NotViaError("the keyboard does not speak VIA") from None
        except (NoAnswerError, OtherProgramError):
            asked, foreign = self.stats.requests - asked, self.stats.foreign - foreign
            if asked and foreign >= asked:
                raise NotViaError("the keyboard answers in another language") from None
            raise
        version = int.from_bytes(answer[1:3], "big")
        if version not in VIA_VERSIONS:
            raise NotViaError(f"VIA protocol {version} is not known")
        return version

    def get(self, path: bytes, size: int) -> bytes:
        """`size` bytes of the value at `path` (channel and value id, or value id).

        The bytes for the value are sent full of a pattern, so that an echo shows.

        Raises:
            EchoError, UnhandledError: see there.
        """
        head = bytes((Command.GET_VALUE,)) + path
        for filler in _FILLERS:
            pattern = bytes((filler,)) * size
            value = self.ask(head + pattern, len(head))[len(head) : len(head) + size]
            if value != pattern:
                return value
        raise EchoError("the keyboard returns requests as they are")

    def set(self, path: bytes, value: bytes) -> None:
        """Set the value at `path`, in the keyboard's RAM."""
        request = bytes((Command.SET_VALUE,)) + path + value
        # VIA answers a set with what it was sent; some firmware puts the resulting value there.
        self.ask(request, 1 + len(path))

    def ask(
        self,
        request: bytes,
        echoed: int | None = None,
        fits: Callable[[bytes], bool] | None = None,
    ) -> bytes:
        """The answer to `request`: the report that repeats its first `echoed` bytes, all by default, or that
        `fits` for requests whose answers do not repeat them.

        Raises:
            NoAnswerError, UnhandledError: see there.
            OtherProgramError: this is not the moment to ask.
            DeviceGoneError, ForbiddenRequestError: see there.
        """
        head = request[: len(request) if echoed is None else echoed]
        is_answer = fits or (lambda report: report.startswith(head))
        for attempt in range(1 + self._retries):
            self.stats.retries += attempt > 0
            self._give_way()
            self._write(request)
            try:
                answer = self._await(request, is_answer)
            except ClientIdInvalidError:
                self.use_client_ids()
                continue
            if answer is not None:
                return answer
            self._owed.append(is_answer)
        raise NoAnswerError("the keyboard does not answer")

    def use_client_ids(self) -> None:
        """From now on speak to a Viable board under an id of our own.

        Raises:
            ViableError, NoAnswerError: the board gave none.
        """
        client = self._client = self._client or ClientId()
        for attempt in range(1 + self._retries):
            self.stats.retries += attempt > 0
            self._give_way()
            self._send(client.bootstrap())
            end = self._clock() + self._answer_s
            while (report := self._next(end)) is not None:
                if client.is_answer_to_bootstrap(report):
                    client.take(report)
                    return
                self._foreign(report)
        raise NoAnswerError("the keyboard gave no client id")

    def listen(self, wait_s: float) -> None:
        """Take one report that nobody asked for, or wait `wait_s` for it.

        Raises:
            OtherProgramError: another program began to talk.
        """
        report = self._transport.read(max(wait_s, _SHORTEST_READ_S))
        if report is not None and self._foreign(report):
            raise OtherProgramError(self._quiet.program or "")

    @property
    def told(self) -> Text:
        """Which other program talks, and what ends our silence, for the person."""
        return self._quiet.told

    @property
    def is_left_open(self) -> bool:
        """Whether only the person knows how long the other program has the keyboard open."""
        return self._quiet.is_left_open

    def come_back(self) -> None:
        """It has it open no more, says the person."""
        self._quiet.forget()

    @property
    def silent_until(self) -> float:
        """When we may speak again, for others' sake; a clock time, past if we may now."""
        return self._quiet.silent_until

    def is_quiet(self) -> bool:
        """Whether we may speak again: the other program has said nothing for long enough and has left."""
        return self._quiet.is_over(self._clock())

    def look_around(self) -> None:
        """Notice programs that opened the keyboard.

        Raises:
            OtherProgramError: one did, and stays.
        """
        if self._quiet.look(self._clock()):
            _log.info("%s is using the keyboard", self._quiet.program)
            raise OtherProgramError(self._quiet.program or "")

    def _give_way(self) -> None:
        for _ in range(_DRAIN_REPORTS):
            report = self._transport.read(_SHORTEST_READ_S)
            if report is None:
                break
            self._foreign(report)
        while True:
            self.look_around()
            wait_s = self._quiet.silent_until - self._clock()
            if wait_s <= 0:
                return
            if self._quiet.program is not None:
                raise OtherProgramError(self._quiet.program)
            self.listen(wait_s)  # a hush

    def _write(self, request: bytes) -> None:
        if self._client is not None:
            request = self._client.wrap(request, self._transport.report_length)
        self._send(request)

    def _send(self, report: bytes) -> None:
        """The one place that writes."""
        check_request(report.ljust(self._transport.report_length, b"\0"))
        self._transport.write(report)
        self.stats.requests += 1

    def _await(self, request: bytes, is_answer: Callable[[bytes], bool]) -> bytes | None:
        unhandled = bytes((UNHANDLED,)) + request[1:]
        end = self._clock() + self._answer_s
        while (report := self._next(end)) is not None:
            answer = self._opened(report)
            if answer is not None and is_answer(answer):
                return answer
            if answer is not None and answer.startswith(unhandled):
                raise UnhandledError("the firmware does not know the request")
            self._foreign(report)
        return None

    def _opened(self, report: bytes) -> bytes | None:
        """What `report` says if it may be for us."""
        return report if self._client is None else self._client.unwrap(report)

    def _next(self, end: float) -> bytes | None:
        """The next report before the clock says `end`."""
        while (left_s := end - self._clock()) > 0:
            report = self._transport.read(left_s)
            if report is not None:
                return report
        return None

    def _foreign(self, report: bytes) -> bool:
        """A report that was not waited for; whether another program's conversation begins with it."""
        if self._is_owed(report):
            self.stats.stale += 1
            return False
        self.stats.foreign += 1
        begins = self._quiet.notice(report, self._clock())
        if begins:
            _log.info("%s is using the keyboard", self._quiet.program)
        return begins

    def _is_owed(self, report: bytes) -> bool:
        try:
            answer = self._opened(report)
        except (ClientIdInvalidError, ViableError):
            return True  # it names our id
        if answer is None or self._client is not None:
            return answer is not None
        for is_answer in self._owed:
            if is_answer(answer):
                self._owed.remove(is_answer)
                return True
        return False
