# SPDX-License-Identifier: Apache-2.0
"""Schedules: good ones pass, a thousand broken ones do not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import ModelConfig
from engine.cuda.errors import ScheduleError
from engine.cuda.schedule import Block, Instruction, Schedule, build, split
from engine.cuda.shape import Op
from engine.cuda.validate import validate
from engine.fp8.quantise import Grouping
from tests.helpers.random_source import tiny_config

CONFIG = tiny_config(heads=(9, 3), head_dim=16, dim=160, ffn=192, vocab=100, layers=2)


def built(
    blocks: int, width: int, groups: int, workers: int, all_logits: bool, shared: bool
) -> Schedule:
    return build(
        CONFIG,
        Grouping.CHANNEL,
        blocks,
        width=width,
        groups=groups,
        workers=workers,
        all_logits=all_logits,
        shared_inputs=shared,
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_built_schedules_are_sound(seed: int) -> None:
    chance = random.Random(seed)
    blocks = chance.randint(1, 40)
    workers = chance.randint(1, blocks)
    width = 8 * chance.randint(1, 4)
    groups = chance.randint(1, min(workers, 128 // width))
    shared = width > 8 or chance.random() < 0.5
    schedule = built(blocks, width, groups, workers, chance.random() < 0.5, shared)
    validate(CONFIG, Grouping.CHANNEL, schedule)
    words = schedule.encode(schedule.length)
    assert words.shape == (blocks, schedule.length, 4)
    assert words[:, 0, 0].max() == schedule.length - 1


@pytest.mark.parametrize(
    "config",
    [
        tiny_config(heads=(32, 8), head_dim=64, dim=2048, ffn=8192, vocab=1000, layers=1),
        tiny_config(heads=(32, 32), head_dim=128, dim=4096, ffn=11008, vocab=1000, layers=1),
        tiny_config(heads=(14, 2), head_dim=64, dim=896, ffn=4864, vocab=1000, layers=1),
    ],
    ids=["1B", "7B", "0.5B"],
)
@pytest.mark.parametrize("blocks", [24, 132])
def test_real_shapes_are_sound(config: ModelConfig, blocks: int) -> None:
    for groups, width in ((1, 8), (8, 16)):
        schedule = build(
            config, Grouping.G128, blocks, width=width, groups=groups, shared_inputs=groups > 1
        )
        validate(config, Grouping.G128, schedule)


def test_work_is_spread_evenly() -> None:
    assert split(10, 4) == [(0, 3), (3, 3), (6, 2), (8, 2)]
    assert [count for _, count in split(3, 5)] == [1, 1, 1, 0, 0]


def _mutate(schedule: Schedule, chance: random.Random) -> Schedule:
    """Break one thing that must not be broken."""
    blocks = [list(b.instructions) for b in schedule.blocks]
    groups = [b.group for b in schedule.blocks]
    index = chance.choice([i for i, b in enumerate(blocks) if b])
    at = chance.randrange(len(blocks[index]))
    ins = blocks[index][at]
    kind = chance.choice(["drop", "twice", "first", "count", "layer", "op", "swap", "group"])
    if kind == "drop":
        del blocks[index][at]
    elif kind == "twice":
        blocks[chance.randrange(len(blocks))].append(ins)
    elif kind == "first":
        blocks[index][at] = replace(ins, first=ins.first + chance.choice([-1, 1, 3, 1000]))
    elif kind == "count":
        blocks[index][at] = replace(ins, count=ins.count + chance.choice([-1, 1, 70, -ins.count]))
    elif kind == "layer":
        blocks[index][at] = replace(ins, layer=ins.layer + chance.choice([-1, 1, 5]))
    elif kind == "op":
        other = chance.choice([op for op in Op if op is not ins.op])
        blocks[index][at] = replace(ins, op=other)
    elif kind == "swap":
        # Exchange dependent instructions of one block: it then waits for what it would make itself.
        order = [i for i, x in enumerate(blocks[index]) if x.op in (Op.QKV, Op.GATE_UP, Op.DOWN)]
        if len(order) < 2:
            del blocks[index][at]
        else:
            a, b = order[0], order[-1]
            blocks[index][a], blocks[index][b] = blocks[index][b], blocks[index][a]
    else:
        groups[index] = groups[index] + chance.choice([-2, 1, 7])
    return replace(
        schedule,
        blocks=tuple(Block(g, tuple(b)) for g, b in zip(groups, blocks, strict=True)),
    )


def test_a_thousand_broken_schedules_are_rejected() -> None:
    chance = random.Random(7)
    good = [
        built(6, 8, 1, 4, False, False),
        built(6, 8, 1, 4, False, True),
        built(5, 16, 2, 5, True, True),
    ]
    survivors = []
    for number in range(1000):
        original = good[number % len(good)]
        broken = _mutate(original, chance)
        if broken == original:
            continue
        try:
            validate(CONFIG, Grouping.CHANNEL, broken)
        except ScheduleError:
            continue
        survivors.append(broken)
    # The group of a block that only computes the head of the last token means nothing.
    harmless = [b for b in survivors if _without_heads(b) in [_without_heads(g) for g in good]]
    assert survivors == harmless
    assert len(survivors) < 20


def _without_heads(schedule: Schedule) -> list[tuple[int, Instruction]]:
    return [(b.group, i) for b in schedule.blocks for i in b.instructions if i.op is not Op.HEAD]


def test_wide_groups_must_share_their_inputs() -> None:
    with pytest.raises(ScheduleError, match="shares"):
        validate(CONFIG, Grouping.CHANNEL, built(4, 16, 1, 4, False, False))


def test_a_cycle_between_blocks_is_found() -> None:
    schedule = built(2, 8, 1, 2, False, False)
    first, second = schedule.blocks
    # Block 0 does DOWN of layer 0 before its OUT: block 1 waits for that OUT, block 0 for block 1.
    order = list(first.instructions)
    out = next(i for i, x in enumerate(order) if x.op is Op.OUT and x.layer == 0)
    down = next(i for i, x in enumerate(order) if x.op is Op.DOWN and x.layer == 0)
    order[out], order[down] = order[down], order[out]
    broken = replace(schedule, blocks=(Block(0, tuple(order)), second))
    with pytest.raises(ScheduleError, match="wait for ever"):
        validate(CONFIG, Grouping.CHANNEL, broken)


@pytest.mark.parametrize(
    ("width", "groups", "workers"), [(12, 1, 4), (8, 5, 4), (8, 1, 9), (64, 3, 4)]
)
def test_impossible_requests_are_refused(width: int, groups: int, workers: int) -> None:
    with pytest.raises(ScheduleError):
        built(8, width, groups, workers, False, False)


def test_a_program_that_does_not_fit_is_refused() -> None:
    schedule = built(3, 8, 1, 3, False, False)
    with pytest.raises(ScheduleError, match="room for"):
        schedule.encode(schedule.length - 1)
    assert np.count_nonzero(schedule.encode(schedule.length + 5)[:, schedule.length :]) == 0
