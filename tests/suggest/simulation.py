# SPDX-License-Identifier: Apache-2.0
"""How many keys suggestions save: a person who types a given text and takes every suggestion that is right.

After each key the predictor is asked for its candidates, as the companion asks the engine. A candidate is
right if the text goes on with it and it does not end inside a word. Taking one costs one key, whichever
it is; the longest right one that saves keys is taken. KSR = 1 - keys / characters
(Trnka and McCoy 2008, "Evaluating Word Prediction: Framing Keystroke Savings").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# The text typed so far -> what may follow, best first.
Predictor = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Savings:
    """Of one text: characters typed, keys pressed for them, suggestions taken, and words in those."""

    characters: int
    keys: int
    taken: int
    words_taken: int

    @property
    def rate(self) -> float:
        """The keystroke saving rate."""
        return 1 - self.keys / self.characters if self.characters else 0.0

    def __add__(self, other: Savings) -> Savings:
        return Savings(
            self.characters + other.characters,
            self.keys + other.keys,
            self.taken + other.taken,
            self.words_taken + other.words_taken,
        )


NOTHING = Savings(0, 0, 0, 0)


def type_with_suggestions(text: str, predict: Predictor, start: int = 0) -> Savings:
    """Type `text` from `start` on; what stands before it was there already."""
    place, keys, taken, words = start, 0, 0, 0
    while place < len(text):
        best = max(
            (c for c in predict(text[:place]) if is_right(text, place, c)), key=len, default=""
        )
        keys += 1
        if len(best) > 1:
            taken += 1
            words += len(best.split())
            place += len(best)
        else:
            place += 1
    return Savings(len(text) - start, keys, taken, words)


def is_right(text: str, place: int, candidate: str) -> bool:
    """Whether `text` goes on with `candidate` at `place` and its last word ends there."""
    end = place + len(candidate)
    return text.startswith(candidate, place) and not _is_inside_word(text, end)


def _is_inside_word(text: str, place: int) -> bool:
    if not 0 < place < len(text) or not text[place - 1].isalnum():
        return False
    following = text[place : place + 2]
    return following[0].isalnum() or (following[0] in "'\u2019" and following[1:].isalnum())
