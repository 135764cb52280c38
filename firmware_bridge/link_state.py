# SPDX-License-Identifier: Apache-2.0
"""What a link can be, why it is not ready, how it behaves, and what it counts."""

from __future__ import annotations

import enum
import secrets
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from firmware_bridge.errors import (
    BridgeError,
    DeviceBusyError,
    DeviceGoneError,
    DevicePermissionError,
    TransportError,
)


class LinkState(enum.Enum):
    """SEARCHING: no device is open. CONNECTING: one is open and was asked who it is.

    READY: events come in, output goes out. PAUSED: somebody else talks to the device, so we say nothing.
    LOST: the device failed us; waiting before the next try. STOPPED: before `start` and after `stop`.
    """

    STOPPED = "stopped"
    SEARCHING = "searching"
    CONNECTING = "connecting"
    READY = "ready"
    PAUSED = "paused"
    LOST = "lost"


class LinkProblem(enum.StrEnum):
    """Why a link is not ready, in words for the person."""

    NO_DEVICE = "no keyboard was found"
    DEVICE_BUSY = "another program holds the keyboard"
    NO_PERMISSION = "this user may not open the keyboard"
    NO_ANSWER = "the keyboard does not answer"
    NO_MODULE = "the firmware of the keyboard has no Thock module"
    INCOMPATIBLE = "the firmware speaks another version of the protocol"
    IN_USE = "another program is using the Thock module of the keyboard"
    OTHER_PROGRAM = "another program is using the keyboard"
    LEFT_OPEN = (
        "another program may still have the keyboard open"  # until the person says that it does not
    )
    UNLOCKING = "the keyboard is being unlocked in Vial"
    NO_LIGHTS = "the firmware of the keyboard lets no program set its lights"
    NO_OPENRGB = "OpenRGB cannot be used"
    GONE = "the keyboard went away"
    SILENT = "the keyboard fell silent"
    RESTARTED = "the keyboard restarted"
    SUSPENDED = "the computer was asleep"
    INTERNAL = "a fault in Thock; see the log"

    @classmethod
    def of_others(cls, is_left_open: bool) -> LinkProblem:
        """While another program has the keyboard; `is_left_open`: for as long as the person says nothing."""
        return cls.LEFT_OPEN if is_left_open else cls.OTHER_PROGRAM


class SessionEndedError(BridgeError):
    """This connection is over; the link opens the device anew."""

    def __init__(self, problem: LinkProblem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class SessionIds(NamedTuple):
    """How a host names itself in HELLO: `client` 1..255, `nonce` 32 bits."""

    client: int
    nonce: int


SessionIdSource = Callable[[], SessionIds]


def random_session_ids() -> SessionIdSource:
    """One client number for the life of a link, and a new nonce for each HELLO.

    The number stays, because a keyboard takes HELLO from the client it knows as a new beginning,
    whereas a stranger has to wait until the old subscription has run out (3 s).
    """
    client = secrets.randbelow(255) + 1
    return lambda: SessionIds(client, secrets.randbits(32))


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Times in seconds. The defaults follow docs/PROTOCOL.md and what a 6x8 display can show."""

    answer_timeout_s: float = 0.2
    retries: int = 2  # of one frame; after them the keyboard counts as silent
    heartbeat_s: float = 1.0
    busy_retry_s: float = 1.0  # while another client is subscribed
    # Another program on the interface: silence after one answer of its own, after it opened the keyboard, after
    # its last sign, and after that where nobody tells whether VIA or Vial is still open (see `QuietTimes`).
    hush_s: float = 0.25
    open_hush_s: float = 1.8
    quiet_s: float = 5.0
    stay_s: float = 600.0
    search_s: float = 1.0  # while no device is there
    backoff_first_s: float = 0.5  # doubles with every failed try
    backoff_limit_s: float = 8.0
    backoff_jitter: float = 0.2  # share of the back-off that is random, up or down
    # Shortest time between two updates of one kind.
    text_interval_s: float = 0.05
    bitmap_interval_s: float = 0.1
    lights_interval_s: float = 0.05
    status_interval_s: float = 0.05
    # Boards that send events as answers only: how often they are asked, within 2 s of an event and after.
    # A question under way when another program starts may spoil its start (tests/via/test_shared_bus.py),
    # so an idle board is not asked more often than a person can feel.
    events_poll_s: float = 0.01
    events_idle_poll_s: float = 0.1
    events_idle_after_s: float = 2.0
    # Transports that cannot be woken: a read lasts this share of the time since the last event or
    # update, so that polling delays output by as much at most, within these limits.
    poll_share: float = 0.02
    poll_shortest_s: float = 0.001
    poll_longest_s: float = 0.05


@dataclass(slots=True)
class LinkStats:
    """Counters since the link was made. Times in seconds, NaN before the first one.

    `first_report_s`: from `show` to its first report written; `shown_s`: to its last one acknowledged;
    both of the newest display update, rate limit and any frame under way included.
    """

    reports_in: int = 0
    reports_out: int = 0
    foreign: int = 0  # reports that were no frames for us: other firmware, other clients
    stale: int = 0  # answers that came after their request was given up
    retries: int = 0
    naks: int = 0
    events: int = 0
    dropped: int = 0  # events lost in the firmware or on the way
    connections: int = 0
    listener_failures: int = 0
    rtt_s: float = float("nan")
    rtt_worst_s: float = 0.0
    first_report_s: float = float("nan")
    shown_s: float = float("nan")


def problem_of(error: TransportError, *, searching: bool) -> LinkProblem:
    """What `error` means for the person; `searching`: no device was open."""
    match error:
        case DeviceBusyError():
            return LinkProblem.DEVICE_BUSY
        case DevicePermissionError():
            return LinkProblem.NO_PERMISSION
        case DeviceGoneError() if searching:
            return LinkProblem.NO_DEVICE
        case _:
            return LinkProblem.GONE


def described(error: Exception) -> str:
    """For the log. Our own errors hold no key content; of all others only kind and place may be told."""
    if isinstance(error, BridgeError):
        return f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
