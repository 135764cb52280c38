# SPDX-License-Identifier: Apache-2.0
"""Phrases: suggested words with those that most likely follow them, and which suggestions to show.

The word search of `engine.words` is repeated behind each suggested word, for one word each time, so the
seams between tokens are treated as well as everywhere. A phrase's probability is the word's, times the
probability that a space follows where the word ends, times that of the next word there, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.session import Session, never
from engine.vocabulary import Vocabulary
from engine.words import Window, WordCandidate, suggest_words, whole

# Below this a longer phrase is more often wrong than it saves a key.
_LEAST_SHARE = 0.3


def extend_words(
    session: Session,
    vocabulary: Vocabulary,
    text: str,
    words: Sequence[WordCandidate],
    most_words: int,
    cancelled: Callable[[], bool] = never,
    window: Window = whole,
) -> tuple[list[WordCandidate], int]:
    """The phrases of up to `most_words` words that begin with one of `words`; tokens computed for them.

    Only phrases whose every next word is likely. The session afterwards holds the text with a suggested
    word; what it shares with the next text is kept.

    Raises:
        ContextOverflowError, OperationCancelledError: as suggest_words.
    """
    phrases: list[WordCandidate] = []
    computed = 0
    for word in words:
        phrase = word
        for _ in range(most_words - 1):
            with_space = f"{text}{phrase.text} "
            found = suggest_words(session, vocabulary, with_space, 1, cancelled, window)
            computed += found.computed
            if not found.candidates:
                break
            following = found.candidates[0]
            share = _space_share(session, vocabulary) * following.probability
            if share < _LEAST_SHARE:
                break
            phrase = WordCandidate(f"{phrase.text} {following.text}", phrase.probability * share)
            phrases.append(phrase)
    return phrases, computed


def _space_share(session: Session, vocabulary: Vocabulary) -> float:
    """How likely a space follows where the word before it ends; the session's tokens end there."""
    probabilities = np.exp(session.log_probabilities())
    spaces = float(probabilities[vocabulary.starting_with(b" ")].sum())
    ends = float(probabilities[vocabulary.breaks].sum())
    return spaces / ends if ends else 0.0


def choose_candidates(
    words: Sequence[WordCandidate], phrases: Sequence[WordCandidate], count: int
) -> list[WordCandidate]:
    """Of words and phrases those that save most keys on average, in falling probability.

    A person takes the longest one that is right, with one key. A word saves its characters but that key;
    each further word saves the key that it would be taken with.
    """
    pool = [*words, *phrases]
    chosen: list[WordCandidate] = []
    while len(chosen) < count and len(chosen) < len(pool):
        rest = [candidate for candidate in pool if candidate not in chosen]
        chosen.append(max(rest, key=lambda candidate: _keys_saved([*chosen, candidate], words)))
    return sorted(chosen, key=lambda candidate: (-candidate.probability, candidate.text))


def _keys_saved(shown: Sequence[WordCandidate], words: Sequence[WordCandidate]) -> float:
    """Expected keys that the best right one of `shown` saves."""
    total = 0.0
    for word in words:
        # These are right one within the other: the shorter one whenever the longer one is.
        nested = sorted(
            (s for s in shown if s.text == word.text or s.text.startswith(word.text + " ")),
            key=lambda candidate: -len(candidate.text),
        )
        longer = 0.0
        for candidate in nested:
            further = candidate.text[len(word.text) :].count(" ")
            # A word of one character saves nothing, but is shown where nothing saves more.
            saved = max(len(word.text) - 1, 0.01) + further
            total += (candidate.probability - longer) * saved
            longer = max(longer, candidate.probability)
    return total
