# SPDX-License-Identifier: Apache-2.0
"""The fragment layout, checked against the PTX manual's own formula for each lane and byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import RopeLayout
from engine.fp8.packing import gate_up_row_order, pack, rope_row_order, unpack


def place(lane: int, byte: int) -> tuple[int, int]:
    """Row and column of byte `byte` of `lane` (PTX ISA, mma.m16n8k32, matrix A of .e4m3 type).

    The manual numbers elements a_i, i = 0..15: row = groupID for 0<=i<4 and 8<=i<12, else groupID + 8;
    column = threadID_in_group * 4 + (i & 3), plus 16 for i >= 8.
    """
    group, thread = lane // 4, lane % 4
    row = group if 0 <= byte < 4 or 8 <= byte < 12 else group + 8
    column = thread * 4 + (byte & 3) + (16 if byte >= 8 else 0)
    return row, column


def test_each_lane_holds_what_the_instruction_reads() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (48, 96)).astype(np.uint8)
    packed = pack(codes)
    assert packed.shape == (3, 3, 32, 16)
    for tile in range(3):
        for step in range(3):
            for lane in range(32):
                for byte in range(16):
                    row, column = place(lane, byte)
                    expected = codes[16 * tile + row, 32 * step + column]
                    assert packed[tile, step, lane, byte] == expected


@given(st.integers(1, 70), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_unpack_undoes_pack(rows: int, steps: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 256, (rows, steps * 32)).astype(np.uint8)
    packed = pack(codes)
    np.testing.assert_array_equal(unpack(packed, rows), codes)
    assert not unpack(packed, packed.shape[0] * 16)[rows:].any()


def test_ragged_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 32"):
        pack(np.zeros((16, 40), dtype=np.uint8))


@pytest.mark.parametrize("layout", list(RopeLayout))
@pytest.mark.parametrize(("heads", "size"), [(9, 64), (3, 16), (2, 128), (1, 96)])
def test_rotary_pairs_share_a_tile(layout: RopeLayout, heads: int, size: int) -> None:
    order = rope_row_order(heads, size, layout)
    assert sorted(order) == list(range(heads * size))
    for first in range(0, heads * size, 16):
        for g in range(8):
            low, high = int(order[first + g]), int(order[first + g + 8])
            assert low // size == high // size
            apart = size // 2 if layout is RopeLayout.HALF_SPLIT else 1
            assert high - low == apart
            index = low % size if layout is RopeLayout.HALF_SPLIT else low % size // 2
            assert index == first % size // 2 + g


def test_gate_and_up_share_a_tile() -> None:
    order = gate_up_row_order(24)
    assert order[:16].tolist() == [*range(8), *range(24, 32)]
    assert sorted(order) == list(range(48))


def test_odd_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 16"):
        rope_row_order(2, 40, RopeLayout.HALF_SPLIT)
    with pytest.raises(ValueError, match="multiple of 8"):
        gate_up_row_order(20)
