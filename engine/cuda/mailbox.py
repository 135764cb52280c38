# SPDX-License-Identifier: Apache-2.0
"""The host's side of the mailbox: requests and replies in memory that the GPU reads and writes.

A unit is 16 bytes; its last word is the request number, written last (x86 and Arm keep the order of
these stores as numpy issues them; the GPU reads a unit in one access), so half a request is never seen.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.cuda.shape import MAX_TOKENS, MAX_TOP, REPLY_UNITS, REQUEST_UNITS, TOKENS_PER_UNIT


class Want(enum.IntFlag):
    """What the kernel leaves in device memory beside the reply."""

    TOP = 0
    LOGITS = 1  # of the last token
    ALL_LOGITS = 2  # of every token; no candidates
    PING = 4  # nothing: the kernel answers at once, without candidates


@dataclass(frozen=True, slots=True)
class Candidate:
    """A next token, its logit and its log-probability over the whole vocabulary."""

    token: int
    logit: float
    log_probability: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Best tokens first. `device_ns`: from the request being seen to the reply being written."""

    candidates: tuple[Candidate, ...] = field(repr=False)
    device_ns: int


class Mailbox:
    """A ring of request slots and one of reply slots, as uint32 arrays in shared memory."""

    def __init__(
        self, requests: NDArray[np.uint32], replies: NDArray[np.uint32], ring: int
    ) -> None:
        self.ring = ring
        self._requests = requests.reshape(ring, REQUEST_UNITS, 4)
        self._replies = replies.reshape(ring, REPLY_UNITS, 4)

    def post(
        self, number: int, tokens: Sequence[int], position: int, program: int, top: int, want: Want
    ) -> None:
        """Write request `number`; the kernel may start on it at once.

        Raises:
            ValueError: no token, more than MAX_TOKENS, or `top` out of range.
        """
        count = len(tokens)
        if not 1 <= count <= MAX_TOKENS:
            raise ValueError(f"a request holds 1 to {MAX_TOKENS} tokens, not {count}")
        if not 1 <= top <= MAX_TOP:
            raise ValueError(f"1 to {MAX_TOP} candidates can be asked for, not {top}")
        slot = self._requests[number % self.ring]
        units = -(-count // TOKENS_PER_UNIT)
        padded = np.zeros(units * TOKENS_PER_UNIT, dtype=np.uint32)
        padded[:count] = tokens
        slot[1 : units + 1, :3] = padded.reshape(units, TOKENS_PER_UNIT)
        slot[1 : units + 1, 3] = number
        slot[0, :3] = (count | int(want) << 16, position, program | top << 16)
        slot[0, 3] = number

    def answered(self, number: int) -> bool:
        """Whether the reply to `number` is complete."""
        return bool(self._replies[number % self.ring, 0, 3] == number)

    def reply(self, number: int) -> Reply:
        """The reply to `number`; call after `answered`."""
        slot = self._replies[number % self.ring].copy()
        top = int(slot[0, 1]) if slot[2, 3] == number else 0
        floats = slot.view(np.float32)
        candidates = tuple(
            Candidate(int(slot[2 + i, 0]), float(floats[2 + i, 1]), float(floats[2 + i, 2]))
            for i in range(top)
        )
        return Reply(candidates, int(slot[1, 0]) | int(slot[1, 1]) << 32)

    def ring_bell(self, number: int, want: Want) -> None:
        """Post a request of one unit: the shortest way to the kernel and back."""
        self._requests[number % self.ring, 0] = (int(want) << 16, 0, 1 << 16, number)

    def clear(self) -> None:
        """Forget every request and reply."""
        self._requests[:] = 0
        self._replies[:] = 0
