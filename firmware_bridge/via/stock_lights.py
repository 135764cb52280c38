# SPDX-License-Identifier: Apache-2.0
"""A keyboard without our module, as far as its lights go: the light side of `Link`, its states and events.

The lights are the person's own: what they were is kept before the first change, and set back when no mood is
shown, at the end, before the computer sleeps, and after a crash at the next start.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType

from firmware_bridge.discovery.candidates import is_vial
from firmware_bridge.errors import BridgeError
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.io_thread import DeviceThread
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_state import (
    LinkProblem,
    LinkState,
    SessionEndedError,
)
from firmware_bridge.neighbours import Others, QuietTimes
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.sleep_clock import NAP_S, SleepClock, system_sleep_clock
from firmware_bridge.transport.base import Transport
from firmware_bridge.via.baseline import BaselineStore
from firmware_bridge.via.conversation import (
    Conversation,
    EchoError,
    NoAnswerError,
    NotViaError,
    OtherProgramError,
)
from firmware_bridge.via.find_board import FoundBoard, NoLightsError, find_board
from firmware_bridge.via.moods import Moods
from firmware_bridge.via.viable import ViableError
from firmware_bridge.via.vial import UnlockInProgressError, refuse_while_unlocking

_log = logging.getLogger(__name__)

_OWN_LIGHTS = LightOverlay()


@dataclass(frozen=True, slots=True)
class StockLightsOptions:
    """Times in seconds."""

    # With one change a second no mood can flash: WCAG 2.2, criterion 2.3.1, allows three flashes a second.
    mood_interval_s: float = 1.0
    answer_s: float = 0.5
    poll_s: float = 0.05  # the longest read where a read cannot be ended from outside
    unlock_check_s: float = 2.0  # while the person unlocks the keyboard in Vial
    hush_s: float = 0.25  # these four: see `QuietTimes`
    open_hush_s: float = 1.8
    quiet_s: float = 5.0
    stay_s: float = 600.0
    search_s: float = 1.0  # while no device is there
    backoff_first_s: float = 0.5  # doubles with every failed try
    backoff_limit_s: float = 8.0
    backoff_jitter: float = 0.2
    unsuitable_s: float = 60.0  # after a keyboard that has no lights for us


class StockLights(DeviceThread):
    """`listener` gets LinkReady (with lights as the only feature) and LinkLost on the I/O thread.

    `set_lights` and `release` may be called from any thread, at any time, and never wait. What they ask for
    holds until it is replaced, over lost and new connections.
    """

    def __init__(
        self,
        open_transport: Callable[[], Transport],
        listener: Callable[[BridgeEvent], None],
        store: BaselineStore,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep_clock: SleepClock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        options: StockLightsOptions | None = None,
        jitter: Callable[[], float] = random.random,
        others: Others | None = None,
    ) -> None:
        """The arguments are those of `Link`; `store` keeps what the lights were before ours."""
        self._options = options or StockLightsOptions()
        super().__init__("thock-lights", open_transport, listener, self._options, jitter, clock)
        self._store = store
        self._sleep_clock = sleep_clock or system_sleep_clock()
        self._sleep = sleep
        self._others = others
        self._wanted = _OWN_LIGHTS
        self._suspended = False
        self._shown: LightOverlay | None = None  # None: not known
        self._free_at = float("-inf")
        self._slept = 0.0  # by the sleep clock, at the last turn
        self._called_back = False

    def set_lights(self, overlay: LightOverlay) -> None:
        """Show the nearest thing to `overlay` that the board can do.

        Single LEDs need VialRGB; without it an overlay that has no fill shows nothing.
        """
        leds = MappingProxyType(dict(overlay.leds))
        self._wanted = LightOverlay(overlay.fill, overlay.effect, leds)
        self._wake()

    def release(self) -> None:
        """Set the person's own lights back."""
        self.set_lights(_OWN_LIGHTS)

    def suspend(self, timeout_s: float = 2.0) -> bool:
        """The computer is about to sleep: set the person's lights back until `resume`, and wait for it.

        False: that was not done within `timeout_s`; it is then done at the next start.
        """
        with self._changed:
            self._suspended = True
        self._wake()
        with self._changed:
            return self._changed.wait_for(
                lambda: self._shown == _OWN_LIGHTS or self._transport is None, timeout_s
            )

    def resume(self) -> None:
        """The computer is awake again."""
        with self._changed:
            self._suspended = False
        self._wake()

    def come_back(self) -> None:
        """As `Link.come_back`."""
        self._called_back = True
        self._wake()

    def _set_shown(self, overlay: LightOverlay | None) -> None:
        with self._changed:
            self._shown = overlay
            self._changed.notify_all()

    def _meaning_of(self, error: BridgeError) -> LinkProblem | None:
        match error:
            case NoLightsError() | NotViaError() | ViableError():
                return LinkProblem.NO_LIGHTS
            case NoAnswerError():
                return LinkProblem.NO_ANSWER
        return None

    def _pause_s(self) -> float:
        if self._problem is LinkProblem.NO_LIGHTS:
            return self._options.unsuitable_s
        return super()._pause_s()

    def _serve(self, transport: Transport) -> None:
        try:
            self._follow(transport)
        finally:
            self._set_shown(None)

    def _follow(self, transport: Transport) -> None:
        options = self._options
        if is_vial(transport.identity):  # as in `Link`
            options = replace(options, stay_s=math.inf)
        quiet = QuietTimes.of(options, self._others)
        conversation = Conversation(
            transport, answer_s=options.answer_s, quiet=quiet, clock=self._clock
        )
        found: FoundBoard | None = None
        moods: Moods | None = None
        self._slept = self._sleep_clock()
        while not self._stopping.is_set():
            try:
                if found is None or moods is None:
                    found = find_board(conversation, transport.identity, self._sleep)
                    moods = Moods(found.board, self._store, transport.identity)
                self._turn(conversation, found, moods, transport)
            except (OtherProgramError, UnlockInProgressError, EchoError) as error:
                self._set_shown(None)
                self._wait_out(conversation, error)
        if moods is not None:
            try:
                moods.give_back()
            except (OtherProgramError, UnlockInProgressError, EchoError, NoAnswerError) as error:
                _log.info("the lights are set back at the next start: %s", error)

    def _turn(
        self, conversation: Conversation, found: FoundBoard, moods: Moods, transport: Transport
    ) -> None:
        """Change the lights if that is due, else listen until it is."""
        self._check_awake()
        conversation.look_around()
        now = self._clock()
        target = _OWN_LIGHTS if self._suspended else self._wanted
        unknown = self._shown is None
        if unknown or (target != self._shown and (now >= self._free_at or self._suspended)):
            if found.is_vial:
                refuse_while_unlocking(conversation)
            self._set_shown(None)  # until it is done
            if unknown:  # the first turn, or somebody was here: begin from the person's own lights
                moods.give_back()
                target = _OWN_LIGHTS
            else:
                moods.show(target)
                self._free_at = self._clock() + self._options.mood_interval_s
            self._set_shown(target)
            self._announce(found, transport)
            return
        wait_s = 1.0 if target == self._shown else self._free_at - now
        conversation.listen(wait_s if transport.wakeable else min(wait_s, self._options.poll_s))

    def _check_awake(self) -> None:
        """After sleep the keyboard may have lost its power, and with it both our colours and our ground."""
        before, self._slept = self._slept, self._sleep_clock()
        if self._slept - before > NAP_S:
            raise SessionEndedError(LinkProblem.SUSPENDED)

    def _wait_out(self, conversation: Conversation, reason: BridgeError) -> None:
        """Say nothing until the other program or the unlocking has ended; then all is read anew."""
        was_ready = self._state is LinkState.READY
        is_unlocking = not isinstance(reason, OtherProgramError)
        self._called_back = False
        if is_unlocking:
            self._set_state(LinkState.PAUSED, LinkProblem.UNLOCKING)
        else:
            self._say_who(conversation)
        if was_ready:
            _log.info("lights paused: %s", reason)
            self._tell(LinkLost(str(reason)))
        until = self._clock() + self._options.unlock_check_s
        while not self._stopping.is_set():
            if not is_unlocking:
                self._say_who(conversation)  # it may be another program now
                if self._called_back:
                    self._called_back = False
                    conversation.come_back()
                until = conversation.silent_until
            left_s = until - self._clock()
            if left_s <= 0:
                if is_unlocking or conversation.is_quiet():
                    break
                left_s = self._options.unlock_check_s
            heard = conversation.stats.foreign
            try:
                conversation.listen(min(left_s, self._options.poll_s))
            except OtherProgramError:
                is_unlocking = False
            if conversation.stats.foreign != heard:  # Vial asks 5 times a second how far it is
                until = self._clock() + self._options.unlock_check_s
        self._slept = self._sleep_clock()

    def _say_who(self, conversation: Conversation) -> None:
        """Which program has the keyboard, and whether the person must say when it is over."""
        problem = LinkProblem.of_others(conversation.is_left_open)
        if (problem, conversation.told) != (self._problem, self._advice):
            self._set_state(LinkState.PAUSED, problem, conversation.told)

    def _announce(self, found: FoundBoard, transport: Transport) -> None:
        if self._state is LinkState.READY:
            return
        self._be_ready()
        _log.info("lights: %s, VIA protocol %d", found.board.name, found.version)
        board = Capabilities(
            protocol_low=0, protocol_high=0, report_length=transport.report_length, uid=b"", width=0,
            height=0, rotation=0, columns=0, rows=0, led_count=found.board.led_count,
            features=Feature.LIGHTS, ring_size=0, build=0,
        )  # fmt: skip
        self._tell(LinkReady(board))
