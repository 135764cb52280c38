# SPDX-License-Identifier: Apache-2.0
"""What every compute backend (cpu, reference, cuda) offers to a Session.

A backend owns the weights and one KV cache. Its rows are independent: the logits of a token depend
only on the tokens before it, never on how many were computed in the same call. That is what makes
an incremental prefill equal to a full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig

Logits: TypeAlias = NDArray[np.float32]


class Backend(Protocol):
    """One model on one device with one KV cache of `max_context` positions."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def max_context(self) -> int:
        """Positions the KV cache holds; at most `config.context_length`."""
        ...

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        """Compute `tokens` at absolute positions `position ..`, reading the KV rows before them.

        Writes KV rows `position .. position + len(tokens)`; later rows become invalid.
        Returns the logits of the last token, shape (vocab_size,), float32.

        Raises:
            ContextOverflowError: the rows would pass `max_context`.
            ValueError: no token, a token id outside the vocabulary, or a gap in front of `position`.
        """
        ...

    def forward_all(self, tokens: Sequence[int], position: int) -> Logits:
        """As `forward`, but returns the logits of every token, shape (len(tokens), vocab_size)."""
        ...

    def close(self) -> None:
        """Free the weights and the cache. Safe to call twice."""
        ...
