# SPDX-License-Identifier: Apache-2.0
"""The bytes of every token, indexed: which tokens agree with what was typed already."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from engine.tokenizer import Tokenizer
from engine.wordbreak import starts_with_break


class Vocabulary:
    """Built once for a tokeniser (about 0.1 s for 50,000 tokens). Special tokens are not in it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._size = tokenizer.vocab_size
        pairs = sorted(
            (tokenizer.token_bytes(token), token)
            for token in range(self._size)
            if not tokenizer.is_special(token)
        )
        pairs = [pair for pair in pairs if pair[0]]
        self._bytes = [data for data, _ in pairs]  # sorted
        self._ids = np.array([token for _, token in pairs], dtype=np.intp)
        breaks = np.ones(self._size, dtype=np.bool_)
        for data, token in pairs:
            breaks[token] = starts_with_break(data)
        self._breaks = breaks

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def size(self) -> int:
        """Number of token ids that may be chosen: the `vocab_limit` of a Session."""
        return self._size

    @property
    def breaks(self) -> NDArray[np.bool_]:
        """Whether a token ends the word before it, shape (size,); special tokens do."""
        return self._breaks

    def starting_with(self, data: bytes) -> NDArray[np.intp]:
        """Ids of the tokens that begin with `data`, itself included; all of them for no data."""
        first = bisect_left(self._bytes, data)
        last = bisect_right(self._bytes, data, lo=first, key=lambda token: token[: len(data)])
        return self._ids[first:last]

    def beginnings_of(self, data: bytes) -> list[int]:
        """Ids of the tokens that `data` begins with and goes on after, longest first."""
        found: list[int] = []
        for length in range(len(data) - 1, 0, -1):
            first = bisect_left(self._bytes, data[:length])
            last = bisect_right(self._bytes, data[:length])
            found += self._ids[first:last].tolist()
        return found
