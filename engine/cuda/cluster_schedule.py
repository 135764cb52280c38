# SPDX-License-Identifier: Apache-2.0
"""Who computes what in the cluster kernel: built on the host, checked before launch.

Every cluster runs the same program on its own tokens, so a program is written per rank; only the head of
the last token is spread over all blocks of all clusters. Blocks never wait for a program counter: each
input is complete when all its bytes have arrived, and a rank sends what it makes to all who need it. That
ends if every piece is made exactly once, and no block may overtake another by more than an input if every
rank makes some of each (`validate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.cuda.cluster_shape import CLUSTER, ClusterVariant, cut, pieces
from engine.cuda.errors import ScheduleError
from engine.cuda.schedule import Piece, split
from engine.cuda.shape import LAYER_PRODUCTS, MAX_ROWS, TILE_TOKENS, Op

_HEADER_UNITS: Final = 3


@dataclass(frozen=True, slots=True)
class Rank:
    """What one block of each cluster does: (first, count) tiles of each product, and its attention."""

    tiles: tuple[tuple[int, int], ...]  # by LAYER_PRODUCTS
    piece: Piece | None


@dataclass(frozen=True, slots=True)
class ClusterSchedule:
    """`heads`: tiles of the head, (first, count) of each block, or of each rank with `all_logits`.

    `owners[head][token]`: rank that attends, and the first token of its piece: what the makers of
    queries, keys and values go by.
    """

    width: int
    clusters: int
    all_logits: bool
    ranks: tuple[Rank, ...]
    heads: tuple[tuple[int, int], ...]
    owners: tuple[tuple[tuple[int, int], ...], ...]

    def encode(self, variant: ClusterVariant) -> NDArray[np.int32]:
        """The form that the kernel reads: (blocks, variant.program_units, 4) int32."""
        blocks = self.clusters * CLUSTER
        words = np.zeros((blocks, variant.program_units, 4), dtype=np.int32)
        table = np.zeros((len(self.owners), variant.width), dtype=np.uint16)
        for head, row in enumerate(self.owners):
            table[head, : self.width] = [rank | begin << 8 for rank, begin in row]
        flat = np.zeros((variant.program_units - _HEADER_UNITS) * 8, dtype=np.uint16)
        flat[: table.size] = table.reshape(-1)
        for block in range(blocks):
            rank = self.ranks[block % CLUSTER]
            words[block, :2] = np.reshape(rank.tiles, (2, 4))
            head, begin, end = (
                (rank.piece.head, rank.piece.begin, rank.piece.end) if rank.piece else (-1, 0, 0)
            )
            first, count = self.heads[block % len(self.heads)]
            words[block, 2] = first, count, head, begin | end << 8 | self.width << 16
            words[block, _HEADER_UNITS:] = flat.view(np.int32).reshape(-1, 4)
        return words


def _ranks_tiles(config: ModelConfig, op: Op) -> list[tuple[int, int]]:
    together = 2 if op is Op.GATE_UP else 1
    parts = split(cut(config, op).tiles // together, CLUSTER)
    return [(first * together, count * together) for first, count in parts]


def build(
    config: ModelConfig, clusters: int, *, width: int = TILE_TOKENS, all_logits: bool = False
) -> ClusterSchedule:
    """A schedule for `clusters` clusters of CLUSTER blocks that take `width` tokens each."""
    tiles = [_ranks_tiles(config, op) for op in LAYER_PRODUCTS]
    parts = [part for part in split(width, pieces(config, width)) if part[1]]
    # From the last rank backwards: the first ones have more tiles of the products.
    places = {
        CLUSTER - 1 - (head * len(parts) + index): Piece(head, first, first + count)
        for head in range(config.n_kv_heads)
        for index, (first, count) in enumerate(parts)
    }
    owners = [[(0, 0)] * width for _ in range(config.n_kv_heads)]
    for rank, piece in places.items():
        for token in range(piece.begin, piece.end):
            owners[piece.head][token] = rank, piece.begin
    return ClusterSchedule(
        width=width,
        clusters=clusters,
        all_logits=all_logits,
        ranks=tuple(
            Rank(tuple(by_op[rank] for by_op in tiles), places.get(rank)) for rank in range(CLUSTER)
        ),
        heads=tuple(split(cut(config, Op.HEAD).tiles, CLUSTER * (1 if all_logits else clusters))),
        owners=tuple(tuple(row) for row in owners),
    )


def _check_cover(what: str, parts: list[tuple[int, int]], total: int) -> None:
    made = sorted((first, count) for first, count in parts if count)
    at = 0
    for first, count in made:
        if first != at or count < 0:
            raise ScheduleError(f"{what}: tile {min(at, first)} is made twice or never")
        at += count
    if at != total:
        raise ScheduleError(f"{what}: {at} tiles are made, {total} are needed")


def _check_pieces(config: ModelConfig, schedule: ClusterSchedule) -> None:
    repeat = config.n_heads // config.n_kv_heads
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, work in enumerate(schedule.ranks):
        piece = work.piece
        if piece is None:
            continue
        fits = 0 <= piece.head < config.n_kv_heads and 0 <= piece.begin < piece.end
        if not fits or piece.end > schedule.width or (piece.end - piece.begin) * repeat > MAX_ROWS:
            raise ScheduleError(f"{piece} is out of range")
        for token in range(piece.begin, piece.end):
            if (piece.head, token) in owners:
                raise ScheduleError(f"two ranks attend to head {piece.head} for token {token}")
            owners[piece.head, token] = rank, piece.begin
    table = {
        (head, token): owner
        for head, row in enumerate(schedule.owners)
        for token, owner in enumerate(row)
    }
    if owners != table or len(owners) != config.n_kv_heads * schedule.width:
        raise ScheduleError("queries, keys or values would go to a block that does not attend")


def validate(config: ModelConfig, schedule: ClusterSchedule) -> None:
    """Check that `schedule` is sound for this model.

    Raises:
        ScheduleError: a tile made twice or never, a rank without a tile of some product (it could be
            overtaken), residual tiles that change owner, or attention that does not fit its owners.
    """
    if len(schedule.ranks) != CLUSTER or schedule.clusters < 1:
        raise ScheduleError(f"a cluster has {CLUSTER} ranks, not {len(schedule.ranks)}")
    if schedule.width <= 0 or schedule.width % TILE_TOKENS:
        raise ScheduleError(f"a width of {schedule.width} tokens is no multiple of {TILE_TOKENS}")
    for index, op in enumerate(LAYER_PRODUCTS):
        parts = [rank.tiles[index] for rank in schedule.ranks]
        _check_cover(op.name, parts, cut(config, op).tiles)
        if min(count for _, count in parts) < 1:
            raise ScheduleError(f"{op.name}: a rank without a tile could be overtaken")
        if max(count for _, count in parts) > cut(config, op).most:
            raise ScheduleError(f"{op.name}: a rank has more tiles than its memory holds")
    pairs = [rank.tiles[LAYER_PRODUCTS.index(Op.GATE_UP)] for rank in schedule.ranks]
    if any(first % 2 or count % 2 for first, count in pairs):
        raise ScheduleError("GATE_UP: two tiles make 16 columns of one input and stay together")
    out, down = (LAYER_PRODUCTS.index(op) for op in (Op.OUT, Op.DOWN))
    if any(rank.tiles[out] != rank.tiles[down] for rank in schedule.ranks):
        raise ScheduleError("a rank owns different tiles in OUT and DOWN")
    expected = CLUSTER * (1 if schedule.all_logits else schedule.clusters)
    if len(schedule.heads) != expected:
        raise ScheduleError(f"the head has {len(schedule.heads)} parts, not {expected}")
    _check_cover("HEAD", list(schedule.heads), cut(config, Op.HEAD).tiles)
    _check_pieces(config, schedule)
