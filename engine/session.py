# SPDX-License-Identifier: Apache-2.0
"""One text in a backend's KV cache: computes what changed, and reads answers off the logits.

Ties: of equal logits the lowest token id wins, everywhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.backend import Backend, Logits
from engine.errors import ContextOverflowError, OperationCancelledError
from engine.ledger import RowLedger
from engine.texts import Text

# Tokens of a prefill between two looks at `cancelled`. Larger chunks are a little faster, smaller
# ones can be stopped sooner; 64 tokens of SmolLM2-135M take about 0.13 s on two cores.
PREFILL_CHUNK = 64


class FinishReason(enum.Enum):
    """Why `Session.generate` ended."""

    STOP = "stop"
    LENGTH = "length"  # `max_tokens` reached, or the context is full
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """Tokens whose KV rows were there already, and tokens computed. The sum is the text's length."""

    reused: int
    computed: int


def never() -> bool:
    """The `cancelled` of work that nobody stops."""
    return False


class Session:
    """Holds the tokens whose KV rows are valid in `backend`. For one thread.

    `vocab_limit` is the size of the tokeniser: some models have more logit rows than tokens, and
    those spare rows are never chosen. None means every row.
    """

    def __init__(self, backend: Backend, vocab_limit: int | None = None) -> None:
        self._backend = backend
        self._vocab = min(vocab_limit or backend.config.vocab_size, backend.config.vocab_size)
        self._tokens: list[int] = []
        self._logits: Logits | None = None  # of the last of `_tokens`
        self._rows = RowLedger()

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens held: those of the last update, then those generated and computed since."""
        return tuple(self._tokens)

    @property
    def max_context(self) -> int:
        return self._backend.max_context

    @property
    def logits(self) -> Logits:
        """Of the next token, shape (vocab,), float32, read-only.

        Raises:
            ValueError: nothing was computed yet.
        """
        if self._logits is None:
            raise ValueError("no logits: call update first")
        return self._logits

    @property
    def rows(self) -> RowLedger:
        """What was computed ahead, and what became of it."""
        return self._rows

    def update(
        self,
        tokens: Sequence[int],
        cancelled: Callable[[], bool] = never,
        *,
        ahead: bool = False,
    ) -> UpdateReport:
        """Make the session hold exactly `tokens`. Only what follows the common prefix is computed.

        If nothing changed, nothing is computed; if only the end was cut off, one token is. `ahead`:
        nobody asked for it yet.

        Raises:
            ContextOverflowError: more tokens than `max_context`; nothing has changed.
            OperationCancelledError: `cancelled()` held between two chunks; what was computed stays.
            ValueError: no token, or an id outside the vocabulary.
        """
        if not tokens:
            raise ValueError("a session needs at least one token")
        if len(tokens) > self.max_context:
            raise ContextOverflowError(
                Text(
                    "{tokens} tokens do not fit the context of {max_context}: shorten the text",
                    tokens=len(tokens),
                    max_context=self.max_context,
                )
            )
        common = common_prefix(self._tokens, tokens)
        if common == len(tokens) == len(self._tokens) and self._logits is not None:
            self._use(ahead)
            return UpdateReport(common, 0)
        common = min(common, len(tokens) - 1)  # the last token's logits are needed
        self._keep(common)
        self._use(ahead)
        for start in range(common, len(tokens), PREFILL_CHUNK):
            if cancelled():
                raise OperationCancelledError("the text was not computed to its end")
            self._compute(tokens[start : start + PREFILL_CHUNK], ahead)
        return UpdateReport(common, len(tokens) - common)

    def forget(self) -> None:
        """Drop every token, its logits and its KV rows."""
        self._keep(0)
        self._backend.forget()

    def log_probabilities(self) -> NDArray[np.float64]:
        """Natural logarithms of the next token's probabilities, shape (vocab,)."""
        return log_softmax(self.logits)

    def top(self, k: int) -> list[tuple[int, float]]:
        """The `k` likeliest next tokens: (id, natural logarithm of its probability)."""
        logprobs = self.log_probabilities()
        return [(int(i), float(logprobs[i])) for i in largest(logprobs, k)]

    def branches(self, continuations: Sequence[Sequence[int]]) -> Logits:
        """Logits after each continuation of the tokens held, shape (len, vocab). Nothing is kept.

        Raises:
            ContextOverflowError, ValueError: as `Backend.forward_branches`.
        """
        return self._backend.forward_branches(continuations, len(self._tokens))[:, : self._vocab]

    def generate(
        self,
        max_tokens: int,
        stop_ids: Collection[int],
        cancelled: Callable[[], bool] = never,
        *,
        ahead: bool = False,
    ) -> Generator[int, None, FinishReason]:
        """Yield the likeliest next token, again and again; the generator's value says why it ended.

        `cancelled` is asked before every token. A token is computed when the next one is asked for,
        so the last one yielded is not yet among `tokens`. A stop token is not yielded. Do not call
        `update` or `forget` before the generator is done or closed.
        """
        for count in range(max_tokens):
            if cancelled():
                return FinishReason.CANCELLED
            token = int(np.argmax(self.logits))
            if token in stop_ids:
                return FinishReason.STOP
            yield token
            if count + 1 == max_tokens or len(self._tokens) == self.max_context:
                break
            if ahead:
                self._compute_aside(token)
            else:
                self._compute([token], ahead)
        return FinishReason.LENGTH

    def choose(
        self, labels: Sequence[Sequence[int]], cancelled: Callable[[], bool] = never
    ) -> tuple[int, list[float]]:
        """Which label the model would write next if it had to write one of them.

        Each label is its tokens. Where labels differ, the model's probabilities of their next tokens
        are scaled to a sum of 1 among the labels left; a label's probability is the product of its
        steps, so they sum to 1 and long labels are at no disadvantage. Labels with different first
        tokens need no computing at all. A label that begins another one ends where the model would
        write none of the longer ones' next tokens.
        Returns (index of the likeliest label, the first of equal ones; probability of each).

        Raises:
            ValueError: no label, an empty one, or two alike.
            OperationCancelledError: `cancelled()` held between two steps.
        """
        if not labels or not all(labels):
            raise ValueError("labels must be there, and each needs at least one token")
        if len({tuple(label) for label in labels}) < len(labels):
            raise ValueError("two labels have the same tokens")
        if any(not 0 <= token < self._vocab for label in labels for token in label):
            raise ValueError(f"a label has a token outside the vocabulary of {self._vocab}")
        probabilities = [0.0] * len(labels)
        undecided = [(0, list(range(len(labels))), 1.0)]  # (common length, labels, probability)
        while undecided:
            depth, group, probability = undecided.pop()
            if len(group) == 1:
                probabilities[group[0]] = probability
                continue
            if cancelled():
                raise OperationCancelledError("the labels were not compared to their end")
            logits = self.branches([labels[group[0]][:depth]])[0] if depth else self.logits
            for rest, share in _split(labels, group, depth, log_softmax(logits)):
                undecided.append((depth + 1, rest, probability * share))
        return int(np.argmax(probabilities)), probabilities

    def _keep(self, count: int) -> None:
        del self._tokens[count:]
        self._rows.cut(count)
        self._logits = None

    def _use(self, ahead: bool) -> None:
        if not ahead:
            self._rows.use(len(self._tokens))

    def _compute_aside(self, token: int) -> None:
        """A token of a reply that nobody asked for: who presses the key that asks needs a processor."""
        self._backend.leave_room(wanted=True)
        try:
            self._compute([token], ahead=True)
        finally:
            self._backend.leave_room(wanted=False)

    def _compute(self, tokens: Sequence[int], ahead: bool) -> None:
        logits = self._backend.forward(tokens, len(self._tokens))[: self._vocab]
        logits.flags.writeable = False
        self._tokens.extend(tokens)
        self._rows.add(len(tokens), ahead=ahead)
        self._logits = logits


def _split(
    labels: Sequence[Sequence[int]],
    group: Sequence[int],
    depth: int,
    logprobs: NDArray[np.float64],
) -> list[tuple[list[int], float]]:
    """Divide labels that agree up to `depth` by their next token: (labels, share), shares sum to 1."""
    by_token: dict[int, list[int]] = {}
    ended: list[int] = []  # at most one, as no two labels are alike
    for index in group:
        if len(labels[index]) == depth:
            ended.append(index)
        else:
            by_token.setdefault(labels[index][depth], []).append(index)
    going_on = np.array([logprobs[token] for token in by_token])
    if ended:
        shares = np.exp(going_on)
        return [(ended, float(1.0 - shares.sum())), *_paired(by_token, shares)]
    return _paired(by_token, np.exp(log_softmax(going_on)))


def _paired(
    by_token: dict[int, list[int]], shares: NDArray[np.float64]
) -> list[tuple[list[int], float]]:
    return [(rest, float(share)) for rest, share in zip(by_token.values(), shares, strict=True)]


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of leading tokens that both have."""
    for count, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return count
    return min(len(left), len(right))


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Natural logarithms of softmax over the last axis, in float64."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def largest(values: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Indices of the `k` largest values, falling; of equal values the lowest index comes first."""
    k = min(k, values.size)
    if k <= 0:
        return np.zeros(0, np.intp)
    threshold = np.partition(values, -k)[-k]
    candidates = np.flatnonzero(values >= threshold)  # rising indices, and all ties of the last
    return candidates[np.argsort(-values[candidates], kind="stable")][:k]
