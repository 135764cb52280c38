# SPDX-License-Identifier: Apache-2.0
"""What was typed lately: a bounded text in memory, never on disk, in a log or in `repr`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firmware_bridge.keys.text_events import (
    Backspace,
    Delete,
    Enter,
    Escape,
    TextEvent,
    TextTyped,
)

_LAST_WORD = re.compile(r"(?:\w+|[^\w\s]+)?[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class TextUnknown:
    """What stands before the cursor is unknown from here on: keys were lost, or the system repeated one."""


Edit = TextEvent | TextUnknown


class TypingContext:
    """The text before the cursor, as far as the keys tell it.

    A run of typing is text that is known from its first character to the cursor. Anything after which
    the text before the cursor is unknown (arrows, Tab, a shortcut, lost keys) ends the run, and the
    next one begins empty: nothing is guessed.

    At most `limit` characters are kept. A full text is cut to about half at a word's border, so that
    its beginning stays the same for many keys and the engine can reuse what it computed for it.
    """

    __slots__ = ("_limit", "_text")

    def __init__(self, limit: int) -> None:
        if limit < 16:
            raise ValueError("a context holds at least 16 characters")
        self._limit = limit
        self._text = ""

    def __repr__(self) -> str:
        return f"TypingContext({len(self._text)} of {self._limit} characters)"

    def __len__(self) -> int:
        return len(self._text)

    @property
    def text(self) -> str:
        """The current run, Enter as newline."""
        return self._text

    @property
    def last_line(self) -> str:
        """The last line of the run that is not empty."""
        return self._text.rstrip().rpartition("\n")[2]

    def apply(self, edit: Edit) -> bool:
        """Do what `edit` says; whether the text is another one now."""
        before = self._text
        match edit:
            case TextTyped(text):
                self._append(text)
            case Enter():
                self._append("\n")
            case Backspace(word=False):
                self._text = before[:-1]
            case Backspace(word=True):
                self._text = _without_last_word(before)
            case Delete() | Escape():
                pass  # what stands before the cursor stays
            case _:
                self.wipe()
        return self._text != before

    def wipe(self) -> None:
        """Forget the text."""
        self._text = ""

    def _append(self, text: str) -> None:
        whole = self._text + text
        if len(whole) > self._limit:
            kept = whole[-(self._limit // 2) :]
            # A text without spaces (a URL, Chinese) is cut between characters.
            border = next((i for i, c in enumerate(kept[: len(kept) // 2]) if c.isspace()), -1)
            whole = kept[border + 1 :]
        self._text = whole


def _without_last_word(text: str) -> str:
    """As most editors do it: spaces and the word or signs before them, else one line end."""
    shorter = _LAST_WORD.sub("", text, count=1)
    return shorter if shorter != text else text[:-1]
