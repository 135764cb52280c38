# SPDX-License-Identifier: Apache-2.0
"""The barriers of the cluster kernel as a model: blocks in any order, and every input whole when it is read.

The figures are those of `kernels/cluster.cu` (what a block expects) and `send_made` (what it sends).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from engine.config import ModelConfig
from engine.cuda import build
from engine.cuda.cluster_schedule import ClusterSchedule
from engine.cuda.cluster_schedule import build as cut_work
from engine.cuda.cluster_shape import CLUSTER
from engine.cuda.shape import LAYER_PRODUCTS, Op
from tests.helpers.random_source import tiny_config

SMOLLM2 = tiny_config(heads=(9, 3), head_dim=64, dim=576, ffn=1536)
QWEN = tiny_config(heads=(14, 2), head_dim=64, dim=896, ffn=4864)
LAYERS = 3
# What each product reads, and which product's input it makes (the first one's in the next layer).
READS = {Op.QKV: "x", Op.OUT: "wide", Op.GATE_UP: "x", Op.DOWN: "wide"}


class Barrier:
    """An mbarrier: a phase ends when all have arrived and no byte is missing."""

    def __init__(self, arrivals: int) -> None:
        self._arrivals = self._left = arrivals
        self.bytes = 0
        self.phase = 0

    def _look(self) -> None:
        if self._left == 0 and self.bytes == 0:
            self.phase += 1
            self._left = self._arrivals

    def arrive(self, expected: int = 0) -> None:
        self.bytes += expected
        self._left -= 1
        assert self._left >= 0, "arrived once too often in a phase"
        self._look()

    def complete(self, count: int) -> None:
        self.bytes -= count
        assert abs(self.bytes) < 1 << 20, "the counter of bytes overflows"
        self._look()


def _arrivals(op: Op) -> int:
    return 1 if op is Op.OUT else 2  # arrivals_at in cluster_state.cuh


class Cluster:
    """Sixteen blocks that run LAYERS layers for `live` tokens each request."""

    def __init__(self, config: ModelConfig, schedule: ClusterSchedule, live: int) -> None:
        self.config, self.live = config, live
        self.tiles = [
            {op: rank.tiles[i] for i, op in enumerate(LAYER_PRODUCTS)} for rank in schedule.ranks
        ]
        self.barriers = [{op: Barrier(_arrivals(op)) for op in LAYER_PRODUCTS} for _ in self.tiles]
        # By block and buffer: who made what lies there, for each rank's part.
        self.buffers: list[dict[str, dict[int, tuple[Op, int]]]] = [
            {"x": {}, "wide": {}} for _ in self.tiles
        ]
        self.reading: list[str | None] = [None] * CLUSTER

    def made_bytes(self, op: Op, rank: int) -> int:
        """Of what `rank` makes in product `op` of a layer."""
        count = self.tiles[rank][op][1]
        if op is Op.GATE_UP:
            return count // 2 * self.live * 32
        if op is Op.QKV:  # after attention: here each rank mixes an equal part
            width = self.config.n_heads * self.config.head_dim * 2 * self.live
            return width // CLUSTER + (width % CLUSTER if rank == 0 else 0)
        return count * (self.live * 32 + -(-self.live // 4) * 16)

    def expected(self, op: Op, rank: int) -> int:
        """As read_program computes it."""
        norm = self.live * 32 + -(-self.live // 4) * 16
        norms = (self.config.dim // 16 - self.tiles[rank][Op.OUT][1]) * norm
        gated = self.live * self.config.ffn_dim * 2
        gated -= self.tiles[rank][Op.GATE_UP][1] // 2 * self.live * 32
        mixed = self.live * self.config.n_heads * self.config.head_dim * 2
        return {Op.QKV: norms, Op.OUT: mixed, Op.GATE_UP: norms, Op.DOWN: gated}[op]

    def run(self, rank: int, requests: int) -> Iterator[None]:
        """One block, step by step; between two steps any other block may run."""
        phases = dict.fromkeys(LAYER_PRODUCTS, 0)

        def wait(op: Op) -> Iterator[None]:
            self.barriers[rank][op].arrive(self.expected(op, rank))
            yield
            while self.barriers[rank][op].phase == phases[op]:
                yield
            phases[op] += 1
            assert self.barriers[rank][op].phase == phases[op], "overtaken by a whole phase"

        for _ in range(requests):
            for layer in range(LAYERS):
                for op in LAYER_PRODUCTS:
                    first = op is Op.QKV and layer == 0
                    if not first:
                        yield from wait(op)
                        before = LAYER_PRODUCTS[(LAYER_PRODUCTS.index(op) + 3) % 4]
                        made = (before, layer - 1 if op is Op.QKV else layer)
                        self.reading[rank] = READS[op]
                        yield
                        parts = self.buffers[rank][READS[op]]
                        assert parts == dict.fromkeys(range(CLUSTER), made)
                    yield
                    self.reading[rank] = None
                    yield from self._send(op, layer, rank)
            yield from wait(Op.QKV)

    def _send(self, op: Op, layer: int, rank: int) -> Iterator[None]:
        after = LAYER_PRODUCTS[(LAYER_PRODUCTS.index(op) + 1) % 4]
        for to in range(CLUSTER):
            buffer = READS[after]
            assert self.reading[to] != buffer, "overwritten while it is read"
            self.buffers[to][buffer][rank] = (op, layer)
            barrier = self.barriers[to][after]
            if to == rank and op is not Op.QKV:
                barrier.arrive()
            else:
                barrier.complete(self.made_bytes(op, rank))
            yield


@pytest.mark.parametrize(("config", "width"), [(SMOLLM2, 8), (SMOLLM2, 24), (QWEN, 8)])
@pytest.mark.parametrize("seed", range(2))
def test_every_input_is_whole_when_it_is_read(config: ModelConfig, width: int, seed: int) -> None:
    chance = random.Random(seed)
    live = chance.randint(1, width)
    cluster = Cluster(config, cut_work(config, 1, width=width), live)
    blocks = [cluster.run(rank, 3) for rank in range(CLUSTER)]
    speeds = [chance.choice([1, 1, 4, 30]) for _ in blocks]  # some far slower than others
    left = set(range(CLUSTER))
    for _ in range(2_000_000):
        rank = chance.choices(range(CLUSTER), weights=[1 / s for s in speeds])[0]
        if rank in left and next(blocks[rank], "end") == "end":
            left.discard(rank)
        if not left:
            break
    assert not left, f"blocks {sorted(left)} wait for ever"
    for barriers in cluster.barriers:
        assert all(barrier.bytes == 0 for barrier in barriers.values())


def test_a_bulk_copy_is_for_another_block() -> None:
    text = build.sources()["cluster_product.cuh"]
    calls = [line for line in text.splitlines() if "send_bulk(" in line]
    assert calls
    assert all("rank != own" in line for line in calls)


def test_roles_meet_in_barriers_that_need_not_be_one_instruction() -> None:
    # `bar.sync` is `barrier.sync.aligned`. Only barrier 0, of the computing warps, is at one place for all.
    for name, text in build.sources().items():
        for line in text.splitlines():
            if "bar.sync " in line and 'asm volatile("bar.sync' in line:
                assert '"bar.sync 0,' in line, name
