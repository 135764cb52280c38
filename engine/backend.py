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
from engine.errors import ContextOverflowError
from engine.texts import Text

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

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        """Try several continuations of the first `position` rows; none of them is kept.

        Each branch stands alone, as if it were passed to `forward(branch, position)`; a backend may
        compute them together, which costs little more than one where reading the weights dominates.
        Rows from `position` on become invalid, those before stay.
        Returns the logits of each branch's last token, shape (len(branches), vocab_size).

        Raises: as `forward`, for any of the branches; ValueError if there is no branch.
        """
        ...

    def leave_room(self, *, wanted: bool) -> None:
        """Whether to leave a processor to others from now on. Results stay the same, up to rounding."""
        ...

    def forget(self) -> None:
        """Overwrite every KV row, so that nothing of a text stays in memory."""
        ...

    def close(self) -> None:
        """Free the weights and the cache. Safe to call twice."""
        ...


def check_rows(
    tokens: Sequence[int], position: int, *, held: int, max_context: int, vocab_size: int
) -> None:
    """The conditions of `Backend.forward`, for every backend: `held` is the number of valid KV rows."""
    if not tokens:
        raise ValueError("no token to compute")
    if not 0 <= position <= held:
        raise ValueError(f"position {position} leaves a gap: the cache holds {held} rows")
    if min(tokens) < 0 or max(tokens) >= vocab_size:
        raise ValueError(f"a token id lies outside the vocabulary of {vocab_size}")
    if position + len(tokens) > max_context:
        raise ContextOverflowError(
            Text(
                "{position} tokens do not fit the context of {max_context}: shorten the text",
                position=position + len(tokens),
                max_context=max_context,
            )
        )
