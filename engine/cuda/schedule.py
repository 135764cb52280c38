# SPDX-License-Identifier: Apache-2.0
"""Who computes what: one program of instructions a block, built on the host and checked before launch.

Blocks form `groups` of equal size; a group computes its own tokens (8 * wide of them, or 8 in all when
the request has at most 8) through all layers, so its exchanges involve only its own blocks. Groups meet in
attention, where later tokens read keys and values of earlier ones, and in the head.

Blocks never wait for a program counter: each instruction waits for the tagged data that it reads. A
schedule is sound if every piece is made exactly once and the waits can all end (`validate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.cuda.errors import ScheduleError
from engine.cuda.shape import MAX_ROWS, MAX_TOKENS, PRODUCTS, TILE_TOKENS, Op, product_shape
from engine.fp8.quantise import Grouping

_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class Instruction:
    """`first`, `count`: row tiles. For ATTENTION: key-value head, tokens `begin | end << 16`.
    For QUANTISE: the product whose input it is, tokens likewise.
    """

    op: Op
    layer: int
    first: int
    count: int

    @property
    def token_range(self) -> tuple[int, int]:
        """First and end token within the group (ATTENTION and QUANTISE)."""
        return self.count & 0xFFFF, self.count >> 16


@dataclass(frozen=True, slots=True)
class Piece:
    """Attention to one key-value head for tokens `begin` .. `end`, of the request or of one's share of it."""

    head: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """The program of one block, and the group whose tokens it works on (-1: the head only)."""

    group: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Programs of all blocks for requests of up to `groups` groups of `width` tokens.

    With `all_logits` each group computes the head for its own tokens; otherwise all blocks
    together compute it for the last token. With `shared_inputs` one block quantises a token's inputs
    and the others load the codes; otherwise every block quantises for itself. The results are equal.
    """

    width: int
    groups: int
    all_logits: bool
    shared_inputs: bool
    blocks: tuple[Block, ...]

    def encode(self, length: int) -> NDArray[np.int32]:
        """The form that the kernel reads: (blocks, length, 4) int32, word 0 = {count, group, shared, 0}.

        Raises:
            ScheduleError: a program has more than `length - 1` instructions.
        """
        words = np.zeros((len(self.blocks), length, _WORDS), dtype=np.int32)
        for index, block in enumerate(self.blocks):
            count = len(block.instructions)
            if count >= length:
                raise ScheduleError(
                    f"block {index} has {count} instructions, room for {length - 1}"
                )
            words[index, 0, :3] = count, block.group, self.shared_inputs
            if count:
                words[index, 1 : count + 1] = [
                    (i.op, i.layer, i.first, i.count) for i in block.instructions
                ]
        return words

    @property
    def length(self) -> int:
        """Words (of 16 bytes) of the longest program, the first word included."""
        return 1 + max(len(block.instructions) for block in self.blocks)


def split(total: int, parts: int) -> list[tuple[int, int]]:
    """`total` things over `parts` as evenly as can be: (first, count) each; the first get more."""
    quotient, rest = divmod(total, parts)
    result, first = [], 0
    for part in range(parts):
        count = quotient + (part < rest)
        result.append((first, count))
        first += count
    return result


def attention_pieces(config: ModelConfig, width: int, blocks: int) -> list[tuple[int, int, int]]:
    """(key-value head, first token, end token), at most MAX_ROWS query rows each."""
    repeat = config.n_heads // config.n_kv_heads
    most = max(1, MAX_ROWS // repeat)
    parts = max(min(width, blocks // config.n_kv_heads), -(-width // most), 1)
    return [
        (head, first, first + count)
        for head in range(config.n_kv_heads)
        for first, count in split(width, parts)
        if count
    ]


def quantisers(width: int, workers: int, spare: int) -> list[tuple[int, int, int]]:
    """(rank, first token, end token): which block quantises which tokens of its group.

    Ranks from `workers` on are spare blocks, which have nothing else to do and come first.
    """
    if spare:
        parts = min(width, spare)
        ranks = [workers + i for i in range(parts)]
    else:
        parts = min(width, workers)
        ranks = [workers - 1 - i * workers // parts for i in range(parts)]
    return [
        (rank, first, first + count)
        for rank, (first, count) in zip(ranks, split(width, parts), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """What the blocks of one group share. Ranks `workers` .. are spare blocks."""

    workers: int
    tiles: dict[Op, int]
    pieces: list[tuple[int, int, int]]
    quantisers: dict[int, tuple[int, int]]

    def layer(self, layer: int, rank: int) -> Iterator[Instruction]:
        yield from self._product(Op.QKV, layer, rank)
        # From the last block backwards: the first ones have more tiles of the products.
        if rank < self.workers:
            for head, begin, end in self.pieces[self.workers - 1 - rank :: self.workers]:
                yield Instruction(Op.ATTENTION, layer, head, begin | end << 16)
        for op in (Op.OUT, Op.GATE_UP, Op.DOWN):
            yield from self._product(op, layer, rank)

    def _product(self, op: Op, layer: int, rank: int) -> Iterator[Instruction]:
        if rank in self.quantisers:
            begin, end = self.quantisers[rank]
            yield Instruction(Op.QUANTISE, layer, int(op), begin | end << 16)
        if rank < self.workers:
            first, count = split(self.tiles[op], self.workers)[rank]
            if count:
                yield Instruction(op, layer, first, count)


def _head(first: int, count: int) -> tuple[Instruction, ...]:
    return (Instruction(Op.HEAD, 0, first, count),) if count else ()


def build(
    config: ModelConfig,
    grouping: Grouping,
    blocks: int,
    *,
    width: int = TILE_TOKENS,
    groups: int = 1,
    workers: int | None = None,
    all_logits: bool = False,
    shared_inputs: bool = False,
) -> Schedule:
    """A schedule for `blocks` blocks, of which `workers` (default: all) compute the layers.

    Raises:
        ScheduleError: fewer workers than groups, or a width that the kernel cannot hold.
    """
    workers = blocks if workers is None else workers
    if not 1 <= groups <= workers <= blocks:
        raise ScheduleError(f"{groups} groups need at least as many of {workers}/{blocks} blocks")
    if width % TILE_TOKENS or width * groups > MAX_TOKENS + width - 1:
        raise ScheduleError(f"{groups} groups of {width} tokens exceed {MAX_TOKENS}")
    tiles = {op: product_shape(config, grouping, op).tiles for op in PRODUCTS}
    spare = min(blocks - workers, width) if shared_inputs and groups == 1 else 0
    programs: list[Block] = []
    for group, (_, size) in enumerate(split(workers, groups)):
        helpers = quantisers(width, size, spare) if shared_inputs else []
        shared = _Group(
            size,
            tiles,
            attention_pieces(config, width, size),
            {rank: (begin, end) for rank, begin, end in helpers},
        )
        for rank in range(size + spare):
            body = [i for layer in range(config.n_layers) for i in shared.layer(layer, rank)]
            if all_logits and rank < size:
                body += _head(*split(tiles[Op.HEAD], size)[rank])
            programs.append(Block(group, tuple(body)))
    programs += [Block(-1, ())] * (blocks - workers - spare)
    if not all_logits:
        heads = split(tiles[Op.HEAD], blocks)
        programs = [
            Block(b.group, (*b.instructions, *_head(first, count)))
            for b, (first, count) in zip(programs, heads, strict=True)
        ]
    return Schedule(width, groups, all_logits, shared_inputs, tuple(programs))
