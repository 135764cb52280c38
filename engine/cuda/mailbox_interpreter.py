# SPDX-License-Identifier: Apache-2.0
"""The kernel's end of the mailbox in Python: what `kernels/mailbox.cuh` does with the same memory.

The executable spec of the protocol. Nothing here computes; whoever serves says what a request's reply is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda.mailbox import PASSED_OVER, Candidate, Want
from engine.cuda.shape import REPLY_UNITS, REQUEST_UNITS, TOKENS_PER_UNIT

_LEAVE: Final = 0  # words of the control unit
_NEWEST: Final = 1


@dataclass(frozen=True, slots=True)
class Request:
    """`tokens` is empty for a ping and for a request that was passed over."""

    number: int
    tokens: tuple[int, ...]
    position: int
    program: int
    top: int
    want: Want
    passed_over: bool = False


class KernelEnd:
    """Block 0 of one launch. `first`: the number of its first request.

    Each method reads or writes whole units, as the kernel does; between two calls the host may store anything.
    """

    def __init__(
        self,
        requests: NDArray[np.uint32],
        replies: NDArray[np.uint32],
        control: NDArray[np.uint32],
        ring: int,
        first: int,
    ) -> None:
        self._requests = requests.reshape(ring, REQUEST_UNITS, 4)
        self._replies = replies.reshape(ring, REPLY_UNITS, 4)
        self._control = control
        self._ring = ring
        self.number = first
        self._header: NDArray[np.uint32] | None = None
        self._tokens: list[int] = []

    @property
    def told_to_leave(self) -> bool:
        """Looked at only while no request is there."""
        return bool(self._control[_LEAVE])

    def look(self) -> Request | None:
        """One step towards the next request: reads one unit. The request, once all of it is there."""
        slot = self._requests[self.number % self._ring]
        if self._header is None:
            unit = slot[0].copy()
            if unit[3] != self.number:
                return None
            if int(unit[0]) >> 16 & Want.REPLACEABLE and self._newer_is_there():
                return self._request(unit, passed_over=True)
            self._header, self._tokens = unit, []
        count = int(self._header[0]) & 0xFFFF
        if len(self._tokens) < count:
            unit = slot[1 + len(self._tokens) // TOKENS_PER_UNIT].copy()
            if unit[3] == self.number:
                self._tokens += [int(t) for t in unit[:3]]
        if len(self._tokens) < count:
            return None
        header, self._header = self._header, None
        return self._request(header, passed_over=False)

    def _newer_is_there(self) -> bool:
        ahead = (int(self._control[_NEWEST]) - self.number) & 0xFFFFFFFF
        return 0 < ahead < 1 << 31

    def _request(self, header: NDArray[np.uint32], passed_over: bool) -> Request:
        first, position, third = (int(word) for word in header[:3])
        return Request(
            number=self.number,
            tokens=() if passed_over else tuple(self._tokens[: first & 0xFFFF]),
            position=position,
            program=third & 0xFFFF,
            top=third >> 16,
            want=Want.PING if passed_over else Want(first >> 16),
            passed_over=passed_over,
        )

    def answer(self, request: Request, candidates: Sequence[Candidate], device_ns: int) -> None:
        """Write the reply, its first unit last, and go on to the next number."""
        for _ in self.answering(request, candidates, device_ns):
            pass

    def answering(
        self, request: Request, candidates: Sequence[Candidate], device_ns: int
    ) -> Iterator[int]:
        """As `answer`, one unit at a time: yields which was written."""
        slot = self._replies[request.number % self._ring]
        number = request.number
        for rank, candidate in enumerate(candidates):
            floats = np.array([candidate.logit, candidate.log_probability], dtype=np.float32)
            slot[2 + rank] = (candidate.token, *floats.view(np.uint32), number)
            yield 2 + rank
        slot[1] = (device_ns & 0xFFFFFFFF, device_ns >> 32, 0, number)
        yield 1
        mark = PASSED_OVER if request.passed_over else 0
        slot[0] = (len(request.tokens), request.top, mark, number)
        self.number = number + 1
        yield 0
