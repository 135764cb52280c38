# SPDX-License-Identifier: Apache-2.0
"""What became of a question that was asked from outside: by a command or by the window."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class ReplyEnd(enum.StrEnum):
    """How a reply ended. Only a WHOLE one is what the model had to say, or as much as the settings allow."""

    WHOLE = "whole"
    CANCELLED = "cancelled"
    REPLACED = "replaced"  # another question came
    PAUSED = "paused"
    FORGOTTEN = "forgotten"  # everything was wiped
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Asked:
    """One moment of the newest question. `number` is the asker's, 0 before the first.

    `end` is None while the reply is under way; `reason` says why it FAILED and holds no content.
    """

    number: int = 0
    text: str = field(default="", repr=False)
    end: ReplyEnd | None = None
    reason: str = ""


def is_blank(question: str) -> bool:
    """Whether nothing in it can be read: blanks, control characters, signs without a shape."""
    return not any(sign.isprintable() and not sign.isspace() for sign in question)


class Ticket:
    """Follows one question. The first end counts: what comes after it was no part of the reply."""

    def __init__(self, number: int) -> None:
        self.asked = Asked(number)

    def grow(self, text: str) -> None:
        """The reply so far."""
        if self.asked.end is None:
            self.asked = Asked(self.asked.number, text)

    def close(self, end: ReplyEnd, reason: str = "") -> None:
        """No more of it comes."""
        asked = self.asked
        if asked.end is None:
            self.asked = Asked(asked.number, asked.text, end, reason)

    def wipe(self) -> None:
        """Forget the text of the reply."""
        asked = self.asked
        self.asked = Asked(asked.number, "", asked.end, asked.reason)
