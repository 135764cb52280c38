# SPDX-License-Identifier: Apache-2.0
"""Candidates of suggest mode: how typing narrows them, and their lines on a display."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.companion.picture import Size, clipped, filled

MARK = ">"  # in front of the candidate that the accept key types
_BAR = 5  # characters of the longest probability bar
_FIGURE = 5  # " 100%"
# Columns that a word keeps beside the figure; on a narrower display it has no figure.
_LEAST_ROOM = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """A continuation of the text as it is now; `probability` is None where it is not known any more."""

    text: str = field(repr=False)
    probability: float | None

    def whole(self, stem: str) -> str:
        """With the beginning `stem` of the word that it completes, or its space in front."""
        return self.text if self.text[:1].isspace() else stem + self.text


def narrowed(shown: Sequence[Shown], typed: str) -> tuple[Shown, ...]:
    """The candidates that `typed` has begun and not finished, less what was typed."""
    return tuple(
        Shown(s.text[len(typed) :], None)
        for s in shown
        if s.text.startswith(typed) and s.text != typed
    )


def fitting(shown: Sequence[Shown], stem: str, size: Size, margin: int) -> tuple[Shown, ...]:
    """The candidates without the last words of phrases that a line has no room for, each text once."""
    room = _room(size) - margin
    found: dict[str, Shown] = {}
    for candidate in shown:
        text = candidate.text
        while (
            size.width(size.spelled(Shown(text, None).whole(stem))) > room and " " in text.strip()
        ):
            text = text.rpartition(" ")[0]
        known = candidate.probability if text == candidate.text else None
        found.setdefault(text, Shown(text, known))
    return tuple(found.values())


def candidate_lines(
    shown: Sequence[Shown], stem: str, size: Size, marks: Sequence[str]
) -> list[str]:
    """One line per candidate: its mark, the whole word, a bar where there is room, the percentage.

    Without marks words begin in the first column; with them, they stand exactly as they would be typed.
    """
    whole = [s.whole(stem) if marks else s.whole(stem).strip() for s in shown]
    room = _room(size)
    words = [
        mark + clipped(word, room - len(mark), size)
        for mark, word in zip(marks or [""] * len(whole), whole, strict=True)
    ]
    bar = _BAR if max(map(size.width, words), default=0) + 1 + _BAR <= room else 0
    has_figures = room < size.columns
    lines = []
    for word, candidate in zip(words, shown, strict=True):
        share = candidate.probability
        figure = "" if share is None or not has_figures else f"{share:{_FIGURE}.0%}"
        strip = "" if share is None else "=" * round(share * bar)
        lines.append(f"{filled(word, room - bar, size)}{strip:<{bar}}{figure}")
    return lines


def _room(size: Size) -> int:
    """Columns for a word."""
    return size.columns - (_FIGURE if size.columns - _FIGURE >= _LEAST_ROOM else 0)
