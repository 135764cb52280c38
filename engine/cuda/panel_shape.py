# SPDX-License-Identifier: Apache-2.0
"""Figures of the panel kernel. Mirrors `panel_state.cuh`; a test compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.config import ModelConfig
from engine.cuda.shape import (
    LAYER_PRODUCTS,
    MAX_ROWS,
    MAX_TOKENS,
    PRODUCTS,
    THREADS,
    WARPS,
    Op,
    product_shape,
    shared_defines,
)
from engine.fp8.packing import STEP_COLUMNS, TILE_ROWS
from engine.fp8.quantise import Grouping

PANEL: Final = WARPS  # tiles of a panel
WIDTHS: Final = (8, 32, 128)  # tokens that a request is computed for
TEAMS: Final = 3
STAGE_STEPS: Final = 2
STAGE_COLUMNS: Final = STAGE_STEPS * STEP_COLUMNS
MAX_SLICES: Final = 12
LEAST_STAGES: Final = 4  # of a slice
SPREAD: Final = 132  # panels times slices stay below; part of the numbers, not of the device
# Products of one slice whose panels are made smaller until all blocks have some. The others make the parts of
# a norm, which are panels of 12 tiles.
_LEVELLED: Final = (Op.QKV, Op.GATE_UP)
COUNTER_WORDS: Final = 8
_GROUPS: Final = MAX_TOKENS // 8
_LEAST_SHARED: Final = 227 << 10


@dataclass(frozen=True, slots=True)
class Cut:
    """One product: panels of `size` tiles, `slices` parts along K that are added in order."""

    stages: int
    tiles: int
    panels: int
    slices: int
    size: int

    def slice_stages(self, index: int) -> tuple[int, int]:
        """First and end stage of slice `index`."""
        return index * self.stages // self.slices, (index + 1) * self.stages // self.slices


def cut(config: ModelConfig, op: Op) -> Cut:
    """Cut of the product `op`; depends on the model alone."""
    shape = product_shape(config, Grouping.CHANNEL, op)
    panels, stages = -(-shape.tiles // PANEL), shape.columns // STAGE_COLUMNS
    size = PANEL
    if op in _LEVELLED and 2 * panels > SPREAD:
        size = -(-shape.tiles // (-(-panels // SPREAD) * SPREAD))
        panels = -(-shape.tiles // size)
    slices = max(1, min(SPREAD // panels, MAX_SLICES, stages // LEAST_STAGES))
    return Cut(stages, shape.tiles, panels, 1 if op is Op.HEAD else slices, size)


def pieces(config: ModelConfig, width: int) -> list[tuple[int, int, int]]:
    """(key-value head, first token, end token) of all attention of a request of `width` tokens."""
    most = max(1, MAX_ROWS // (config.n_heads // config.n_kv_heads))
    return [
        (head, first, min(first + most, width))
        for head in range(config.n_kv_heads)
        for first in range(0, width, most)
    ]


@dataclass(frozen=True, slots=True)
class PanelVariant:
    """What one cubin of the panel kernel is compiled for. `blocks`: how many a launch has."""

    config: ModelConfig
    blocks: int
    shared_memory: int
    arch: str = "sm_90a"

    main = "panel.cu"
    kernel = "thock_panel"
    threads = THREADS + 128

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: all that there is, mostly for weights on their way."""
        return self.shared_memory

    @property
    def head_tiles(self) -> int:
        """Tiles of the head of one block, at most."""
        return -(-cut(self.config, Op.HEAD).tiles // self.blocks)

    @property
    def program_units(self) -> int:
        """Words (of 16 bytes) of a block's program, at most."""
        config, blocks = self.config, self.blocks
        items = sum(
            -(-c.panels * c.slices // blocks) for c in (cut(config, op) for op in LAYER_PRODUCTS)
        )
        attention = TEAMS * -(-len(pieces(config, max(WIDTHS))) // (TEAMS * blocks))
        return 2 + items + -(-self.head_tiles // PANEL) + attention

    def defines(self) -> dict[str, str]:
        """Preprocessor definitions."""
        return {
            **shared_defines(self.config, Grouping.CHANNEL, 1),
            "SPREAD": str(SPREAD),
            # The kernel asserts that its own figures are these.
            "HOST_CUTS": ", ".join(
                str(number)
                for op in LAYER_PRODUCTS
                for number in (cut(self.config, op).panels, cut(self.config, op).slices)
            ),
            "HOST_PARTS_BYTES": str(exchange_bytes(self.config)["new_kv"]),
            "HOST_STATE_BYTES": str(exchange_bytes(self.config)["codes_shared"]),
            "SHARED_LIMIT": str(self.shared_memory),
            "PROGRAM_UNITS": str(self.program_units),
            "TAIL_BYTES": str(self.head_tiles * TILE_ROWS * 4),
            **{
                f"TEAMS_{name}": str(min(TEAMS, -(-len(pieces(self.config, width)) // self.blocks)))
                for name, width in zip(("FEW", "SOME", "MANY"), WIDTHS, strict=True)
            },
        }


def exchange_bytes(config: ModelConfig) -> dict[str, int]:
    """Bytes of each buffer that blocks exchange, by the name of its parameter."""
    query = config.n_heads * config.head_dim
    cuts = [cut(config, op) for op in LAYER_PRODUCTS]
    groups = _GROUPS + WIDTHS[1] // 8  # counted, and flagged
    parts = max(c.panels * c.slices for c in cuts) * groups * PANEL * 32 * 16
    residual = config.dim * MAX_TOKENS * 4
    norm_panels = -(-(config.dim // TILE_ROWS) // PANEL)
    per_layer = 5 + sum(c.panels for c in cuts)
    counters = 2 * (1 + config.n_layers * per_layer) * COUNTER_WORDS * 4
    return {
        "x_attention": config.dim * (MAX_TOKENS + 8) * 2,
        "x_ffn": config.dim * MAX_TOKENS * 2,
        "queries": query * MAX_TOKENS * 2,
        "new_kv": parts,
        "mixed": query * MAX_TOKENS * 2,
        "gated": config.ffn_dim * MAX_TOKENS * 2,
        "codes_shared": residual + (2 * norm_panels + 1) * MAX_TOKENS * 4 + counters,
    }


def fitting_variant(
    config: ModelConfig, grouping: Grouping, arch: str, shared_memory: int, blocks: int
) -> PanelVariant | None:
    """The variant for this model and device, or None where another kernel must do."""
    if not arch.startswith("sm_90") or grouping is not Grouping.CHANNEL:
        return None
    widths = (config.dim, config.n_heads * config.head_dim, config.ffn_dim)
    if any(width % STAGE_COLUMNS for width in widths) or config.head_dim not in (64, 128):
        return None
    if config.n_heads // config.n_kv_heads > MAX_ROWS or shared_memory < _LEAST_SHARED:
        return None
    if any(cut(config, op).slices > blocks for op in PRODUCTS):
        return None
    return PanelVariant(config, blocks, shared_memory)
