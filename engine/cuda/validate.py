# SPDX-License-Identifier: Apache-2.0
"""Proof, before launch, that a schedule ends and computes every piece exactly once.

A piece is what other blocks wait for: one row tile of a product, or the mix of one head for one token.
Blocks run their programs in order and an instruction starts when all pieces that it reads exist, as on
the device; if no block can go on and a program is not at its end, the launch would hang.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Final

from engine.config import ModelConfig
from engine.cuda.errors import ScheduleError
from engine.cuda.schedule import Block, Instruction, Schedule
from engine.cuda.shape import (
    LAYER_PRODUCTS,
    MAX_ROWS,
    PRODUCTS,
    TILE_TOKENS,
    Op,
    product_shape,
)
from engine.fp8.quantise import Grouping

Piece = tuple[Hashable, ...]
Output = tuple[Op, int, int, int]  # op, group, layer, product (QUANTISE only)
_BY_TOKEN: Final = (Op.ATTENTION, Op.QUANTISE)


class _Model:
    """Which pieces an instruction makes and reads, for one model and schedule."""

    def __init__(self, config: ModelConfig, grouping: Grouping, schedule: Schedule) -> None:
        self._config = config
        self._schedule = schedule
        self.tiles = {op: product_shape(config, grouping, op).tiles for op in PRODUCTS}

    def made(self, group: int, ins: Instruction) -> Iterator[Piece]:
        if ins.op in _BY_TOKEN:
            begin, end = ins.token_range
            for token in range(begin, end):
                yield (ins.op, group, ins.layer, ins.first, token)
        else:
            owner = -1 if ins.op is Op.HEAD and not self._schedule.all_logits else group
            for tile in range(ins.first, ins.first + ins.count):
                yield (ins.op, owner, ins.layer, tile)

    def read(self, group: int, ins: Instruction) -> Iterator[Output]:
        """Whole outputs that must exist."""
        if ins.op is Op.ATTENTION:
            for earlier in range(group + 1):
                yield Op.QKV, earlier, ins.layer, 0
        elif ins.op is Op.HEAD:
            # The last token may be in any group: a request can be shorter than the schedule allows.
            every = range(self._schedule.groups)
            for owner in [group] if self._schedule.all_logits else every:
                yield Op.DOWN, owner, self._config.n_layers - 1, 0
        elif ins.op is not Op.QUANTISE and self._schedule.shared_inputs:
            yield Op.QUANTISE, group, ins.layer, int(ins.op)
        else:
            yield from self._activations(group, ins)

    def _activations(self, group: int, ins: Instruction) -> Iterator[Output]:
        product = Op(ins.first) if ins.op is Op.QUANTISE else ins.op
        if product is Op.QKV and ins.layer > 0:
            yield Op.DOWN, group, ins.layer - 1, 0
        source = {Op.OUT: Op.ATTENTION, Op.GATE_UP: Op.OUT, Op.DOWN: Op.GATE_UP}
        if product in source:
            yield source[product], group, ins.layer, 0

    def pieces_of(self, op: Op) -> int:
        """How many pieces make a whole output."""
        if op is Op.ATTENTION:
            return self._config.n_kv_heads * self._schedule.width
        if op is Op.QUANTISE:
            return self._schedule.width
        return self.tiles[op]


def _check_fields(config: ModelConfig, model: _Model, schedule: Schedule, block: Block) -> None:
    repeat = config.n_heads // config.n_kv_heads
    if not -1 <= block.group < schedule.groups:
        raise ScheduleError(f"group {block.group} does not exist")
    for ins in block.instructions:
        if not 0 <= ins.layer < config.n_layers or ins.first < 0 or ins.count < 1:
            raise ScheduleError(f"{ins} is out of range")
        if ins.op is Op.HEAD and ins.layer != 0:
            raise ScheduleError(f"{ins}: the head has one matrix, of layer 0")
        if block.group < 0 and (ins.op is not Op.HEAD or schedule.all_logits):
            raise ScheduleError(f"{ins} in a block without a group")
        if ins.op in _BY_TOKEN:
            begin, end = ins.token_range
            fits = 0 <= begin < end <= schedule.width
            if ins.op is Op.ATTENTION:
                fits &= ins.first < config.n_kv_heads and (end - begin) * repeat <= MAX_ROWS
            else:
                fits &= schedule.shared_inputs and ins.first < len(LAYER_PRODUCTS)
            if not fits:
                raise ScheduleError(f"{ins} is out of range")
        elif ins.first + ins.count > model.tiles[ins.op]:
            raise ScheduleError(f"{ins} passes the {model.tiles[ins.op]} tiles of its matrix")


def _check_residual_owners(schedule: Schedule) -> None:
    # A block keeps the float32 residual of its own tiles: OUT and DOWN must own the same ones.
    for index, block in enumerate(schedule.blocks):
        owned = {(i.first, i.count) for i in block.instructions if i.op in (Op.OUT, Op.DOWN)}
        counts = Counter(i.op for i in block.instructions)
        if len(owned) > 1 or counts[Op.OUT] != counts[Op.DOWN]:
            raise ScheduleError(f"block {index} owns different tiles in OUT and DOWN: {owned}")


def _check_coverage(config: ModelConfig, model: _Model, schedule: Schedule) -> None:
    made = Counter(
        piece
        for block in schedule.blocks
        for ins in block.instructions
        for piece in model.made(block.group, ins)
    )
    twice = [piece for piece, count in made.items() if count > 1]
    if twice:
        raise ScheduleError(f"{len(twice)} pieces are made twice, first {twice[0]}")
    per_layer = sum(model.tiles[op] for op in PRODUCTS if op is not Op.HEAD)
    per_layer += model.pieces_of(Op.ATTENTION)
    if schedule.shared_inputs:
        per_layer += len(LAYER_PRODUCTS) * model.pieces_of(Op.QUANTISE)
    heads = model.tiles[Op.HEAD] * (schedule.groups if schedule.all_logits else 1)
    expected = schedule.groups * config.n_layers * per_layer + heads
    if len(made) != expected:
        raise ScheduleError(f"{len(made)} pieces are made, {expected} are needed")


def _check_progress(model: _Model, schedule: Schedule) -> None:
    ready: Counter[Output] = Counter()
    position = [0] * len(schedule.blocks)
    moved = True
    while moved:
        moved = False
        for index, block in enumerate(schedule.blocks):
            while position[index] < len(block.instructions):
                ins = block.instructions[position[index]]
                needed = model.read(block.group, ins)
                if any(ready[n] < model.pieces_of(n[0]) for n in needed):
                    break
                pieces = sum(1 for _ in model.made(block.group, ins))
                product = ins.first if ins.op is Op.QUANTISE else 0
                ready[ins.op, block.group, ins.layer, product] += pieces
                position[index] += 1
                moved = True
    stuck = [i for i, b in enumerate(schedule.blocks) if position[i] < len(b.instructions)]
    if stuck:
        ins = schedule.blocks[stuck[0]].instructions[position[stuck[0]]]
        raise ScheduleError(
            f"{len(stuck)} blocks would wait for ever, first block {stuck[0]} at {ins}"
        )


def validate(config: ModelConfig, grouping: Grouping, schedule: Schedule) -> None:
    """Check that `schedule` is sound for this model.

    Raises:
        ScheduleError: a field out of range, a piece made twice or never, residual tiles that
            change owner, or a wait that cannot end.
    """
    if schedule.width % TILE_TOKENS or schedule.width <= 0:
        raise ScheduleError(f"a width of {schedule.width} tokens is no multiple of {TILE_TOKENS}")
    if schedule.width > TILE_TOKENS and not schedule.shared_inputs:
        raise ScheduleError("the kernel shares the inputs of groups of more than 8 tokens")
    model = _Model(config, grouping, schedule)
    for block in schedule.blocks:
        _check_fields(config, model, schedule, block)
    _check_residual_owners(schedule)
    _check_coverage(config, model, schedule)
    _check_progress(model, schedule)
