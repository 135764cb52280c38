# SPDX-License-Identifier: Apache-2.0
"""Gives a link the keyboard to open: the chosen one, or the first that has the Thock module.

Boards are known by who they are, never by path, so a keyboard is found again after it was plugged in
elsewhere. Everything is called on the link's I/O thread. On Linux the keyboard is watched while it is open,
from the questions of `detect` on, so that other programs on it are left in peace (`DeviceOpener.others`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firmware_bridge.discovery.candidates import (
    HID,
    SERIAL,
    Candidate,
    Caution,
    find_board,
    is_same_board,
)
from firmware_bridge.discovery.detect import Finding, Tier, Verdict, detect
from firmware_bridge.errors import (
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)
from firmware_bridge.neighbours import Others
from firmware_bridge.node_watch import NodeWatch, WatchedTransport
from firmware_bridge.texts import Text, listed
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.via.channel import ViaChannelTransport

_log = logging.getLogger(__name__)

# udevd lets the user in 0.05 to 0.2 s after the kernel has made the node.
_SETTLE_S = 1.0
# A device whose answer may change is asked again: after 5 s, then at longer and longer intervals.
_ASK_AGAIN_S = 5.0
_ASK_AT_LEAST_S = 60.0


@dataclass(slots=True)
class _Seen:
    """What is known of a candidate since it appeared under its path."""

    since: float
    verdict: Verdict | None = None
    asked_at: float = 0.0
    asked_times: int = 0

    def must_ask(self, now: float) -> bool:
        if self.verdict is None:
            return True
        interval_s = min(_ASK_AGAIN_S * 2 ** (self.asked_times - 1), _ASK_AT_LEAST_S)
        return not self.verdict.is_final and now - self.asked_at > interval_s


class DeviceOpener:
    """Call it for a transport of the keyboard, as `Link` wants it.

    It is open already if the keyboard was just asked: to open it once more costs 0.05 s on Linux (usbhid_open)
    and a serial board its session. Who calls must close it.
    """

    def __init__(
        self,
        candidates: Callable[[], Sequence[Candidate]],
        make_transport: Callable[[Candidate], Transport],
        *,
        selected: DeviceIdentity | None = None,
        select: Callable[[Sequence[Candidate]], DeviceIdentity | None] | None = None,
        is_claimed: Callable[[int, int], bool] = lambda vendor, product: False,
        node_watch: NodeWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`candidates` gives the newest list (`DeviceWatch.candidates`). `select` finds the board to open
        among them, once and for all, if that may not be there yet. `is_claimed` tells whether another
        program took such a USB device (vendor, product) from the system. `node_watch` is for systems with
        device nodes.
        """
        self._candidates = candidates
        self._make_transport = make_transport
        self._selected = selected
        self._select = select
        self._is_claimed = is_claimed
        self._node_watch = node_watch
        self._clock = clock
        self._seen: dict[tuple[str, DeviceIdentity], _Seen] = {}
        self._last: DeviceIdentity | None = None  # the board that was given last
        self.with_lights: tuple[Candidate, ...] = ()
        """Boards without the module whose lights could be used (`LightsOpener`), as of the last call."""

    def __call__(self) -> Transport:
        """The keyboard to open now.

        Raises:
            DeviceGoneError: there is none; the advice says what was seen and why it does not do.
            DevicePermissionError, DeviceBusyError: there is one that cannot be opened.
        """
        present = self._candidates()
        self._remember(present)
        try:
            return self._first_fitting(present)
        finally:
            self.with_lights = tuple(filter(self._has_lights, self._wanted(present)))

    def _first_fitting(self, present: Sequence[Candidate]) -> Transport:
        problems: list[TransportError] = []
        rejected: list[Text] = []
        for candidate in self._wanted(present):
            transport = watched(self._make_transport(candidate), candidate, self._node_watch)
            try:
                verdict = self._ask(candidate, transport)
            except BaseException as error:
                transport.close()
                if not isinstance(error, TransportError):
                    raise
                problems.append(error)
                continue
            if verdict.tier in (Tier.MODULE, Tier.SERIAL):
                self._last = candidate.identity
                return ViaChannelTransport(transport) if verdict.via_channel else transport
            transport.close()
            rejected.append(
                Text(
                    "{device}: {reason}.",
                    device=candidate.identity.product or candidate.path,
                    reason=verdict.reason,
                )
            )
        raise self._failure(problems, rejected)

    @property
    def others(self) -> Others | None:
        """Tells of other programs on the keyboard that was given last; None where the system does not."""
        return self._node_watch

    def _has_lights(self, candidate: Candidate) -> bool:
        seen = self._seen.get((candidate.path, candidate.identity))
        if seen is None or seen.verdict is None:
            return False
        return seen.verdict.tier is Tier.LIGHTS

    def _remember(self, present: Sequence[Candidate]) -> None:
        now = self._clock()
        keys = {(candidate.path, candidate.identity) for candidate in present}
        self._seen = {key: self._seen.get(key) or _Seen(now) for key in keys}

    def _wanted(self, present: Sequence[Candidate]) -> list[Candidate]:
        """What may be the keyboard, the likeliest first."""
        if self._selected is None and self._select is not None:
            self._selected = self._select(present)
            if self._selected is None:
                return []
        if self._selected is not None:
            # A person may choose a serial port that does not say what it is.
            open_to = [c for c in present if c.matches or c.identity.transport == SERIAL]
            board = find_board(self._selected, [c.identity for c in open_to])
            return [c for c in open_to if c.identity == board]
        matching = [c for c in present if c.matches]
        last = self._last and find_board(self._last, [c.identity for c in matching])
        return sorted(matching, key=lambda c: (c.identity != last, c.identity.transport != HID))

    def _ask(self, candidate: Candidate, transport: Transport) -> Verdict:
        """What the candidate is; opens and asks it, unless its answer stands."""
        now = self._clock()
        seen = self._seen[candidate.path, candidate.identity]
        if seen.verdict is not None and not seen.must_ask(now):
            return seen.verdict
        had_module = self._last is not None and is_same_board(self._last, candidate.identity)
        try:
            transport.open()
            verdict = detect(
                transport,
                via_first=not had_module,
                hello_allowed=candidate.caution is Caution.NONE or self._selected is not None,
                insist=self._selected is not None,
                others=self.others,
                clock=self._clock,
            )
        except DevicePermissionError as error:
            if now - seen.since < _SETTLE_S:
                raise DeviceGoneError("The keyboard was just plugged in.") from error
            raise
        starts_up = had_module and verdict.finding is Finding.SILENT
        if verdict.finding is not Finding.MODULE and not starts_up:
            seen.verdict, seen.asked_at = verdict, now
            seen.asked_times += 1
            _log.info("%s: %s", candidate.path, verdict.reason)
        return verdict

    def _failure(self, problems: list[TransportError], rejected: list[Text]) -> TransportError:
        for kind in (DevicePermissionError, DeviceBusyError):
            for problem in problems:
                if isinstance(problem, kind):
                    return problem
        last = self._last or self._selected
        if last is not None and self._is_claimed(last.vendor_id, last.product_id):
            return DeviceBusyError(
                "Another program took the keyboard from the system.",
                "Close programs that configure keyboards or lights.",
            )
        if problems:
            return problems[0]
        is_chosen = self._selected is not None or self._select is not None
        reason = "No keyboard with the Thock module was found."
        if is_chosen:
            reason = "The chosen keyboard was not found."
        return DeviceGoneError(reason, listed(rejected))


class LightsOpener:
    """Gives `StockLights` the first of the boards that a `DeviceOpener` found to have no module.

    It asks none itself: a board that was asked is not asked by a second thread while it is in use.
    """

    def __init__(
        self,
        boards: Callable[[], Sequence[Candidate]],
        make_transport: Callable[[Candidate], Transport],
        *,
        node_watch: NodeWatch | None = None,
    ) -> None:
        """`boards` gives `DeviceOpener.with_lights`; the rest is as there."""
        self._boards = boards
        self._make_transport = make_transport
        self._node_watch = node_watch

    def __call__(self) -> Transport:
        """The keyboard to open now.

        Raises:
            DeviceGoneError: there is none.
        """
        for candidate in self._boards():
            return watched(self._make_transport(candidate), candidate, self._node_watch)
        raise DeviceGoneError("No keyboard with lights for Thock was found.")

    @property
    def others(self) -> Others | None:
        """As `DeviceOpener.others`."""
        return self._node_watch


def watched(transport: Transport, candidate: Candidate, watch: NodeWatch | None) -> Transport:
    """`transport`, watched from open to close where `candidate` has a device node and the system tells."""
    if watch is None or candidate.identity.transport != HID:
        return transport
    return WatchedTransport(transport, candidate.path, watch)
