# SPDX-License-Identifier: Apache-2.0
"""The panel kernel in numpy: same roundings, same order, by the same schedule. Its executable spec.

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
from engine.cuda.errors import ScheduleError
from engine.cuda.half_interpreter import HalfInterpreter, HalfRun, power_of_two
from engine.cuda.panel_schedule import Item, PanelSchedule
from engine.cuda.panel_shape import PANEL, STAGE_COLUMNS
from engine.cuda.schedule import Piece
from engine.cuda.shape import CHUNK, LAYER_PRODUCTS, Op, product_shape
from engine.cuda.spec import Floats
from engine.fp8 import e4m3
from engine.fp8.model import Matrix
from engine.fp8.packing import TILE_ROWS, unpack
from engine.fp8.quantise import Grouping

_WARPS: Final = 4  # of a team
_LANES: Final = 32


def first_power(row: Floats, epsilon: float) -> np.float32:
    """The power of two that scales a token's first input."""
    units = (row * row).reshape(-1, 4)
    sums = ((units[:, 0] + units[:, 1]) + units[:, 2]) + units[:, 3]
    padded = np.zeros(-(-sums.size // _LANES) * _LANES, dtype=np.float32)
    padded[: sums.size] = sums
    lanes = np.zeros(_LANES, dtype=np.float32)
    for part in padded.reshape(-1, _LANES):
        lanes = lanes + part
    mean = spec.butterfly(lanes) * np.float32(1.0 / row.size)
    return power_of_two(np.float32(1) / np.sqrt(mean + np.float32(epsilon)))


def inverse_rms(row: Floats, epsilon: float) -> np.float32:
    """1 / rms: squares of rows g and g + 8, eight such of a tile, tiles of a panel, then panels."""
    squares = (row * row).reshape(-1, 2, 8)
    lanes = squares[:, 0] + squares[:, 1]
    for offset in (1, 2, 4):
        lanes = lanes + lanes[:, np.arange(8) ^ offset]
    total = np.float32(0)
    for first in range(0, lanes.shape[0], PANEL):
        part = np.float32(0)
        for tile in lanes[first : first + PANEL, 0]:
            part = part + tile
        total = total + part
    mean = total * np.float32(1.0 / row.size)
    return np.float32(np.float32(1) / np.sqrt(mean + np.float32(epsilon)))


def attend(query: Floats, keys: NDArray[np.float16], values: NDArray[np.float16]) -> Floats:
    """One head, one token: chunks of 32 positions go to four warps in turn, which are merged in order."""
    scaled = spec.to_half(query * (np.float32(1) / np.sqrt(np.float32(query.size))))
    exact = scaled.astype(np.float32)
    largest = np.full(_WARPS, -np.inf, dtype=np.float32)
    total = np.zeros(_WARPS, dtype=np.float32)
    mix = np.zeros((_WARPS, query.size), dtype=np.float32)
    for index, start in enumerate(range(0, keys.shape[0], CHUNK)):
        warp, chunk = index % _WARPS, slice(start, start + CHUNK)
        scores = keys[chunk].astype(np.float32) @ exact
        both = max(largest[warp], np.float32(scores.max()))
        keep, weights = np.exp(largest[warp] - both), np.exp(scores - both)
        part = spec.to_half(weights).astype(np.float32) @ values[chunk].astype(np.float32)
        total[warp] = total[warp] * keep + weights.sum(dtype=np.float32)
        mix[warp] = mix[warp] * keep + part
        largest[warp] = both
    take = np.exp(largest - largest.max())
    summed, mixed = np.float32(0), np.zeros(query.size, dtype=np.float32)
    for warp in range(_WARPS):
        summed = summed + total[warp] * take[warp]
        mixed = mixed + mix[warp] * take[warp]
    return mixed * (np.float32(1) / summed)


class PanelInterpreter(HalfInterpreter):
    """One model with a KV cache of `max_context` positions."""

    def run(
        self, schedule: PanelSchedule, tokens: Sequence[int], position: int
    ) -> NDArray[np.float32]:
        """Logits, float32: (1, vocab) of the last token, or (tokens, vocab) with all_logits.

        Raises:
            ScheduleError: more tokens than the schedule is for, or something that no block makes.
        """
        if len(tokens) > schedule.width:
            raise ScheduleError(f"{len(tokens)} tokens are more than {schedule.width}")
        return _Run(self, schedule, tokens, position).finish()


class _Run(HalfRun):
    def __init__(
        self,
        owner: PanelInterpreter,
        schedule: PanelSchedule,
        tokens: Sequence[int],
        position: int,
    ) -> None:
        super().__init__(owner, tokens, position, all_logits=schedule.all_logits)
        self._schedule = schedule

    def _first_power(self, row: Floats) -> np.float32:
        return first_power(row, self._config.norm_eps)

    def _inverse_rms(self, row: Floats) -> np.float32:
        return inverse_rms(row, self._config.norm_eps)

    def _items(self, op: Op) -> list[Item]:
        """In the order in which their sums are added."""
        blocks = self._schedule.blocks
        parts = (
            [block.items[LAYER_PRODUCTS.index(op)] for block in blocks]
            if op in LAYER_PRODUCTS
            else [block.head for block in blocks]
        )
        return sorted((item for part in parts for item in part), key=lambda i: (i.first, i.slice))

    def _product(self, op: Op, layer: int, inputs: NDArray[np.float16]) -> Floats:
        matrix = self._model.matrices[Matrix(op.name.lower())]
        tiles = product_shape(self._config, Grouping.CHANNEL, op).tiles
        x = inputs.astype(np.float64)
        result = np.zeros((x.shape[0], tiles * TILE_ROWS), dtype=np.float32)
        covered = np.zeros((tiles, inputs.shape[1] // STAGE_COLUMNS), dtype=np.int64)
        for item in self._items(op):
            rows = slice(item.first, item.first + item.count)
            columns = slice(item.begin * STAGE_COLUMNS, item.end * STAGE_COLUMNS)
            packed = matrix.codes[layer, rows]
            weights = e4m3.decode(unpack(packed, item.count * TILE_ROWS)).astype(np.float64)
            sums = (x[:, columns] @ weights[:, columns].T).astype(np.float32)
            at = slice(rows.start * TILE_ROWS, rows.stop * TILE_ROWS)
            result[:, at] = result[:, at] + sums
            covered[rows, item.begin : item.end] += 1
        if (covered != 1).any():
            raise ScheduleError(f"some tiles of {op.name} are made twice or never")
        scaled: Floats = result * matrix.scales[layer].reshape(-1)
        if op not in (Op.OUT, Op.DOWN):
            scaled = scaled * self._scale[: x.shape[0], None]
        return scaled

    def _pieces(self, tokens: int) -> Iterator[Piece]:
        for block in self._schedule.blocks:
            for team in block.pieces:
                yield from team

    def _attend_one(
        self, query: Floats, keys: NDArray[np.float16], values: NDArray[np.float16]
    ) -> Floats:
        return attend(query, keys, values)
