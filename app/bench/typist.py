# SPDX-License-Identifier: Apache-2.0
"""How a person types a question and asks it: a seeded model of the gaps between keys.

- A gap is log-normal around the typist's mean (Roeser et al., "Modelling typing disfluencies as finite
  mixture process", Reading and Writing 2021: fluent gaps and hesitations are two log-normal processes).
  A word counts five characters, hesitations come on top.
- The mean depends on the pair of keys: keys of two hands follow each other 30 to 60 ms sooner than those
  of one, and the first key of a word comes a fifth later (Salthouse, "Perceptual, cognitive, and motoric
  aspects of transcription typing", Psychological Bulletin 1986). The factors below turn that into shares.
- Hesitations begin at 0.5 s (Chukharev-Hudilainen, "Pauses in spontaneous written communication", Journal
  of Writing Research 2014, measured in a chat). No study was found for the pause before Enter, so it is a
  choice: with Pause.RHYTHM it is that of a word's first key, with Pause.THINK a hesitation, and with
  Pause.MIXED one or the other with equal chances.
- How often words are typed in a burst, letters are wrong or people hesitate is our choice too.
"""

from __future__ import annotations

import enum
import math
import random
from dataclasses import dataclass
from importlib import resources

from firmware_bridge.keys.layout import Layout
from firmware_bridge.keys.typist import KeyStroke, keys_for

_SIGMA = 0.45  # of ln(gap), as in the demo's rhythm
_FINGERS = ("qaz", "wsx", "edc", "rfvtgb", "", "", "yhnujm", "ik", "ol", "p")
_RIGHT_HAND = 5  # the first finger of it
_OTHER_HAND, _SAME_HAND, _SAME_FINGER, _SAME_KEY, _WORD_START, _SPACE = (
    0.85,
    1.1,
    1.25,
    0.9,
    1.2,
    0.9,
)
_BURST_CHANCE, _BURST = 0.15, 0.6
_THINK_CHANCE, _THINK_MEDIAN_S, _THINK_SIGMA, _THINK_LEAST_S = 0.06, 0.8, 0.5, 0.5
_TYPO_CHANCE, _NOTICED_AFTER, _NOTICE = 0.03, (0, 0, 0, 1, 1, 2), 1.5
_FASTEST_S = 0.015
_HOLD_S = (0.07, 0.11)  # shortest and longest


class Pause(enum.StrEnum):
    """The pause between the last key of a question and the trigger."""

    MIXED = "mixed"
    RHYTHM = "rhythm"
    THINK = "think"


@dataclass(frozen=True, slots=True)
class Press:
    """A key `gap_s` after the press before it, held for `hold_s`."""

    key: KeyStroke
    gap_s: float
    hold_s: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The presses that write one question, and the gap between the last one and the trigger."""

    presses: tuple[Press, ...]
    trigger_gap_s: float


def questions() -> list[str]:
    """The short questions that are typed."""
    text = resources.files("assets").joinpath("bench/questions.txt").read_text(encoding="utf-8")
    return text.split("\n")[:-1]


class Typist:
    """One person at `words_per_minute`; the same seed types the same way.

    Raises:
        ValueError: no speed of 10..300 words a minute.
    """

    def __init__(
        self, words_per_minute: float, layout: Layout, pause: Pause = Pause.MIXED, seed: int = 1
    ) -> None:
        if not 10 <= words_per_minute <= 300:
            raise ValueError("words per minute must be 10..300")
        self._mean_s = 60 / (words_per_minute * 5)
        self._layout = layout
        self._pause = pause
        self._random = random.Random(seed)

    def trace(self, text: str) -> Trace:
        """One way to type `text` and to ask it.

        Raises:
            ValueError: a character is not on the layout.
        """
        pace = self._mean_s * len(text) / sum(map(_factor, " " + text, text))
        presses: list[Press] = []
        before = " "
        burst = 1.0
        at = 0
        while at < len(text):
            if before == " ":
                burst = _BURST if self._random.random() < _BURST_CHANCE else 1.0
            letter = text[at]
            factor = _factor(before, letter) * burst
            pause_s = self._hesitation() if before == " " and at else 0.0
            if letter.isalpha() and self._random.random() < _TYPO_CHANCE:
                # The wrong letter and those after it, until it is noticed and all are taken back.
                written = self._wrong(letter) + text[at + 1 : at + 1 + self._noticed_after()]
                for sign in written:
                    presses.append(self._press(sign, pace * _factor(before, sign), pause_s))
                    before, pause_s = sign, 0.0
                for number in range(len(written)):
                    presses.append(self._press("\b", pace * (_SAME_KEY if number else _NOTICE)))
                before = letter
            presses.append(self._press(letter, pace * factor, pause_s))
            before = letter
            at += 1
        return Trace(tuple(presses), self._trigger_gap(pace))

    def _press(self, sign: str, mean_s: float, pause_s: float = 0.0) -> Press:
        (key,) = keys_for(sign, self._layout)
        return Press(key, self._gap(mean_s) + pause_s, self._random.uniform(*_HOLD_S))

    def _gap(self, mean_s: float) -> float:
        mu = math.log(mean_s) - _SIGMA**2 / 2
        return max(self._random.lognormvariate(mu, _SIGMA), _FASTEST_S)

    def _hesitation(self) -> float:
        return self._think() if self._random.random() < _THINK_CHANCE else 0.0

    def _think(self) -> float:
        # Shorter ones are drawn again: nobody hesitates for exactly the least, which happens to be when the
        # last token that is computed ahead comes (29 ms, a rest of 250 ms, and 8 steps of 27 ms).
        while True:
            pause_s = self._random.lognormvariate(math.log(_THINK_MEDIAN_S), _THINK_SIGMA)
            if pause_s >= _THINK_LEAST_S:
                return pause_s

    def _trigger_gap(self, pace: float) -> float:
        is_thinking = self._pause is Pause.THINK or (
            self._pause is Pause.MIXED and self._random.random() < 0.5
        )
        return self._think() if is_thinking else self._gap(pace * _WORD_START)

    def _noticed_after(self) -> int:
        return self._random.choice(_NOTICED_AFTER)

    def _wrong(self, letter: str) -> str:
        """Another letter of the same finger, or of the one beside it."""
        finger = _finger(letter)
        if finger is None:
            return letter
        near = [f for f in (finger - 1, finger, finger + 1) if 0 <= f < len(_FINGERS)]
        others = [other for f in near for other in _FINGERS[f] if other != letter]
        return self._random.choice(others)


def _finger(sign: str) -> int | None:
    return next((i for i, keys in enumerate(_FINGERS) if sign.lower() in keys), None)


def _factor(before: str, sign: str) -> float:
    """How the mean gap between two keys compares with that of all pairs."""
    left, right = _finger(before), _finger(sign)
    if sign == " ":
        return _SPACE
    if before == " ":
        return _WORD_START
    if before == sign:
        return _SAME_KEY
    if left is None or right is None or left == right:
        return _SAME_FINGER
    is_one_hand = (left < _RIGHT_HAND) == (right < _RIGHT_HAND)
    return _SAME_HAND if is_one_hand else _OTHER_HAND
