# SPDX-License-Identifier: Apache-2.0
"""How the cluster kernel cuts a model. Mirrors `kernels/cluster_state.cuh`, which asserts the total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.config import ModelConfig
from engine.cuda.shape import (
    CHUNK,
    LARGE_PARAMETERS,
    LAYER_PRODUCTS,
    MAX_ROWS,
    MAX_TOKENS,
    THREADS,
    TILE_TOKENS,
    WARPS,
    Op,
    product_shape,
    shared_defines,
)
from engine.fp8.packing import STEP_COLUMNS, TILE_ROWS
from engine.fp8.quantise import Grouping

CLUSTER: Final = 16  # blocks; more than 8 need the kernel's consent (a non-portable size)
CHUNK_STEPS: Final = 6
MAX_SLICES: Final = 4
_TILE_STEP_BYTES: Final = 512
_PARTIAL_STRIDE: Final = 20


@dataclass(frozen=True, slots=True)
class Cut:
    """One product: tiles of 16 rows, `slices` parts along K, one warp each, added in order."""

    steps: int
    tiles: int
    most: int  # tiles of one block
    slices: int

    def slice_steps(self, index: int) -> tuple[int, int]:
        """First and end step of slice `index`."""
        return index * self.steps // self.slices, (index + 1) * self.steps // self.slices


def cut(config: ModelConfig, op: Op) -> Cut:
    """Cut of the product `op`; depends on the model alone."""
    shape = product_shape(config, Grouping.CHANNEL, op)
    if op is Op.HEAD:
        return Cut(shape.steps, shape.tiles, shape.tiles, 1)
    together = 2 if op is Op.GATE_UP else 1  # two tiles make 16 columns of the next input
    most = -(-shape.tiles // together // CLUSTER) * together
    return Cut(
        shape.steps,
        shape.tiles,
        most,
        max(1, min(WARPS // most, MAX_SLICES, shape.steps // CHUNK_STEPS)),
    )


def _norm_tile(tokens: int) -> int:
    return tokens * 32 + -(-tokens // 4) * 16


def pieces(config: ModelConfig, width: int) -> int:
    """Parts into which a group's tokens are cut for attention to one key-value head."""
    return max(1, min(width, CLUSTER // config.n_kv_heads))


@dataclass(frozen=True, slots=True)
class ClusterVariant:
    """What one cubin of the cluster kernel is compiled for.

    `wide`: tiles of 8 tokens that a cluster takes at most. `slots`: weight chunks of CHUNK_STEPS steps that
    each warp has room for, in requests with few tokens and in others.
    """

    config: ModelConfig
    wide: int
    slots: tuple[int, int]
    arch: str = "sm_90a"

    main = "cluster.cu"
    kernel = "thock_cluster"
    threads = THREADS + 64

    @property
    def width(self) -> int:
        return TILE_TOKENS * self.wide

    @property
    def program_units(self) -> int:
        """Words (of 16 bytes) of a block's program."""
        return 3 + -(-self.config.n_kv_heads * self.width // 8)

    @property
    def plan_bytes(self) -> tuple[int, int]:
        """Shared memory but for the tail, with few tokens and with many."""
        few, many = (
            self._plan_bytes(columns) + WARPS * slots * CHUNK_STEPS * _TILE_STEP_BYTES
            for columns, slots in zip((TILE_TOKENS, self.width), self.slots, strict=True)
        )
        return few, many

    def shared_bytes(self, blocks: int) -> int:
        """Dynamic shared memory of each of `blocks` blocks."""
        head = -(-cut(self.config, Op.HEAD).tiles // blocks)
        out = cut(self.config, Op.OUT).most
        few, many = self.plan_bytes
        tails = (max(head, out * columns) * TILE_ROWS * 4 for columns in (TILE_TOKENS, self.width))
        return max(fixed + tail for fixed, tail in zip((few, many), tails, strict=True))

    def _plan_bytes(self, columns: int) -> int:
        config = self.config
        cuts = {op: cut(config, op) for op in LAYER_PRODUCTS}
        head = config.head_dim
        query = config.n_heads * head
        positions = 128 if head <= 64 else 64
        kv = 2 * positions * (head + 8) * 2
        rows = -(-columns // pieces(config, columns)) * (config.n_heads // config.n_kv_heads)
        chunks = rows * (positions // CHUNK) * (head + 2) * 4
        x = -(-max(config.dim // TILE_ROWS * _norm_tile(columns), chunks) // 16) * 16
        wide = max(columns * config.ffn_dim * 2, columns * query * 2 + kv)
        made = cuts[Op.OUT].most * _norm_tile(columns)
        partials = max(c.most * c.slices for c in cuts.values()) * columns * _PARTIAL_STRIDE * 4
        fresh = max(cuts[Op.GATE_UP].most * columns * 16, columns * 2 * (head + 8) * 2)
        queries = MAX_ROWS * (head + 8) * 2
        tiles = sum(c.most for c in cuts.values()) + cuts[Op.OUT].most + cuts[Op.DOWN].most
        constants = 2 * tiles * TILE_ROWS * 4
        rope = columns * head * 4
        program = 16 * self.program_units
        rest = made + fresh + queries + rope + constants + program
        return self._state_bytes + x + wide + partials + rest

    @property
    def _state_bytes(self) -> int:
        config = self.config
        cuts = [cut(config, op) for op in LAYER_PRODUCTS]
        common = 24 + 8 + 8 + WARPS * 8 + 8 + WARPS * 4 + MAX_TOKENS * 4
        barriers = (5 + 2 + 2 + 2 * WARPS * max(self.slots)) * 8
        items = sum(-(-c.most * c.slices // WARPS) for c in cuts)
        rest = 4 * 32 + WARPS * items * 16 + WARPS * 5 * 4 + 12 + 4 + 8
        rest += config.n_kv_heads * 4 + self.width * 2 * 4
        return -(-(common + barriers + rest) // 16) * 16

    def defines(self) -> dict[str, str]:
        """Preprocessor definitions; the kernel asserts the size against its own."""
        return {
            **shared_defines(self.config, Grouping.CHANNEL, self.wide),
            "CLUSTER": str(CLUSTER),
            "SLOTS_FEW": str(self.slots[0]),
            "SLOTS_MANY": str(self.slots[1]),
            "HOST_FEW_BYTES": str(self.plan_bytes[0]),
            "HOST_MANY_BYTES": str(self.plan_bytes[1]),
        }


def fitting_variant(
    config: ModelConfig, grouping: Grouping, arch: str, shared_memory: int, blocks: int
) -> ClusterVariant | None:
    """The variant for this model and device, or None where another kernel must do.

    `blocks`: how many the launch will have. The cluster kernel is for sm_90, one scale a row, and models
    so small that 16 multiprocessors draw their weights fast enough and hold their activations.
    """
    if not arch.startswith("sm_90") or grouping is not Grouping.CHANNEL:
        return None
    smallest = min(cut(config, op).tiles for op in LAYER_PRODUCTS)
    too_big = config.parameters > LARGE_PARAMETERS or config.n_kv_heads > CLUSTER
    if smallest < CLUSTER or too_big or config.dim % TILE_ROWS or config.dim % STEP_COLUMNS:
        return None
    repeat = config.n_heads // config.n_kv_heads
    for wide in (3, 2, 1):
        width = TILE_TOKENS * wide
        if -(-width // pieces(config, width)) * repeat > MAX_ROWS:
            continue
        fitting = [
            slots
            for slots in ((few, many) for few in range(6, 1, -1) for many in range(6, 1, -1))
            if ClusterVariant(config, wide, slots, arch).shared_bytes(blocks) <= shared_memory
        ]
        if fitting:
            return ClusterVariant(config, wide, max(fitting, key=lambda s: (min(s), s)), arch)
    return None
