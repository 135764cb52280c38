# SPDX-License-Identifier: Apache-2.0
"""The cluster kernel in numpy: same roundings, same order, by the same schedule. Its executable spec.

W8A16: weights e4m3 with one float32 scale a row, activations float16. The input of a norm travels as
residual * norm weight * a power of two near 1 / rms, so it neither overflows nor vanishes; the exact rms
only enters the scale of the sums. Sums of one slice are exact here (float64) and rounded once; tensor
cores round inside, and `exp` and `rsqrt` differ in the last bits: device and spec agree closely, not bit
for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda import rotary, spec
from engine.cuda.cluster_schedule import ClusterSchedule
from engine.cuda.cluster_shape import cut
from engine.cuda.errors import ScheduleError
from engine.cuda.shape import LAYER_PRODUCTS, Op
from engine.fp8 import e4m3
from engine.fp8.model import Matrix, PackedModel
from engine.fp8.packing import STEP_COLUMNS, TILE_ROWS, unpack

Floats = NDArray[np.float32]
_LANES: Final = 8  # that add one token's tiles


def power_of_two(value: np.float32) -> np.float32:
    """The power of two at or below `value`."""
    bits = np.float32(value).view(np.uint32) & np.uint32(0x7F800000)
    return np.float32(bits.view(np.float32))


def inverse_rms(row: Floats, epsilon: float) -> np.float32:
    """1 / rms: squares by tile of 16 values, in the order of the epilogue, then tiles by lane."""
    squares = (row * row).reshape(-1, 4, 4)
    units = ((squares[..., 0] + squares[..., 1]) + squares[..., 2]) + squares[..., 3]
    tiles = (units[:, 0] + units[:, 2]) + (units[:, 1] + units[:, 3])
    padded = np.zeros(-(-tiles.size // _LANES) * _LANES, dtype=np.float32)
    padded[: tiles.size] = tiles
    lanes = np.zeros(_LANES, dtype=np.float32)
    for part in padded.reshape(-1, _LANES):
        lanes = lanes + part
    mean = spec.butterfly(lanes) * np.float32(1.0 / row.size)
    return np.float32(np.float32(1) / np.sqrt(mean + np.float32(epsilon)))


class ClusterInterpreter:
    """One model with a KV cache of `max_context` positions."""

    def __init__(self, model: PackedModel, max_context: int) -> None:
        self._model, self._config = model, model.config
        self._rope = rotary.table(model.config, max_context, model.rope_factors)
        config = self._config
        self.cache = np.zeros(
            (config.n_layers, config.n_kv_heads, 2, max_context, config.head_dim), np.float16
        )

    def run(
        self, schedule: ClusterSchedule, tokens: Sequence[int], position: int
    ) -> NDArray[np.float32]:
        """Logits, float32: (1, vocab) of the last token, or (tokens, vocab) with all_logits.

        Raises:
            ScheduleError: more tokens than the clusters hold, or logits that no block makes.
        """
        if len(tokens) > schedule.width * schedule.clusters:
            raise ScheduleError(f"{len(tokens)} tokens are more than the clusters hold")
        return _Run(self, schedule, tokens, position).finish()

    @property
    def model(self) -> PackedModel:
        return self._model

    @property
    def rope(self) -> NDArray[np.float32]:
        return self._rope


class _Run:
    def __init__(
        self,
        owner: ClusterInterpreter,
        schedule: ClusterSchedule,
        tokens: Sequence[int],
        position: int,
    ) -> None:
        self._owner, self._schedule, self._position = owner, schedule, position
        self._model, self._config = owner.model, owner.model.config
        config = self._config
        count = len(tokens)
        self._residual = self._model.embed[list(tokens)].astype(np.float32)
        self._power = np.ones(count, dtype=np.float32)
        self._scale = np.ones(count, dtype=np.float32)
        self._gated = np.full((count, config.ffn_dim), np.nan, dtype=np.float16)
        self._mixed = np.full((count, config.n_heads * config.head_dim), np.nan, dtype=np.float16)

    def finish(self) -> NDArray[np.float32]:
        config, model = self._config, self._model
        for token, row in enumerate(self._residual):
            self._power[token] = power_of_two(inverse_rms(row, config.norm_eps))
        state = self._normalised(model.norms[0, 0])
        for layer in range(config.n_layers):
            self._attend(layer, self._qkv(layer, state))
            self._add(Op.OUT, layer, self._mixed)
            state = self._normalised(model.norms[layer, 1])
            self._gate_up(layer, state)
            self._add(Op.DOWN, layer, self._gated)
            last = layer + 1 == config.n_layers
            state = self._normalised(model.final_norm if last else model.norms[layer + 1, 0])
        return self._head(state)

    def _normalised(self, norm: Floats) -> NDArray[np.float16]:
        """Inputs as they travel; sets the scale that belongs to them, and the next power."""
        state = spec.to_half(self._residual * norm * self._power[:, None])
        for token, row in enumerate(self._residual):
            inverse = inverse_rms(row, self._config.norm_eps)
            self._scale[token] = inverse / self._power[token]
            self._power[token] = power_of_two(inverse)
        return state

    def _product(self, op: Op, layer: int, inputs: NDArray[np.float16]) -> Floats:
        """All rows in packed order, (tokens, rows); each tile by the rank that has it."""
        shape, matrix = cut(self._config, op), self._model.matrices[Matrix(op.name.lower())]
        parts = (
            [rank.tiles[LAYER_PRODUCTS.index(op)] for rank in self._schedule.ranks]
            if op in LAYER_PRODUCTS
            else self._schedule.heads
        )
        x = inputs.astype(np.float64)
        result = np.full((x.shape[0], shape.tiles * TILE_ROWS), np.nan, dtype=np.float32)
        for first, count in parts:
            tiles = slice(first, first + count)
            packed = matrix.codes[layer, tiles]
            weights = e4m3.decode(unpack(packed, count * TILE_ROWS)).astype(np.float64)
            total = np.zeros((x.shape[0], count * TILE_ROWS), dtype=np.float32)
            for index in range(shape.slices):
                begin, end = (step * STEP_COLUMNS for step in shape.slice_steps(index))
                total = total + (x[:, begin:end] @ weights[:, begin:end].T).astype(np.float32)
            scaled = total * matrix.scales[layer, tiles].reshape(-1)
            if op not in (Op.OUT, Op.DOWN):
                scaled = scaled * self._scale[: x.shape[0], None]
            result[:, first * TILE_ROWS : (first + count) * TILE_ROWS] = scaled
        if np.isnan(result).any():
            raise ScheduleError(f"some tiles of {op.name} were never made")
        return result

    def _add(self, op: Op, layer: int, inputs: NDArray[np.float16]) -> None:
        self._residual = self._residual + self._product(op, layer, inputs)

    def _gate_up(self, layer: int, state: NDArray[np.float16]) -> None:
        self._gated = spec.to_half(spec.silu_gate(self._product(Op.GATE_UP, layer, state)))

    def _qkv(self, layer: int, state: NDArray[np.float16]) -> Floats:
        config = self._config
        rows = self._product(Op.QKV, layer, state)
        if self._model.bias is not None:
            rows = rows + self._model.bias[layer]
        turned = (config.n_heads + config.n_kv_heads) * config.head_dim
        for token, row in enumerate(rows):
            row[:turned] = spec.rotate(row[:turned], self._owner.rope[self._position + token])
        return rows

    def _attend(self, layer: int, rows: Floats) -> None:
        config = self._config
        size, repeat = config.head_dim, config.n_heads // config.n_kv_heads
        query = config.n_heads * size
        new = rows[:, query:].reshape(len(rows), 2, config.n_kv_heads, size)
        at = slice(self._position, self._position + len(rows))
        self._owner.cache[layer][:, :, at] = spec.to_half(new.transpose(2, 1, 0, 3))
        self._mixed[:] = np.nan
        for start in range(0, len(rows), self._schedule.width):
            for rank in self._schedule.ranks:
                piece = rank.piece
                if piece is None:
                    continue
                keys, values = self._owner.cache[layer, piece.head]
                for token in range(start + piece.begin, min(start + piece.end, len(rows))):
                    end = self._position + token + 1
                    for head in range(piece.head * repeat, (piece.head + 1) * repeat):
                        one = slice(head * size, (head + 1) * size)
                        mixed = spec.attend(rows[token, one], keys[:end], values[:end])
                        self._mixed[token, one] = spec.to_half(mixed)
        if np.isnan(self._mixed).any():
            raise ScheduleError("some tokens were never attended to")

    def _head(self, state: NDArray[np.float16]) -> NDArray[np.float32]:
        if not self._schedule.all_logits:
            state, self._scale = state[-1:], self._scale[-1:]
        return self._product(Op.HEAD, 0, state)[:, : self._config.vocab_size]
