# SPDX-License-Identifier: Apache-2.0
"""A backend whose probabilities a test writes down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.backend import Logits, check_rows
from engine.config import ModelConfig
from engine.tokenizer import Tokenizer

Script = Mapping[bytes, Mapping[bytes, float]]
END = b"<|im_end|>"


class ScriptedBackend:
    """Knows the probabilities of the next token's bytes after each text of its script.

    The rest of the probability goes to the end of the turn.
    """

    def __init__(self, tokenizer: Tokenizer, script: Script, max_context: int = 64) -> None:
        self._tokenizer = tokenizer
        self._script = script
        self._held: list[int] = []
        self.max_context = max_context
        self.forwards = 0
        self.config = ModelConfig(
            "scripted", tokenizer.vocab_size, 1, 1, 1, 1, 2, 1, max_context, 1e-5, 1e4
        )

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        self.forwards += 1
        self._check(tokens, position)
        self._held[position:] = tokens
        return self._logits(self._held)

    def forward_all(self, tokens: Sequence[int], position: int) -> Logits:
        raise NotImplementedError

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        self.forwards += 1
        for branch in branches:
            self._check(branch, position)
        return np.stack([self._logits([*self._held[:position], *branch]) for branch in branches])

    def leave_room(self, *, wanted: bool) -> None:
        pass

    def forget(self) -> None:
        self._held = []

    def close(self) -> None:
        self._held = []

    def _check(self, tokens: Sequence[int], position: int) -> None:
        limits = {"max_context": self.max_context, "vocab_size": self._tokenizer.vocab_size}
        check_rows(tokens, position, held=len(self._held), **limits)

    def _logits(self, tokens: Sequence[int]) -> Logits:
        spoken = [t for t in tokens if not self._tokenizer.is_special(t)]
        text = b"".join(map(self._tokenizer.token_bytes, spoken))
        logits = np.full(self._tokenizer.vocab_size, -1e9, np.float32)
        following = dict(self._script.get(text, {}))
        following[END] = 1 - sum(following.values())
        for data, probability in following.items():
            if probability > 0:
                logits[self._id(data)] = np.log(probability)
        return logits

    def _id(self, data: bytes) -> int:
        ids = range(self._tokenizer.vocab_size)
        return next(t for t in ids if self._tokenizer.token_bytes(t) == data)
