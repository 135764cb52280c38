# SPDX-License-Identifier: Apache-2.0
"""Weights in the order in which tensor-core lanes hold them: 16 bytes a lane, no shuffles on load.

The unit is one A operand of `mma.sync.aligned.m16n8k32 ... e4m3`: 16 rows by 32 columns, 512 bytes.
With g = lane >> 2 and t = lane & 3, a lane holds four 32-bit registers of four consecutive columns:

    a0 = row g,   columns 4t .. 4t+3          a2 = row g,   columns 16+4t .. 16+4t+3
    a1 = row g+8, columns 4t .. 4t+3          a3 = row g+8, columns 16+4t .. 16+4t+3

Source: PTX ISA 8.4, 9.7.14.5.10 "Matrix fragments for mma.m16n8k32", and the CuTe layout
SM80_16x8x32 in `mma_traits_sm89.hpp`. The register-A operand of `wgmma.m64n8k32` has the same map
in each of its four warps, so one packing serves Ada, Hopper and Blackwell.

A packed matrix is (row tiles, column steps, 32 lanes, 16 bytes), contiguous.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.config import RopeLayout

TILE_ROWS: Final = 16
STEP_COLUMNS: Final = 32
LANE_BYTES: Final = 16
LANES: Final = 32
TILE_STEP_BYTES: Final = LANES * LANE_BYTES


def padded_rows(rows: int) -> int:
    """`rows` rounded up to whole tiles."""
    return -(-rows // TILE_ROWS) * TILE_ROWS


def pack(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes (rows, columns) to fragment order (rows/16, columns/32, 32, 16).

    Rows are padded with code 0 (value 0) to whole tiles.

    Raises:
        ValueError: `columns` is no multiple of 32.
    """
    rows, columns = codes.shape
    if columns % STEP_COLUMNS:
        raise ValueError(f"{columns} columns are no multiple of {STEP_COLUMNS}")
    padded = np.zeros((padded_rows(rows), columns), dtype=np.uint8)
    padded[:rows] = codes
    # row = tile*16 + half*8 + g; column = step*32 + upper*16 + t*4 + byte
    split = padded.reshape(-1, 2, 8, columns // STEP_COLUMNS, 2, 4, 4)
    # tile, step, g, t, upper, half, byte: registers a0..a3 are (upper, half) = 00, 01, 10, 11
    lanes = split.transpose(0, 3, 2, 5, 4, 1, 6)
    return np.ascontiguousarray(lanes).reshape(-1, columns // STEP_COLUMNS, LANES, LANE_BYTES)


def unpack(packed: NDArray[np.uint8], rows: int) -> NDArray[np.uint8]:
    """Inverse of `pack`: codes (rows, columns)."""
    tiles, steps = packed.shape[:2]
    lanes = packed.reshape(tiles, steps, 8, 4, 2, 2, 4)
    split = lanes.transpose(0, 5, 2, 1, 4, 3, 6)
    return np.ascontiguousarray(split).reshape(tiles * TILE_ROWS, steps * STEP_COLUMNS)[:rows]


def rope_row_order(heads: int, head_dim: int, layout: RopeLayout) -> NDArray[np.int64]:
    """Row order of W_q or W_k that puts the two rows of a rotary pair at g and g+8 of one tile.

    A lane then holds both in its accumulators and rotates them without a shuffle. The result maps
    packed row to source row, shape (heads * head_dim,). Packed tile i of a head holds pairs
    8i .. 8i+7. Scores do not change: q and k of a head are permuted alike.

    Raises:
        ValueError: `head_dim` is no multiple of 16.
    """
    if head_dim % TILE_ROWS:
        raise ValueError(f"a head of {head_dim} values is no multiple of {TILE_ROWS}")
    pair = np.arange(head_dim // 2).reshape(-1, 8)
    if layout is RopeLayout.HALF_SPLIT:
        first, second = pair, pair + head_dim // 2
    else:
        first, second = 2 * pair, 2 * pair + 1
    within = np.stack([first, second], axis=1).reshape(-1)
    return (np.arange(heads)[:, None] * head_dim + within[None, :]).reshape(-1)


def gate_up_row_order(ffn_dim: int) -> NDArray[np.int64]:
    """Row order of [W_gate; W_up] that puts gate i at g and up i at g+8 of one tile.

    A lane then computes silu(gate) * up without a shuffle. Maps packed row to row of the
    (2 * ffn_dim) stack.

    Raises:
        ValueError: `ffn_dim` is no multiple of 8.
    """
    if ffn_dim % 8:
        raise ValueError(f"a feed-forward width of {ffn_dim} is no multiple of 8")
    gate = np.arange(ffn_dim).reshape(-1, 8)
    return np.stack([gate, gate + ffn_dim], axis=1).reshape(-1)
