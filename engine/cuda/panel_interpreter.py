# SPDX-License-Identifier: Apache-2.0
"""The panel kernel in numpy: same roundings, same order, by the same schedule. Its executable spec.

W8A16 as in the cluster kernel: weights e4m3 with one float32 scale a row, activations float16, the input of a
norm as residual * norm weight * a power of two near 1 / rms. Sums of one slice are exact here (float64) and
rounded once; tensor cores round inside, and `exp` and `rsqrt` differ in the last bits: device and spec agree
closely, not bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.cuda import rotary, spec
from engine.cuda.cluster_interpreter import power_of_two
from engine.cuda.errors import ScheduleError
from engine.cuda.panel_schedule import Item, PanelSchedule
from engine.cuda.panel_shape import PANEL, STAGE_COLUMNS
from engine.cuda.shape import CHUNK, LAYER_PRODUCTS, Op, product_shape
from engine.fp8 import e4m3
from engine.fp8.model import Matrix, PackedModel
from engine.fp8.packing import TILE_ROWS, unpack
from engine.fp8.quantise import Grouping

Floats = NDArray[np.float32]
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


class PanelInterpreter:
    """One model with a KV cache of `max_context` positions."""

    def __init__(self, model: PackedModel, max_context: int) -> None:
        self._model, self._config = model, model.config
        self._rope = rotary.table(model.config, max_context, model.rope_factors)
        config = self._config
        self.cache = np.zeros(
            (config.n_layers, config.n_kv_heads, 2, max_context, config.head_dim), np.float16
        )

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

    @property
    def model(self) -> PackedModel:
        return self._model

    @property
    def rope(self) -> NDArray[np.float32]:
        return self._rope


class _Run:
    def __init__(
        self,
        owner: PanelInterpreter,
        schedule: PanelSchedule,
        tokens: Sequence[int],
        position: int,
    ) -> None:
        self._owner, self._schedule, self._position = owner, schedule, position
        self._model, self._config = owner.model, owner.model.config
        self._residual = self._model.embed[list(tokens)].astype(np.float32)
        epsilon = self._config.norm_eps
        powers = [first_power(row, epsilon) for row in self._residual]
        self._power = np.array(powers, dtype=np.float32)
        self._scale = np.ones(len(tokens), dtype=np.float32)

    def finish(self) -> NDArray[np.float32]:
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
            inverse = inverse_rms(row, self._config.norm_eps)
            self._scale[token] = inverse / self._power[token]
            self._power[token] = power_of_two(inverse)
        return state

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
        """All rows in packed order, (tokens, rows); OUT and DOWN have no scale of a token."""
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
        teams = (team for block in self._schedule.blocks for team in block.pieces)
        for piece in (piece for team in teams for piece in team):
            keys, values = self._owner.cache[layer, piece.head]
            for token in range(piece.begin, min(piece.end, len(rows))):
                end = self._position + token + 1
                for head in range(piece.head * repeat, (piece.head + 1) * repeat):
                    one = slice(head * size, (head + 1) * size)
                    mixed[token, one] = spec.to_half(
                        attend(rows[token, one], keys[:end], values[:end])
                    )
        if np.isnan(mixed).any():
            raise ScheduleError("some tokens were never attended to")
        return mixed

    def _head(self, state: NDArray[np.float16]) -> NDArray[np.float32]:
        if not self._schedule.all_logits:
            state, self._scale = state[-1:], self._scale[-1:]
        return self._product(Op.HEAD, 0, state)[:, : self._config.vocab_size]
