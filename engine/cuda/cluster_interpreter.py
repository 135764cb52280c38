# SPDX-License-Identifier: Apache-2.0
"""The cluster kernel in numpy: same roundings, same order, by the same schedule. Its executable spec.

W8A16: weights e4m3 with one float32 scale a row, activations float16 (half_interpreter.py). Sums of one
slice are exact here (float64) and rounded once; tensor cores round inside, and `exp` and `rsqrt` differ in
the last bits: device and spec agree closely, not bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda import spec
from engine.cuda.cluster_schedule import ClusterSchedule
from engine.cuda.cluster_shape import cut
from engine.cuda.errors import ScheduleError
from engine.cuda.half_interpreter import HalfInterpreter, HalfRun, power_of_two
from engine.cuda.schedule import Piece
from engine.cuda.shape import LAYER_PRODUCTS, Op
from engine.cuda.spec import Floats
from engine.fp8 import e4m3
from engine.fp8.model import Matrix
from engine.fp8.packing import STEP_COLUMNS, TILE_ROWS, unpack

_LANES: Final = 8  # that add one token's tiles


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


class ClusterInterpreter(HalfInterpreter):
    """One model with a KV cache of `max_context` positions."""

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


class _Run(HalfRun):
    def __init__(
        self,
        owner: ClusterInterpreter,
        schedule: ClusterSchedule,
        tokens: Sequence[int],
        position: int,
    ) -> None:
        super().__init__(owner, tokens, position, all_logits=schedule.all_logits)
        self._schedule = schedule

    def _first_power(self, row: Floats) -> np.float32:
        return power_of_two(self._inverse_rms(row))

    def _inverse_rms(self, row: Floats) -> np.float32:
        return inverse_rms(row, self._config.norm_eps)

    def _product(self, op: Op, layer: int, inputs: NDArray[np.float16]) -> Floats:
        # Each tile by the rank that has it.
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

    def _pieces(self, tokens: int) -> Iterator[Piece]:
        for start in range(0, tokens, self._schedule.width):
            for rank in self._schedule.ranks:
                if rank.piece is not None:
                    piece = rank.piece
                    yield Piece(piece.head, start + piece.begin, start + piece.end)

    def _attend_one(
        self, query: Floats, keys: NDArray[np.float16], values: NDArray[np.float16]
    ) -> Floats:
        return spec.attend(query, keys, values)
