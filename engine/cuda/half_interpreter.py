# SPDX-License-Identifier: Apache-2.0
"""What the executable specs of the cluster and the panel kernel share: the forward pass on float16 activations.

The input of a norm travels as residual * norm weight * a power of two near 1 / rms, so it neither overflows
nor vanishes; the exact rms only enters the scale of the sums. The kernels differ in the order in which they
add, and in who computes what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.cuda import rotary, spec
from engine.cuda.errors import ScheduleError
from engine.cuda.schedule import Piece
from engine.cuda.shape import Op
from engine.cuda.spec import Floats
from engine.fp8.model import PackedModel


def power_of_two(value: np.float32) -> np.float32:
    """The power of two at or below `value`."""
    bits = np.float32(value).view(np.uint32) & np.uint32(0x7F800000)
    return np.float32(bits.view(np.float32))


class HalfInterpreter:
    """One model with a KV cache of `max_context` positions."""

    def __init__(self, model: PackedModel, max_context: int) -> None:
        config = model.config
        self.model = model
        self.rope = rotary.table(config, max_context, model.rope_factors)
        self.cache = np.zeros(
            (config.n_layers, config.n_kv_heads, 2, max_context, config.head_dim), np.float16
        )


class HalfRun(ABC):
    """One request. `all_logits`: of every token, not of the last one alone."""

    def __init__(
        self, owner: HalfInterpreter, tokens: Sequence[int], position: int, *, all_logits: bool
    ) -> None:
        self._owner, self._position, self._all_logits = owner, position, all_logits
        self._model, self._config = owner.model, owner.model.config
        self._residual = self._model.embed[list(tokens)].astype(np.float32)
        self._power = np.array([self._first_power(row) for row in self._residual], dtype=np.float32)
        self._scale = np.ones(len(tokens), dtype=np.float32)

    # ---------------------------------------------------------------- what the kernels do each in its way

    @abstractmethod
    def _first_power(self, row: Floats) -> np.float32:
        """The power of two that scales a token's first input."""

    @abstractmethod
    def _inverse_rms(self, row: Floats) -> np.float32:
        """1 / rms of a token's residual."""

    @abstractmethod
    def _product(self, op: Op, layer: int, inputs: NDArray[np.float16]) -> Floats:
        """All rows in packed order, (tokens, rows); OUT and DOWN have no scale of a token.

        Raises:
            ScheduleError: rows that nobody makes.
        """

    @abstractmethod
    def _pieces(self, tokens: int) -> Iterable[Piece]:
        """Who attends to what, for the first `tokens` tokens of the request or more."""

    @abstractmethod
    def _attend_one(
        self, query: Floats, keys: NDArray[np.float16], values: NDArray[np.float16]
    ) -> Floats:
        """One head, one token."""

    # ---------------------------------------------------------------- what they have in common

    def finish(self) -> Floats:
        """Logits: (1, vocab) of the last token, or (tokens, vocab) with all_logits.

        Raises:
            ScheduleError: something that nobody makes.
        """
        config, model = self._config, self._model
        state = self._normalised(model.norms[0, 0])
        for layer in range(config.n_layers):
            mixed = self._attend(layer, self._qkv(layer, state))
            self._residual = self._residual + self._product(Op.OUT, layer, mixed)
            state = self._normalised(model.norms[layer, 1])
            gated = spec.to_half(spec.silu_gate(self._product(Op.GATE_UP, layer, state)))
            self._residual = self._residual + self._product(Op.DOWN, layer, gated)
            last = layer + 1 == config.n_layers
            state = self._normalised(model.final_norm if last else model.norms[layer + 1, 0])
        return self._head(state)

    def _normalised(self, norm: Floats) -> NDArray[np.float16]:
        """Inputs as they travel; sets the scale that belongs to them, and the next power."""
        state = spec.to_half(self._residual * norm * self._power[:, None])
        for token, row in enumerate(self._residual):
            inverse = self._inverse_rms(row)
            self._scale[token] = inverse / self._power[token]
            self._power[token] = power_of_two(inverse)
        return state

    def _qkv(self, layer: int, state: NDArray[np.float16]) -> Floats:
        config = self._config
        rows = self._product(Op.QKV, layer, state)
        if self._model.bias is not None:
            rows = rows + self._model.bias[layer]
        turned = (config.n_heads + config.n_kv_heads) * config.head_dim
        for token, row in enumerate(rows):
            row[:turned] = spec.rotate(row[:turned], self._owner.rope[self._position + token])
        return rows

    def _attend(self, layer: int, rows: Floats) -> NDArray[np.float16]:
        config = self._config
        size, repeat = config.head_dim, config.n_heads // config.n_kv_heads
        query = config.n_heads * size
        new = rows[:, query:].reshape(len(rows), 2, config.n_kv_heads, size)
        at = slice(self._position, self._position + len(rows))
        self._owner.cache[layer][:, :, at] = spec.to_half(new.transpose(2, 1, 0, 3))
        mixed = np.full((len(rows), query), np.nan, dtype=np.float16)
        for piece in self._pieces(len(rows)):
            keys, values = self._owner.cache[layer, piece.head]
            for token in range(piece.begin, min(piece.end, len(rows))):
                end = self._position + token + 1
                for head in range(piece.head * repeat, (piece.head + 1) * repeat):
                    one = slice(head * size, (head + 1) * size)
                    found = self._attend_one(rows[token, one], keys[:end], values[:end])
                    mixed[token, one] = spec.to_half(found)
        if np.isnan(mixed).any():
            raise ScheduleError("some tokens were never attended to")
        return mixed

    def _head(self, state: NDArray[np.float16]) -> Floats:
        if not self._all_logits:
            state, self._scale = state[-1:], self._scale[-1:]
        return self._product(Op.HEAD, 0, state)[:, : self._config.vocab_size]
