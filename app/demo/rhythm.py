# SPDX-License-Identifier: Apache-2.0
"""When a person presses the next key.

Gaps between keys follow a log-normal distribution, as large studies of typing report (Dhakal et al.,
"Observations on Typing from 136 Million Keystrokes", CHI 2018: mean gap 239 ms at 52 words a minute,
long right tail). A word counts five characters. Seeded, so that a script replays the same way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

_SIGMA = 0.45  # spread of ln(gap); 0.45 gives a 90th percentile of about 1.6 times the mean
_AFTER_WORD = 1.25  # the first key of a word comes a little later
_FASTEST_S = 0.015
_HOLD_S = 0.4  # a key is held for this share of the mean gap, at most 90 ms
_LONGEST_HOLD_S = 0.09


class TypingRhythm:
    """Gaps in seconds for one typist at `words_per_minute`."""

    def __init__(self, words_per_minute: float, seed: int = 1) -> None:
        if not 1 <= words_per_minute <= 1000:
            raise ValueError("words per minute must be 1..1000")
        self._mean_s = 60 / (words_per_minute * 5)
        self._random = random.Random(seed)

    @property
    def hold_s(self) -> float:
        """How long each key stays down."""
        return min(self._mean_s * _HOLD_S, _LONGEST_HOLD_S)

    def gaps(self, text: str) -> Iterator[float]:
        """Seconds to wait before each character of `text`; their mean is that of the typist."""
        # Keep the overall pace although word starts are slower: one character in five starts a word.
        base = self._mean_s / (0.8 + 0.2 * _AFTER_WORD)
        mu = math.log(base) - _SIGMA**2 / 2
        previous = ""
        for character in text:
            gap = self._random.lognormvariate(mu, _SIGMA)
            if previous == " ":
                gap *= _AFTER_WORD
            previous = character
            yield max(_FASTEST_S, gap)
