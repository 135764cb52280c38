# SPDX-License-Identifier: Apache-2.0
"""What was typed lately: a bounded text in memory, never on disk, in a log or in `repr`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Delete,
    Direction,
    Enter,
    Escape,
    TextEvent,
    TextTyped,
)

# The word before the cursor, where all editors agree on its beginning: they differ about signs, apostrophes,
# several spaces, line ends, and scripts without spaces (from Thai on).
_PLAIN_WORD = re.compile(r"(?<![\w'\u2019])[^\W\u0e00-\U0010ffff]+[ \t]?\Z")
# Lines up to here fit any window, so that none of their line ends is the window's.
_UNWRAPPED = 40


@dataclass(frozen=True, slots=True)
class TextUnknown:
    """What stands before the cursor is unknown from here on: keys were lost, or the system repeated one."""


@dataclass(frozen=True, slots=True)
class MacroRan:
    """A macro key with a name was pressed; what it typed, if anything, is unknown."""

    name: str


Edit = TextEvent | TextUnknown | MacroRan


class TypingContext:
    """The text around the cursor, as far as the keys tell it.

    A run of typing is text that is known from its first character on. The cursor may go back into it and
    forward again. Anything after which its place or the text before it is unknown (a cursor that leaves
    the run, Tab, a shortcut, lost keys) ends the run, and the next one begins empty: nothing is guessed,
    but for one thing: a run is taken to be typed at the end of a line, as most text is.

    At most `limit` characters are kept. A full text is cut to about half at a word's border, so that
    its beginning stays the same for many keys and the engine can reuse what it computed for it.
    """

    __slots__ = ("_after", "_before", "_ends_line", "_limit", "_macro")

    def __init__(self, limit: int) -> None:
        if limit < 16:
            raise ValueError("a context holds at least 16 characters")
        self._limit = limit
        self._before = ""
        self._after = ""
        self._ends_line = True
        self._macro = ""

    def __repr__(self) -> str:
        return f"TypingContext({len(self)} of {self._limit} characters)"

    def __len__(self) -> int:
        return len(self._before) + len(self._after)

    @property
    def text(self) -> str:
        """The current run up to the cursor, Enter as newline."""
        return self._before

    @property
    def after(self) -> str:
        """What is known to stand behind the cursor."""
        return self._after

    @property
    def is_inside_word(self) -> bool:
        """Whether the cursor stands before the rest of a word."""
        return self._after[:1].isalnum()

    @property
    def last_line(self) -> str:
        """The last line of the run that is not empty; the macro that it followed in front, as `[name]`."""
        _, newline, line = self._before.rstrip().rpartition("\n")
        return line if newline or not self._macro else f"[{self._macro}] {line}".rstrip()

    def apply(self, edit: Edit) -> bool:
        """Do what `edit` says; whether the text before the cursor is another one now."""
        before = self._before
        match edit:
            case TextTyped(text):
                self._insert(text)
            case Enter():
                self._insert("\n")
            case Backspace(word=False):
                self._before = before[:-1]
            case Backspace(word=True) if word := _PLAIN_WORD.search(before):
                self._before = before[: word.start()]
            case Delete(word=False) if self._after:
                self._after = self._after[1:]
            case Delete():
                # Of what follows it took a part that is not known.
                self._after, self._ends_line = "", False
            case CursorMoved(selecting=False):
                self._move(edit.direction, edit.word)
            case Escape():
                pass
            case MacroRan(name):
                self.wipe()
                self._macro = name
            case _:
                self.wipe()
        return self._before != before

    def wipe(self) -> None:
        """Forget the text."""
        self._before = ""
        self._after = ""
        self._ends_line = True
        self._macro = ""

    def _insert(self, text: str) -> None:
        whole = self._before + text
        half = self._limit // 2
        if len(whole) + len(self._after) > self._limit:
            if len(self._after) > half:
                self._after, self._ends_line = self._after[:half], False
            kept = whole[-half:]
            # A text without spaces (a URL, Chinese) is cut between characters.
            border = next((i for i, c in enumerate(kept[: len(kept) // 2]) if c.isspace()), -1)
            whole = kept[border + 1 :]
        self._before = whole

    # ---------------------------------------------------------------- the cursor

    def _move(self, direction: Direction, by_word: bool) -> None:
        place = self._place_of(direction, by_word)
        if place is None:
            self.wipe()
            return
        whole = self._before + self._after
        self._before, self._after = whole[:place], whole[place:]

    def _place_of(self, direction: Direction, by_word: bool) -> int | None:
        """Where in the run the cursor goes; None: out of it, or editors differ."""
        here = len(self._before)
        match direction, by_word:
            case Direction.LEFT, False:
                return here - 1 if self._before else None
            case Direction.LEFT, True:
                word = _PLAIN_WORD.search(self._before)
                # At the beginning of the run it may have begun before.
                return (word.start() or None) if word else None
            case Direction.RIGHT, False:
                return here + 1 if self._after else None
            case Direction.HOME, False:
                return self._line_start()
            case Direction.END, False:
                return self._line_end()
            case _:
                return None

    def _line_start(self) -> int | None:
        """None if the line began before the run, or some editors would stop after its indent."""
        start = self._before.rfind("\n") + 1
        line = self._before[start:]
        first = (line + self._after)[:1]
        is_plain = first not in (" ", "\t") if first else self._ends_line
        return start if start and is_plain and len(line) <= _UNWRAPPED else None

    def _line_end(self) -> int | None:
        rest, newline, _ = self._after.partition("\n")
        if not newline and not self._ends_line:
            return None
        end = len(self._before) + len(rest)
        start = self._before.rfind("\n") + 1
        fits = start > 0 and end - start <= _UNWRAPPED
        # A window may break a longer line at any space.
        return end if fits or not any(c.isspace() for c in rest) else None
