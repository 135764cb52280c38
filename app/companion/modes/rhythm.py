# SPDX-License-Identifier: Apache-2.0
"""How fast and how surely a person types, in a few words. Holds times only, never text."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_WINDOW_S = 10.0  # what counts as the present rhythm
_SLOW = 3.3  # keys a second; a word counts five keys, so this is 40 words a minute
_FAST = 6.3  # 75 words a minute
_MANY_CORRECTIONS = 0.15  # share of all keys


class Rhythm:
    """The times of the latest keys, and which of them took something back."""

    def __init__(self) -> None:
        self._keys: deque[tuple[float, bool]] = deque(maxlen=256)

    def add(self, at: float, is_correction: bool) -> None:
        """A key at `at`, in seconds of any clock that only grows."""
        self._keys.append((at, is_correction))

    def wipe(self) -> None:
        """Forget all keys."""
        self._keys.clear()

    def keys_per_second(self, now: float) -> float:
        """Over the keys of the last 10 s; 0 with fewer than two of them."""
        times = [at for at, _ in self._keys if at > now - _WINDOW_S]
        if len(times) < 2 or times[-1] <= times[0]:
            return 0.0
        return (len(times) - 1) / (times[-1] - times[0])

    def describe(self, words: Mapping[str, str], now: float) -> str:
        """The rhythm in the words of `rhythm` in assets/prompts/react.toml."""
        speed = self.keys_per_second(now)
        if not speed:
            return words["still"]
        pace = words["slow" if speed < _SLOW else "fast" if speed > _FAST else "steady"]
        recent = [correction for at, correction in self._keys if at > now - _WINDOW_S]
        if sum(recent) / len(recent) >= _MANY_CORRECTIONS:
            return words["corrected"].format(pace=pace)
        return pace
