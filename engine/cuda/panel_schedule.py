# SPDX-License-Identifier: Apache-2.0
"""Who computes what in the panel kernel: built on the host, checked before launch.

All blocks go through the phases of a layer together: QKV, attention, OUT, GATE_UP, DOWN. A block does its items
of a phase in their order, says so, and goes on; nobody begins the products of a phase before all have said so
of the one before. Within a phase a block waits only for the other slices of the panel that it is at.
That ends if every block has its items in rising order and no two slices of one panel (`validate`): the
first panel that is not finished then waits for nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.cuda.errors import ScheduleError
from engine.cuda.panel_shape import PANEL, STAGE_STEPS, TEAMS, WIDTHS, cut, pieces
from engine.cuda.schedule import Piece, split
from engine.cuda.shape import LAYER_PRODUCTS, MAX_ROWS, Op
from engine.fp8.packing import TILE_STEP_BYTES

_HEADER_UNITS: Final = 2


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """Tiles first .. first + count of a product over the stages begin .. end: slice `slice` of a panel."""

    panel: int
    slice: int
    first: int
    count: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """What one block does. `items`: by product of a layer; `pieces`: by team."""

    items: tuple[tuple[Item, ...], ...]
    head: tuple[Item, ...]
    pieces: tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True, slots=True)
class PanelSchedule:
    """Programs of all blocks for requests of up to `width` tokens."""

    width: int
    all_logits: bool
    blocks: tuple[Block, ...]

    def encode(self, units: int) -> NDArray[np.int32]:
        """The form that the kernel reads: (blocks, units, 4) int32.

        Raises:
            ScheduleError: a program is longer than `units` words of 16 bytes.
        """
        words = np.zeros((len(self.blocks), units, 4), dtype=np.int32)
        for index, block in enumerate(self.blocks):
            items = [item for part in (*block.items, block.head) for item in part]
            work = [piece for team in block.pieces for piece in team]
            if _HEADER_UNITS + len(items) + len(work) > units:
                raise ScheduleError(f"block {index} has more work than {units} units hold")
            counts = sum(len(part) << 8 * op for op, part in enumerate(block.items))
            teams = sum(len(part) << 8 * team for team, part in enumerate(block.pieces))
            first = block.head[0].first if block.head else 0
            tiles = sum(item.count for item in block.head)
            words[index, 0] = self.width, self.all_logits, first, tiles
            words[index, 1] = counts, len(block.head), teams, 0
            rows = [
                (i.first, i.count | i.slice << 16, i.begin | i.end << 16, i.panel) for i in items
            ]
            rows += [(piece.head, piece.begin, piece.end, 0) for piece in work]
            if rows:
                words[index, _HEADER_UNITS : _HEADER_UNITS + len(rows)] = rows
        return words


def _items(config: ModelConfig, op: Op) -> list[Item]:
    shape = cut(config, op)
    return [
        Item(panel, index, first, min(shape.size, shape.tiles - first), *shape.slice_stages(index))
        for panel, first in enumerate(range(0, shape.tiles, shape.size))
        for index in range(shape.slices)
    ]


def _head_items(config: ModelConfig, first: int, tiles: int) -> tuple[Item, ...]:
    stages = cut(config, Op.HEAD).stages
    parts = split(tiles, -(-tiles // PANEL)) if tiles else []
    return tuple(Item(i, 0, first + at, count, 0, stages) for i, (at, count) in enumerate(parts))


def build(
    config: ModelConfig, blocks: int, *, width: int, all_logits: bool = False
) -> PanelSchedule:
    """A schedule on `blocks` blocks for requests of up to `width` tokens."""
    items = [_items(config, op) for op in LAYER_PRODUCTS]
    heads = split(cut(config, Op.HEAD).tiles, blocks)
    work = [Piece(*piece) for piece in pieces(config, width)]
    return PanelSchedule(
        width,
        all_logits,
        tuple(
            Block(
                tuple(tuple(part[index::blocks]) for part in items),
                _head_items(config, *heads[index]),
                tuple(
                    tuple(work[index + team * blocks :: TEAMS * blocks]) for team in range(TEAMS)
                ),
            )
            for index in range(blocks)
        ),
    )


def arrange(
    config: ModelConfig, op: Op, blocks: int, codes: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Codes of one layer as the kernel reads them: a stage of all tiles of a panel lies together.

    `codes`: (tiles, steps, 32, 16), as engine/fp8/packing.py makes them. Returns (tiles * stages, 2, 512):
    panel after panel, in each stage after stage, and in those tile after tile. One long copy a stage is what
    memory is fastest with.
    """
    stages = cut(config, op).stages
    by_tile = codes.reshape(codes.shape[0], stages, -1)
    out = np.empty_like(by_tile).reshape(codes.shape[0] * stages, -1)
    if op is Op.HEAD:
        heads = split(cut(config, op).tiles, blocks)
        items = [item for head in heads for item in _head_items(config, *head)]
    else:
        items = [item for item in _items(config, op) if item.slice == 0]
    for item in items:
        end = item.first + item.count
        part = out[item.first * stages : end * stages].reshape(stages, item.count, -1)
        part[:] = by_tile[item.first : end].swapaxes(0, 1)
    return out.reshape(-1, STAGE_STEPS, TILE_STEP_BYTES)


def _check_product(config: ModelConfig, op: Op, parts: Sequence[tuple[Item, ...]]) -> None:
    made = sorted(item for part in parts for item in part)
    if made != _items(config, op):
        wrong = set(made) ^ set(_items(config, op))
        raise ScheduleError(f"{op.name}: made twice, never, or in other cuts: {sorted(wrong)[:1]}")
    for part in parts:
        panels = [item.panel for item in part]
        if panels != sorted(set(panels)):
            raise ScheduleError(f"{op.name}: a block could wait for what it has yet to make")


def _check_head(config: ModelConfig, schedule: PanelSchedule) -> None:
    shape, at = cut(config, Op.HEAD), 0
    for block in schedule.blocks:
        for item in block.head:
            fits = 0 < item.count <= PANEL and (item.begin, item.end) == (0, shape.stages)
            if item.first != at or not fits:
                raise ScheduleError(f"HEAD: tile {at} is made twice, never, or in part")
            at += item.count
    if at != shape.tiles:
        raise ScheduleError(f"HEAD: {at} tiles are made, {shape.tiles} are needed")


def _check_pieces(config: ModelConfig, schedule: PanelSchedule) -> None:
    repeat = config.n_heads // config.n_kv_heads
    seen: set[tuple[int, int]] = set()
    for block in schedule.blocks:
        if len(block.pieces) != TEAMS:
            raise ScheduleError(f"a block has {TEAMS} teams, not {len(block.pieces)}")
        for piece in (piece for team in block.pieces for piece in team):
            fits = 0 <= piece.head < config.n_kv_heads and 0 <= piece.begin < piece.end
            rows = (piece.end - piece.begin) * repeat
            if not fits or piece.end > schedule.width or rows > MAX_ROWS:
                raise ScheduleError(f"{piece} is out of range")
            tokens = {(piece.head, token) for token in range(piece.begin, piece.end)}
            if tokens & seen:
                raise ScheduleError(f"two teams attend to {min(tokens & seen)}")
            seen |= tokens
    if len(seen) != config.n_kv_heads * schedule.width:
        raise ScheduleError("some tokens are never attended to")


def validate(config: ModelConfig, schedule: PanelSchedule) -> None:
    """Check that `schedule` is sound for this model.

    Raises:
        ScheduleError: something made twice, never or in other cuts (which would change the numbers), an order
            that could wait for ever, or attention that does not fit.
    """
    if schedule.width not in WIDTHS:
        raise ScheduleError(f"the kernel has no code for {schedule.width} tokens, only {WIDTHS}")
    for index, op in enumerate(LAYER_PRODUCTS):
        _check_product(config, op, [block.items[index] for block in schedule.blocks])
    _check_head(config, schedule)
    _check_pieces(config, schedule)
