# SPDX-License-Identifier: Apache-2.0
"""The predictor that suggestions are compared with: a word trigram with interpolated Kneser-Ney smoothing
(Kneser and Ney 1995, doi 10.1109/ICASSP.1995.479394), which also completes the word in progress."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable

# Words with their apostrophes, and single signs. The same idea of a word as engine/wordbreak.py.
_TOKEN = re.compile(r"\w+(?:['\u2019]\w+)*|[^\w\s]|\n")
_OPEN_WORD = re.compile(r"\w+(?:['\u2019]\w*)*\Z")
_DISCOUNT = 0.75
_START = "\n"


class _Followers:
    """Counts of what follows one context."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.total = 0

    def add(self, word: str) -> bool:
        """Count `word`; whether it is new here."""
        self.counts[word] += 1
        self.total += 1
        return self.counts[word] == 1

    def discounted(self, word: str) -> float:
        return max(self.counts[word] - _DISCOUNT, 0.0) / self.total

    @property
    def left_over(self) -> float:
        return _DISCOUNT * len(self.counts) / self.total


class TrigramPredictor:
    """Learns from `text`; a line's end counts as a token."""

    def __init__(self, text: str) -> None:
        self._after_two: defaultdict[tuple[str, str], _Followers] = defaultdict(_Followers)
        self._after_one: defaultdict[str, _Followers] = defaultdict(_Followers)
        self._anywhere = _Followers()
        tokens = [_START, _START, *_TOKEN.findall(text)]
        for first, second, word in zip(tokens, tokens[1:], tokens[2:], strict=False):
            # Kneser-Ney: shorter contexts count in how many longer ones a word was seen.
            if self._after_two[first, second].add(word) and self._after_one[second].add(word):
                self._anywhere.add(word)
        self._words = sorted(word for word in self._anywhere.counts if word[0].isalnum())
        self._commonest = [word for word, _ in self._anywhere.counts.most_common(200)]

    def probability(self, word: str, first: str, second: str) -> float:
        """Of `word` after the tokens `first` and `second`."""
        result = self._anywhere.discounted(word)
        for followers in (self._after_one.get(second), self._after_two.get((first, second))):
            if followers is not None:
                result = followers.discounted(word) + followers.left_over * result
        return result

    def suggest(self, text: str, count: int) -> list[tuple[str, float]]:
        """What may be appended to `text`, likeliest first: the rest of a word, or the next word."""
        match = _OPEN_WORD.search(text)
        begun = match.group() if match else ""
        first, second = ([_START, _START, *_TOKEN.findall(text[: len(text) - len(begun)])])[-2:]
        if not begun:
            space = "" if not text or text[-1].isspace() else " "
            return _best(self._next_words(first, second, space), count)
        words = self._beginning_with(begun)
        chances = {word: self.probability(word, first, second) for word in words}
        total = sum(chances.values())
        if not total:
            return []
        found = {w[len(begun) :]: p / total for w, p in chances.items() if w != begun}
        # The word may be whole: then the next one competes, with its space.
        ended = chances.get(begun, 0.0) / total
        following = self._next_words(second, begun, " ")
        found |= {word: ended * p for word, p in following.items()}
        return _best(found, count)

    def _next_words(self, first: str, second: str, space: str) -> dict[str, float]:
        words = set(self._commonest)
        for followers in (self._after_one.get(second), self._after_two.get((first, second))):
            if followers is not None:
                words |= followers.counts.keys()
        return {
            space + word: self.probability(word, first, second)
            for word in words
            if word[0].isalnum()
        }

    def _beginning_with(self, begun: str) -> Iterable[str]:
        for index in range(bisect_left(self._words, begun), len(self._words)):
            if not self._words[index].startswith(begun):
                return
            yield self._words[index]


def _best(found: dict[str, float], count: int) -> list[tuple[str, float]]:
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:count]
