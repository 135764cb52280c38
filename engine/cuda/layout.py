# SPDX-License-Identifier: Apache-2.0
"""How one model is laid out on one device: which kernel, how many blocks, which program a request gets.

Three kernels. In the grid kernel all blocks work together on each product: any model, any architecture, e4m3
activations. In the cluster kernel clusters work apart: small models on sm_90, float16 activations. In the panel
kernel all blocks work together with warpgroup instructions: large models on sm_90a, float16 activations. Which
one serves is decided once, when the model is opened; their numbers differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.cuda import cluster_schedule, memory, panel_schedule, panel_shape, schedule, shape
from engine.cuda.build import Variant
from engine.cuda.cluster_shape import CLUSTER, ClusterVariant
from engine.cuda.mailbox import Want
from engine.cuda.panel_shape import WIDTHS, PanelVariant
from engine.cuda.shape import LAYER_PRODUCTS, MAX_TOKENS, TILE_TOKENS, KernelVariant, Op
from engine.cuda.validate import validate
from engine.fp8.quantise import Grouping


@dataclass(frozen=True, slots=True)
class Tuning:
    """Choices that change speed, never results; `kernel` alone changes numbers.

    `kernel`: "auto" takes the cluster kernel for small models and the panel kernel for large ones, where
    they can run, and the grid kernel elsewhere; "panel" takes the panel kernel wherever it can run, "grid"
    neither.
    """

    kernel: str = "auto"
    wide: int = 2  # grid: tiles of 8 tokens that one block computes at once in long requests
    few_workers: int = 96  # grid: blocks for requests of at most 8 tokens
    many_workers: int = 1 << 16  # grid: blocks for longer ones, at most all
    share_from: int = 1  # grid: tokens from which one block quantises a token's inputs for all
    ring: int = 64  # requests that may wait, at most shape.MAX_RING
    wait_ms: int = 1000  # longest wait inside a request before the kernel gives up
    lease_ms: int = 500
    idle_ms: int = 150
    # Keep the cache and what blocks exchange in L2, as far as the device allows.
    pin_l2: bool = False


class Layout(Protocol):
    """`name`: "grid", "cluster" or "panel".

    `shared_bytes`: dynamic shared memory of a block; `program_units`: 16-byte words of a program;
    `exchange_bytes`: of each buffer through which blocks exchange, by the name of its parameter.
    """

    @property
    def name(self) -> str: ...
    @property
    def variant(self) -> Variant: ...
    @property
    def blocks(self) -> int: ...
    @property
    def cluster(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def programs(self) -> int: ...
    @property
    def program_units(self) -> int: ...
    @property
    def most_tokens(self) -> int: ...
    def exchange_bytes(self) -> dict[str, int]: ...
    def arrange(self, op: Op, codes: NDArray[np.uint8]) -> NDArray[np.uint8]: ...
    def program_for(self, tokens: int, want: Want) -> int: ...
    def encode(self, program: int) -> NDArray[np.int32]: ...


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which program serves a request."""

    width: int
    groups: int
    all_logits: bool
    shared_inputs: bool


def _units_exchanged(config: ModelConfig) -> dict[str, int]:
    return {name: 16 * units for name, units in memory.exchange_units(config).items()}


class GridLayout:
    """The grid kernel on `blocks` blocks."""

    name: Final = "grid"
    cluster: Final = 1
    threads: Final = shape.THREADS

    def __init__(
        self, config: ModelConfig, grouping: Grouping, arch: str, blocks: int, tuning: Tuning
    ) -> None:
        self._config, self._grouping, self._tuning = config, grouping, tuning
        self.blocks = blocks
        self.variant = KernelVariant(config, grouping, tuning.wide, arch)
        self._plans = self._all_plans()
        self.programs = len(self._plans)
        self.program_units = self._longest_program()
        self.shared_bytes = self._shared_memory()
        self.most_tokens = min(MAX_TOKENS, max(p.width * p.groups for p in self._plans))

    def _all_plans(self) -> list[_Plan]:
        wide = TILE_TOKENS * self._tuning.wide
        most = min(-(-MAX_TOKENS // wide), self._workers(TILE_TOKENS + 1))
        plans = []
        for all_logits in (False, True):
            plans += [_Plan(TILE_TOKENS, 1, all_logits, shared) for shared in (False, True)]
            plans += [_Plan(wide, groups, all_logits, True) for groups in range(1, most + 1)]
        return plans

    def _workers(self, tokens: int) -> int:
        few = tokens <= TILE_TOKENS
        wanted = self._tuning.few_workers if few else self._tuning.many_workers
        return min(wanted, self.blocks)

    def _tiles(self, op: Op) -> int:
        return shape.product_shape(self._config, self._grouping, op).tiles

    def _group_size(self, plan: _Plan) -> int:
        return self._workers(plan.width * plan.groups) // plan.groups

    def _longest_program(self) -> int:
        config = self._config
        longest = 0
        for plan in self._plans:
            smallest = self._group_size(plan)
            pieces = len(schedule.attention_pieces(config, plan.width, smallest))
            products = len(LAYER_PRODUCTS) * (1 + plan.shared_inputs)
            longest = max(longest, 2 + config.n_layers * (products + -(-pieces // smallest)))
        return longest

    def _shared_memory(self) -> int:
        out, head = self._tiles(Op.OUT), self._tiles(Op.HEAD)
        tail = max(-(-out // self._group_size(p)) * p.width * 64 for p in self._plans)
        tail = max(tail, -(-head // self.blocks) * 64)
        variant = self.variant
        return variant.shared_struct_bytes + variant.scratch_bytes + 16 * self.program_units + tail

    def exchange_bytes(self) -> dict[str, int]:
        """Bytes of each buffer that blocks exchange."""
        return _units_exchanged(self._config)

    def arrange(self, op: Op, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Codes of one layer as the kernel reads them: as they are packed."""
        return codes

    def program_for(self, tokens: int, want: Want) -> int:
        """Index of the program for a request of `tokens` tokens."""
        all_logits = bool(want & Want.ALL_LOGITS)
        width = TILE_TOKENS * (1 if tokens <= TILE_TOKENS else self._tuning.wide)
        shared = tokens >= self._tuning.share_from or tokens > TILE_TOKENS
        return self._plans.index(_Plan(width, -(-tokens // width), all_logits, shared))

    def encode(self, program: int) -> NDArray[np.int32]:
        """A program of every block, proven to end.

        Raises:
            ScheduleError: it is not sound.
        """
        plan = self._plans[program]
        built = schedule.build(
            self._config,
            self._grouping,
            self.blocks,
            width=plan.width,
            groups=plan.groups,
            workers=self._workers(plan.width * plan.groups),
            all_logits=plan.all_logits,
            shared_inputs=plan.shared_inputs,
        )
        validate(self._config, self._grouping, built)
        return built.encode(self.program_units)


class ClusterLayout:
    """The cluster kernel on `clusters` clusters."""

    name: Final = "cluster"
    cluster: Final = CLUSTER

    def __init__(self, variant: ClusterVariant, clusters: int) -> None:
        self._config = variant.config
        self._clusters = clusters
        self.variant = variant
        self.blocks = clusters * CLUSTER
        self.shared_bytes = variant.shared_bytes(self.blocks)
        self.threads = variant.threads
        self._plans = [
            (width, all_logits)
            for width in sorted({TILE_TOKENS, variant.width})
            for all_logits in (False, True)
        ]
        self.programs = len(self._plans)
        self.program_units = variant.program_units
        self.most_tokens = min(MAX_TOKENS, variant.width * clusters)

    def exchange_bytes(self) -> dict[str, int]:
        """Bytes of each buffer that blocks exchange."""
        return _units_exchanged(self._config)

    def arrange(self, op: Op, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Codes of one layer as the kernel reads them: as they are packed."""
        return codes

    def program_for(self, tokens: int, want: Want) -> int:
        """Index of the program for a request of `tokens` tokens."""
        few = tokens <= TILE_TOKENS * self._clusters
        width = TILE_TOKENS if few else self.variant.width
        return self._plans.index((width, bool(want & Want.ALL_LOGITS)))

    def encode(self, program: int) -> NDArray[np.int32]:
        """A program of every block, proven to end.

        Raises:
            ScheduleError: it is not sound.
        """
        width, all_logits = self._plans[program]
        built = cluster_schedule.build(
            self._config, self._clusters, width=width, all_logits=all_logits
        )
        cluster_schedule.validate(self._config, built)
        return built.encode(self.variant)


class PanelLayout:
    """The panel kernel on the blocks of `variant`."""

    name: Final = "panel"
    cluster: Final = 1

    def __init__(self, variant: PanelVariant) -> None:
        self._config = variant.config
        self.variant = variant
        self.blocks = variant.blocks
        self.threads = variant.threads
        self.shared_bytes = variant.shared_bytes
        self._plans = [(width, every) for width in WIDTHS for every in (False, True)]
        self.programs = len(self._plans)
        self.program_units = variant.program_units
        self.most_tokens = MAX_TOKENS

    def exchange_bytes(self) -> dict[str, int]:
        """Bytes of each buffer that blocks exchange."""
        return panel_shape.exchange_bytes(self._config)

    def arrange(self, op: Op, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Codes of one layer as the kernel reads them: panel by panel."""
        return panel_schedule.arrange(self._config, op, self.blocks, codes)

    def program_for(self, tokens: int, want: Want) -> int:
        """Index of the program for a request of `tokens` tokens."""
        width = next(width for width in WIDTHS if tokens <= width)
        return self._plans.index((width, bool(want & Want.ALL_LOGITS)))

    def encode(self, program: int) -> NDArray[np.int32]:
        """A program of every block, proven to end.

        Raises:
            ScheduleError: it is not sound.
        """
        width, all_logits = self._plans[program]
        built = panel_schedule.build(self._config, self.blocks, width=width, all_logits=all_logits)
        panel_schedule.validate(self._config, built)
        return built.encode(self.program_units)
