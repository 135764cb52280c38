# SPDX-License-Identifier: Apache-2.0
"""The frame that waits for its answer, and all its copies."""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.link_output import AnyChannel
from firmware_bridge.protocol.frames import Frame, encode
from firmware_bridge.protocol.messages import Message
from firmware_bridge.via.protocol import UNHANDLED


@dataclass(slots=True)
class Request:
    """`seqs` are the numbers of all copies; an answer to any of them counts."""

    message: Message
    first: bool = True
    last: bool = True
    channel: AnyChannel | None = None
    report: bytes = field(default=b"", repr=False)
    seqs: list[int] = field(default_factory=list)
    sent_at: float = 0.0
    deadline: float = float("inf")  # until it is written

    def came_back_as(self, report: bytes) -> bool:
        """Whether firmware without our module returned it unread: Vial as it is, VIA marked."""
        is_echo = len(report) > 1 and report[1:] == self.report[1:]
        return is_echo and report[0] in (self.report[0], UNHANDLED)

    def copy(self, client: int, seq: int, report_length: int) -> bytes:
        """The report of one more copy."""
        self.seqs.append(seq)
        frame = Frame(self.message.type, client, seq, self.message.pack(), self.first, self.last)
        self.report = encode(frame, report_length)
        return self.report
