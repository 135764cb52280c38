# SPDX-License-Identifier: Apache-2.0
"""The person's own words: learnt only if they want it, in memory, and on disk only if they want that too.

Nothing that may be a password: a word counts only between other words of a line, with letters alone and
written as words are. A secret is typed alone, or has digits and signs.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from app.config.atomic import write_atomically
from app.settings import SuggestSettings
from engine.failures import name_of_error

# A word that a space or a sign has just ended, behind another word of its line.
_ENDED_WORD = re.compile(r"(?<=[^\s] )([^\W\d_]+(?:['\u2019][^\W\d_]+)?)[ .,;:!?]\Z")
_VOWEL = re.compile(r"[aeiouyàâäåæáãèêëéìîïíòôöøóõùûüúýаеиоуыэюяєії]", re.IGNORECASE)
_SHORTEST, _LONGEST, _LONGEST_ACRONYM = 3, 24, 6
_FIRST_UNSPACED = "\u0e00"  # Thai; from here on scripts put no spaces between words
_MOST = 1000  # words
_KNOWN = 2  # times that a word is typed before it is offered
# Typed so often, a word is as good a guess as the model's.
_HALF_TRUST = 6.0
_MOST_BYTES = 65_536

_log = logging.getLogger(__name__)


class PersonalWords:
    """At most 1000 words with how often each was typed; of more the ones longest unused are dropped.

    `file` is where they are kept if the person wants it; None: nowhere. Content is never in `repr`.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._learns = False
        self._keeps = False
        self._is_changed = False

    def __repr__(self) -> str:
        return f"PersonalWords({len(self._counts)} words)"

    def configure(self, settings: SuggestSettings) -> None:
        """Learn and keep as the settings say. What is no longer to be kept is deleted."""
        keeps = settings.learn_words and settings.keep_words
        if self._learns and not settings.learn_words:
            self._counts.clear()
        if self._keeps and not keeps:
            self._delete()
        self._learns = settings.learn_words
        if keeps and not self._keeps:
            self._load()
        self._keeps = keeps

    def typed(self, text: str) -> None:
        """`text` stands before the cursor now, and its last character was typed."""
        ended = _ENDED_WORD.search(text[-_LONGEST - 4 :]) if self._learns else None
        if ended is not None and is_plain_word(ended[1]):
            self._add(ended[1], self._counts.get(ended[1], 0) + 1)
            self._is_changed = True

    def mixed(
        self, found: Sequence[tuple[str, float]], stem: str, count: int
    ) -> list[tuple[str, float]]:
        """The model's candidates and own words that go on with `stem`, likeliest first.

        The more often own words were typed that begin so, the more they count.
        """
        own = self._continuing(stem) if len(stem) > 1 else {}
        total = sum(own.values())
        if not total:
            return list(found)
        trust = total / (total + _HALF_TRUST)
        chances = {text: (1 - trust) * chance for text, chance in found}
        for text, times in own.items():
            chances[text] = chances.get(text, 0.0) + trust * times / total
        return sorted(chances.items(), key=lambda item: (-item[1], item[0]))[:count]

    def rest(self) -> None:
        """Nobody types: write what is to be kept."""
        if not (self._keeps and self._is_changed and self._file is not None):
            return
        known = [f"{word}\t{times}\n" for word, times in self._counts.items() if times >= _KNOWN]
        try:
            write_atomically(self._file, "".join(known).encode())
            self._is_changed = False
        except OSError as error:
            _log.warning("the learnt words were not written: %s", name_of_error(error))

    def forget(self) -> None:
        """Forget every word, in memory and on disk."""
        self._counts.clear()
        self._delete()

    def _continuing(self, stem: str) -> dict[str, int]:
        """The rests of known words that begin with `stem`, and how often each was typed."""
        folded = stem.casefold()
        return {
            word[len(stem) :]: times
            for word, times in self._counts.items()
            if times >= _KNOWN and len(word) > len(stem) and word.casefold().startswith(folded)
        }

    def _add(self, word: str, times: int) -> None:
        self._counts[word] = times
        self._counts.move_to_end(word)
        if len(self._counts) > _MOST:
            self._counts.popitem(last=False)

    def _load(self) -> None:
        if self._file is None:
            return
        try:
            with self._file.open("rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("the learnt words were not read: %s", name_of_error(error))
            return
        for line in text.splitlines():
            word, _, times = line.partition("\t")
            if times.isascii() and times.isdigit() and is_plain_word(word):
                self._add(word, max(self._counts.get(word, 0), int(times[:6])))

    def _delete(self) -> None:
        self._is_changed = False
        if self._file is not None:
            try:
                self._file.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("the learnt words were not deleted: %s", name_of_error(error))


def is_plain_word(word: str) -> bool:
    """Whether `word` is written as words are: letters, a vowel, capitals only where they belong."""
    letters = word.replace("'", "").replace("\u2019", "")
    if not letters.isalpha() or not len(letters) >= _SHORTEST or len(word) > _LONGEST:
        return False
    if any(letter >= _FIRST_UNSPACED for letter in letters) or not _VOWEL.search(letters):
        return False
    is_acronym = letters.isupper() and len(letters) <= _LONGEST_ACRONYM
    return is_acronym or letters[1:].islower()
