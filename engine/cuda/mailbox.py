# SPDX-License-Identifier: Apache-2.0
"""The host's side of the mailbox: requests and replies in memory that the GPU reads and writes.

A unit is 16 bytes; its last word is the request number, written last; the GPU reads a unit in one access,
so half a request is never seen. Requests are answered in the order of their numbers, by the GPU alone. One
that is REPLACEABLE is passed over if a newer one is there when its turn comes: of many contexts that wait,
only the newest is computed then. `mailbox_interpreter.py` is the other side.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.cuda.errors import MailboxFullError
from engine.cuda.shape import (
    MAX_RING,
    MAX_TOKENS,
    MAX_TOP,
    REPLY_UNITS,
    REQUEST_UNITS,
    TOKENS_PER_UNIT,
)


class Want(enum.IntFlag):
    """What the kernel leaves in device memory beside the reply, and whether it must."""

    TOP = 0
    LOGITS = 1  # of the last token
    ALL_LOGITS = 2  # of every token; no candidates
    PING = 4  # nothing: the kernel answers at once, without candidates
    # Only if no newer request is there. Nothing may be asked for that needs its keys and values.
    REPLACEABLE = 8


PASSED_OVER = 16  # flag of a reply


@dataclass(frozen=True, slots=True)
class Candidate:
    """A next token, its logit and its log-probability over the whole vocabulary."""

    token: int
    logit: float
    log_probability: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Best tokens first. `device_ns`: from the request being seen to the reply being written.

    `passed_over`: nothing was computed, because a newer request was there.
    """

    candidates: tuple[Candidate, ...] = field(repr=False)
    device_ns: int
    passed_over: bool = False


class Mailbox:
    """A ring of request slots and one of reply slots, as uint32 arrays in shared memory.

    Numbers begin at 1 and have no gaps. `control`: four words, of which the second is the newest number.

    Raises on creation:
        ValueError: `ring` is not 1 to MAX_RING.
    """

    def __init__(
        self,
        requests: NDArray[np.uint32],
        replies: NDArray[np.uint32],
        control: NDArray[np.uint32],
        ring: int,
    ) -> None:
        if not 1 <= ring <= MAX_RING:
            raise ValueError(f"a ring has 1 to {MAX_RING} slots, not {ring}")
        self.ring = ring
        self._requests = requests.reshape(ring, REQUEST_UNITS, 4)
        self._replies = replies.reshape(ring, REPLY_UNITS, 4)
        # Single words, several times as fast as through numpy: the doorbell is made of them.
        self._asked, self._answered, self._control = (
            array.data.cast("B").cast("I") for array in (requests, replies, control)
        )
        self._served = 0
        self._fence = threading.Lock()

    def post(
        self, number: int, tokens: Sequence[int], position: int, program: int, top: int, want: Want
    ) -> None:
        """Write request `number`; the kernel may start on it at once.

        Raises:
            ValueError: no token, more than MAX_TOKENS, or `top` out of range.
            MailboxFullError: as many requests wait as the ring has slots; nothing was written.
        """
        count = len(tokens)
        if not 1 <= count <= MAX_TOKENS:
            raise ValueError(f"a request holds 1 to {MAX_TOKENS} tokens, not {count}")
        if not 1 <= top <= MAX_TOP:
            raise ValueError(f"1 to {MAX_TOP} candidates can be asked for, not {top}")
        self._require_room(number)
        slot = self._requests[number % self.ring]
        units = -(-count // TOKENS_PER_UNIT)
        padded = np.zeros(units * TOKENS_PER_UNIT, dtype=np.uint32)
        padded[:count] = tokens
        slot[1 : units + 1, :3] = padded.reshape(units, TOKENS_PER_UNIT)
        self._order_stores()
        slot[1 : units + 1, 3] = number
        self._head(number, count | int(want) << 16, position, program | top << 16)

    def ring_bell(self, number: int, want: Want) -> None:
        """Post a request of one unit: the shortest way to the kernel and back.

        Raises:
            MailboxFullError: as `post`.
        """
        self._require_room(number)
        self._head(number, int(want) << 16, 0, 1 << 16)

    def _head(self, number: int, first: int, position: int, third: int) -> None:
        at, words = number % self.ring * REQUEST_UNITS * 4, self._asked
        words[at] = first
        words[at + 1] = position
        words[at + 2] = third
        self._order_stores()
        words[at + 3] = number
        self._control[1] = number

    def _order_stores(self) -> None:
        # x86 keeps the order of stores by itself. Arm does not; there a lock's release and the next
        # acquire keep what was stored before from being seen after.
        with self._fence:
            pass
        with self._fence:
            pass

    def _require_room(self, number: int) -> None:
        if number - self.served() > self.ring:
            raise MailboxFullError(self.ring)

    def served(self) -> int:
        """The number up to which all requests have been answered."""
        while self.answered(self._served + 1):
            self._served += 1
        return self._served

    def answered(self, number: int) -> bool:
        """Whether the reply to `number` is complete; it can be read until `ring` more have been posted."""
        answered: bool = self._answered[number % self.ring * REPLY_UNITS * 4 + 3] == number
        return answered

    def reply(self, number: int) -> Reply:
        """The reply to `number`; call after `answered`."""
        slot = self._replies[number % self.ring].copy()
        top = int(slot[0, 1]) if slot[2, 3] == number else 0
        floats = slot.view(np.float32)
        candidates = tuple(
            Candidate(int(slot[2 + i, 0]), float(floats[2 + i, 1]), float(floats[2 + i, 2]))
            for i in range(top)
        )
        nanoseconds = int(slot[1, 0]) | int(slot[1, 1]) << 32
        return Reply(candidates, nanoseconds, bool(slot[0, 2] & PASSED_OVER))

    def clear(self) -> None:
        """Forget every request and reply; the next number is 1."""
        self._requests[:] = 0
        self._replies[:] = 0
        self._control[1] = 0
        self._served = 0
