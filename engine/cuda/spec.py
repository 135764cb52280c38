# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the kernel in numpy: same roundings, same order, row by row. The executable spec.

W8A8: weights e4m3 with float32 scales, activations e4m3 with one float32 scale a token. Sums of at most
128 products are exact here (float64) and rounded to float32 when promoted; tensor cores may round inside
such a sum, and `exp` differs in the last bits, so device and spec agree closely, not bit for bit.
Everything else is ordered as on the device, so results here too do not depend on how tokens are batched.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.cuda.shape import CHUNK, WARPS, ProductShape
from engine.fp8 import e4m3
from engine.fp8.model import PackedMatrix
from engine.fp8.packing import STEP_COLUMNS, unpack

Floats: TypeAlias = NDArray[np.float32]

_AMAX_FLOOR: Final = np.float32(1e-20)
_LANES: Final = 32
_E4M3_MAX: Final = np.float32(e4m3.MAX)


def f24(values: Floats) -> Floats:
    """What survives an exchange between blocks: a float cut to 15 mantissa bits."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFFFF00)).view(np.float32)


def butterfly(lanes: Floats) -> np.float32:
    """Sum of lanes (a power of two) as the kernel adds them."""
    values = lanes.copy()
    index = np.arange(lanes.size)
    offset = lanes.size // 2
    while offset:
        values = values + values[index ^ offset]
        offset //= 2
    return np.float32(values[0])


def sum_of_squares(row: Floats) -> np.float32:
    """One part of the row a warp; in it lane l adds units l, l+32, ... of four; then the parts."""
    squares = (row * row).reshape(-1, 4)
    units = ((squares[:, 0] + squares[:, 1]) + squares[:, 2]) + squares[:, 3]
    part = -(-units.size // WARPS)
    total = np.float32(0)
    for warp in range(WARPS):
        mine = units[warp * part : (warp + 1) * part]
        padded = np.zeros(max(1, -(-mine.size // _LANES)) * _LANES, dtype=np.float32)
        padded[: mine.size] = mine
        lanes = np.zeros(_LANES, dtype=np.float32)
        for slot in padded.reshape(-1, _LANES):
            lanes = lanes + slot
        total = total + butterfly(lanes)
    return np.float32(total)


def quantise_token(
    row: Floats, norm: Floats | None = None, epsilon: float = 0.0
) -> tuple[NDArray[np.float64], np.float32]:
    """e4m3 values (as float64) of one token's activations, and their scale.

    With `norm`, of RMSNorm(row) * norm; the root mean square only enters the scale.
    """
    values = row if norm is None else row * norm
    largest = max(np.float32(np.abs(values).max()), _AMAX_FLOOR)
    codes = e4m3.encode(values * (_E4M3_MAX / largest))
    scale = largest / _E4M3_MAX
    if norm is not None:
        mean = sum_of_squares(row) / np.float32(row.size)
        scale = scale * (np.float32(1) / np.sqrt(mean + np.float32(epsilon)))
    return e4m3.decode(codes).astype(np.float64), np.float32(scale)


def product(
    matrix: PackedMatrix,
    shape: ProductShape,
    layer: int,
    tiles: slice,
    inputs: list[tuple[NDArray[np.float64], np.float32]],
) -> Floats:
    """Rows of `tiles` times each token of `inputs`: (tokens, rows in packed order) float32."""
    packed = matrix.codes[layer, tiles]
    weights = e4m3.decode(unpack(packed, packed.shape[0] * 16)).astype(np.float64)
    scales = matrix.scales[layer, tiles]  # (tiles, groups, 16)
    row_scales = scales.transpose(0, 2, 1).reshape(weights.shape[0], -1)
    x = np.stack([codes for codes, _ in inputs])
    total: Floats | None = None
    for index in range(shape.slices):
        begin, end = shape.slice_steps(index)
        acc = np.zeros((len(inputs), weights.shape[0]), dtype=np.float32)
        for step in range(begin, end, shape.segment):
            columns = slice(step * STEP_COLUMNS, min(step + shape.segment, end) * STEP_COLUMNS)
            part = (x[:, columns] @ weights[:, columns].T).astype(np.float32)
            if shape.groups > 1 or shape.segments_per_group != shape.segments:
                group = step // shape.segment // shape.segments_per_group
                part = part * row_scales[:, group]
            acc = acc + part
        total = acc if total is None else total + acc
    assert total is not None
    if shape.groups == 1 and shape.segments_per_group == shape.segments:
        total = total * row_scales[:, 0]
    token_scales = np.array([scale for _, scale in inputs], dtype=np.float32)
    result: Floats = total * token_scales[:, None]
    return result


def rotate(pairs: Floats, table: Floats) -> Floats:
    """Rotate packed rows: tiles of 8 first and 8 second rows. `table` (head_dim/2, 2)."""
    tiles = pairs.reshape(-1, 2, 8)
    turns = np.resize(table.reshape(-1, 8, 2), (tiles.shape[0], 8, 2))
    first, second = tiles[:, 0], tiles[:, 1]
    cosine, sine = turns[..., 0], turns[..., 1]
    out = np.stack([first * cosine - second * sine, second * cosine + first * sine], axis=1)
    return out.reshape(pairs.shape)


def silu_gate(tiles: Floats) -> Floats:
    """(..., rows) in gate/up packed order to (..., rows / 2): silu(gate) * up."""
    split = tiles.reshape(*tiles.shape[:-1], -1, 2, 8)
    gate, up = split[..., 0, :], split[..., 1, :]
    with np.errstate(over="ignore"):  # exp(-gate) may overflow to infinity: silu is then -0
        mixed = gate / (np.float32(1) + np.exp(-gate)) * up
    gated: Floats = mixed.astype(np.float32).reshape(*tiles.shape[:-1], -1)
    return gated


def to_half(values: Floats) -> NDArray[np.float16]:
    """Float16 of keys and values, saturating."""
    return np.clip(values, np.float32(-65504), np.float32(65504)).astype(np.float16)


def attend(query: Floats, keys: NDArray[np.float16], values: NDArray[np.float16]) -> Floats:
    """One head, one token: mix of `values` (positions, head_dim), chunk by chunk of positions.

    The scaled query and the weights are float16, as the tensor cores take them.
    """
    scaled = to_half(query * (np.float32(1) / np.sqrt(np.float32(query.size)))).astype(np.float32)
    largest, total = np.float32(-np.inf), np.float32(0)
    mix = np.zeros(query.size, dtype=np.float32)
    block = 128 if query.size <= 64 else 64
    for start in range(0, keys.shape[0], block):
        chunks = [slice(at, at + CHUNK) for at in range(start, start + block, CHUNK)]
        chunks = [chunk for chunk in chunks if chunk.start < keys.shape[0]]
        scores = [keys[chunk].astype(np.float32) @ scaled for chunk in chunks]
        both = max(largest, *(np.float32(s.max()) for s in scores))
        keep = np.exp(largest - both)
        total, mix = total * keep, mix * keep
        for chunk, score in zip(chunks, scores, strict=True):
            theirs = np.float32(score.max())
            weights, take = np.exp(score - theirs), np.exp(theirs - both)
            lanes = np.zeros(_LANES, dtype=np.float32)
            lanes[: weights.size] = weights
            total = total + butterfly(lanes) * take
            part = to_half(weights).astype(np.float32) @ values[chunk].astype(np.float32)
            mix = mix + part * take
        largest = both
    return mix * (np.float32(1) / total)
