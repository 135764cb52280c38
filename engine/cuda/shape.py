# SPDX-License-Identifier: Apache-2.0
"""Numbers that host and kernel share. Mirrors `request.cuh` and `state.cuh` in `kernels/`; a test compares."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from engine.config import ModelConfig
from engine.fp8.packing import STEP_COLUMNS, TILE_ROWS
from engine.fp8.quantise import Grouping

WARPS: Final = 12
THREADS: Final = WARPS * 32
TILE_TOKENS: Final = 8
MAX_TOKENS: Final = 128
LARGE_PARAMETERS: Final = 500_000_000  # a model with more is not for clusters of blocks
MAX_TOP: Final = 16
MAX_ROWS: Final = 16
CHUNK: Final = 32
TOKENS_PER_UNIT: Final = 3
REQUEST_UNITS: Final = 1 + -(-MAX_TOKENS // TOKENS_PER_UNIT)
REPLY_UNITS: Final = 2 + MAX_TOP
MAX_RING: Final = 2048  # requests that may wait


class Op(enum.IntEnum):
    """What one instruction does."""

    QKV = 0
    OUT = 1
    GATE_UP = 2
    DOWN = 3
    HEAD = 4
    ATTENTION = 5
    QUANTISE = 6


PRODUCTS: Final = (Op.QKV, Op.OUT, Op.GATE_UP, Op.DOWN, Op.HEAD)
LAYER_PRODUCTS: Final = PRODUCTS[:4]


@dataclass(frozen=True, slots=True)
class ProductShape:
    """How one matrix product is cut. All figures depend on the model alone."""

    columns: int
    rows: int
    segment: int  # MMA steps between FP32 promotions
    groups: int  # weight scales a row
    segments_per_group: int

    @property
    def tiles(self) -> int:
        return -(-self.rows // TILE_ROWS)

    @property
    def steps(self) -> int:
        return self.columns // STEP_COLUMNS

    @property
    def segments(self) -> int:
        return -(-self.steps // self.segment)

    @property
    def slices(self) -> int:
        """Parts along K that different warps add up, in this order."""
        return min(self.segments, WARPS, max(1, self.steps // 4))

    def slice_steps(self, index: int) -> tuple[int, int]:
        """First and end step of slice `index`."""
        begin = index * self.segments // self.slices * self.segment
        end = (index + 1) * self.segments // self.slices * self.segment
        return begin, min(end, self.steps)


_SEGMENT: Final = {
    Grouping.CHANNEL: 4,
    Grouping.G32: 1,
    Grouping.G64: 2,
    Grouping.G128: 4,
    Grouping.G192: 2,
}


def product_shape(config: ModelConfig, grouping: Grouping, op: Op) -> ProductShape:
    """Cut of the matrix product `op` of this model."""
    query = config.n_heads * config.head_dim
    kv = config.n_kv_heads * config.head_dim
    columns = {Op.OUT: query, Op.DOWN: config.ffn_dim}.get(op, config.dim)
    rows = {
        Op.QKV: query + 2 * kv,
        Op.GATE_UP: 2 * config.ffn_dim,
        Op.HEAD: config.vocab_size,
    }.get(op, config.dim)
    segment = _SEGMENT[grouping]
    segments = -(-(columns // STEP_COLUMNS) // segment)
    per_group = segments if grouping is Grouping.CHANNEL else 3 if grouping is Grouping.G192 else 1
    return ProductShape(columns, rows, segment, grouping.groups(columns), per_group)


def shared_defines(config: ModelConfig, grouping: Grouping, wide: int) -> dict[str, str]:
    """Preprocessor definitions of every kernel."""
    return {
        "LAYERS": str(config.n_layers),
        "DIM": str(config.dim),
        "FFN": str(config.ffn_dim),
        "HEADS": str(config.n_heads),
        "KV_HEADS": str(config.n_kv_heads),
        "HEAD_DIM": str(config.head_dim),
        "VOCAB": str(config.vocab_size),
        "GROUP": str(int(grouping)),
        "NORM_EPS": f"{config.norm_eps!r}f",
        "HAS_BIAS": str(int(config.attention_bias)),
        "WIDE": str(wide),
    }


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """What one cubin of the grid kernel is compiled for. `wide`: tiles of 8 tokens a block computes at once."""

    config: ModelConfig
    grouping: Grouping
    wide: int
    arch: str  # "sm_90a"

    main = "forward.cu"
    kernel = "thock_forward"

    @property
    def code_bytes(self) -> int:
        """Bytes of one activation in shared memory; sm_90 has no FP8 `mma.sync` and keeps float16."""
        return 2 if self.arch.startswith("sm_90") else 1

    @property
    def scratch_bytes(self) -> int:
        """Shared memory that a matrix product or attention needs."""
        config = self.config
        widest = max(config.dim, config.ffn_dim, config.n_heads * config.head_dim)
        stride = -(-self.code_bytes * widest // 128) * 128 + 16 * self.code_bytes
        columns = TILE_TOKENS * self.wide
        product = columns * stride + 2 * WARPS * columns * 20 * 4
        head = config.head_dim
        positions = 128 if head <= 64 else 64  # staged at once
        keys = 2 * positions * (head + 8) * 2
        rows = MAX_ROWS * (head + 8) * 2 + MAX_ROWS * (positions // CHUNK) * (head + 2) * 4
        return -(-max(product, keys + rows) // 16) * 16

    @property
    def shared_struct_bytes(self) -> int:
        """Size of the kernel's `Shared`, rounded up to 16 bytes."""
        columns = TILE_TOKENS * self.wide
        fixed = 24 + 16 + 8 + WARPS * 8 + 8 + WARPS * 4 + MAX_TOKENS * 4
        return -(-(fixed + (3 + 1 + WARPS) * columns * 4) // 16) * 16

    def defines(self) -> dict[str, str]:
        """Preprocessor definitions; the kernel asserts the two sizes against its own."""
        return {
            **shared_defines(self.config, self.grouping, self.wide),
            "HOST_SCRATCH_BYTES": str(self.scratch_bytes),
            "HOST_SHARED_BYTES": str(self.shared_struct_bytes),
        }
