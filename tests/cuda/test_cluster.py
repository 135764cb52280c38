# SPDX-License-Identifier: Apache-2.0
"""The cluster kernel's schedule and its executable spec, without a GPU."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import ModelConfig, RopeLayout
from engine.cuda import build, cluster_shape
from engine.cuda.cluster_interpreter import ClusterInterpreter, inverse_rms
from engine.cuda.cluster_schedule import ClusterSchedule, validate
from engine.cuda.cluster_schedule import build as cut_work
from engine.cuda.cluster_shape import CLUSTER, ClusterVariant, cut
from engine.cuda.errors import ScheduleError
from engine.cuda.half_interpreter import power_of_two
from engine.cuda.schedule import Piece
from engine.cuda.shape import LAYER_PRODUCTS, Op
from engine.fp8.model import quantise_model
from tests.helpers import float_decoder
from tests.helpers.random_source import RandomSource, tiny_config

TOKENS = [int(t) for t in np.random.default_rng(1).integers(0, 50, 21)]
SMALL = tiny_config(heads=(9, 3), head_dim=32, dim=288, ffn=416, tied=False)
SHAPES = {
    "9/3": SMALL,
    "bias": tiny_config(heads=(14, 2), head_dim=32, dim=256, ffn=288, bias=True, tied=False),
    "interleaved": tiny_config(
        heads=(8, 8), head_dim=32, dim=256, ffn=256, layout=RopeLayout.INTERLEAVED, tied=False
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_a_float_model_with_these_weights(name: str) -> None:
    config = SHAPES[name]
    source = RandomSource(config)
    expected = float_decoder.logits(config, float_decoder.packed_weights(source), TOKENS)
    schedule = cut_work(config, 3, width=8, all_logits=True)
    found = ClusterInterpreter(quantise_model(source), 64).run(schedule, TOKENS, 0)
    # Float16 activations: a hundredth of what e4m3 ones leave.
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1.5e-3


@pytest.mark.parametrize("name", SHAPES)
def test_no_cut_of_the_work_changes_a_bit(name: str) -> None:
    config = SHAPES[name]
    model = quantise_model(RandomSource(config))
    reference = ClusterInterpreter(model, 64)
    expected = reference.run(cut_work(config, 3, width=8, all_logits=True), TOKENS, 0)
    for width, step in ((8, 1), (16, 5), (24, 21)):
        schedule = cut_work(config, 2, width=width)
        other = ClusterInterpreter(model, 64)
        for at in range(0, len(TOKENS), step):
            last = other.run(schedule, TOKENS[at : at + step], at)
        assert np.array_equal(last[0], expected[-1])
        assert np.array_equal(other.cache, reference.cache)


def test_more_tokens_than_the_clusters_hold_are_refused() -> None:
    with pytest.raises(ScheduleError, match="more than"):
        ClusterInterpreter(quantise_model(RandomSource(SMALL)), 64).run(
            cut_work(SMALL, 2), TOKENS, 0
        )


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.sampled_from([8, 16, 24]), st.booleans(), st.sampled_from([*SHAPES]))
def test_built_schedules_are_sound(clusters: int, width: int, every: bool, name: str) -> None:
    config = SHAPES[name]
    repeat = config.n_heads // config.n_kv_heads
    if -(-width // cluster_shape.pieces(config, width)) * repeat > 16:
        return
    schedule = cut_work(config, clusters, width=width, all_logits=every)
    validate(config, schedule)
    words = schedule.encode(ClusterVariant(config, 3, (3, 2)))
    assert words.shape[0] == clusters * CLUSTER
    assert (words[:, 2, 3] >> 16 == width).all()
    owners = words[0, 3:].reshape(-1).view(np.uint16)[: config.n_kv_heads * 24].reshape(-1, 24)
    for head, row in enumerate(owners[:, :width]):
        for token, word in enumerate(row):
            piece = schedule.ranks[word & 0xFF].piece
            assert piece is not None
            assert piece.head == head
            assert piece.begin == word >> 8 <= token < piece.end


def test_slices_cover_every_step_once() -> None:
    for columns in (256, 576, 896, 960, 1536, 2560, 4864):
        config = tiny_config(dim=columns, ffn=columns)
        for op in LAYER_PRODUCTS:
            product = cut(config, op)
            steps = [s for i in range(product.slices) for s in range(*product.slice_steps(i))]
            assert steps == list(range(product.steps))


def _broken(schedule: ClusterSchedule, chance: random.Random) -> ClusterSchedule:
    """Break one thing that must not be broken."""
    ranks, heads = list(schedule.ranks), list(schedule.heads)
    owners = [list(row) for row in schedule.owners]
    index = chance.randrange(CLUSTER)
    kind = chance.choice(["tiles", "count", "piece", "drop", "owner", "head", "rank", "clusters"])
    if kind in ("tiles", "count"):
        tiles = list(ranks[index].tiles)
        op = chance.randrange(len(tiles))
        first, count = tiles[op]
        step = chance.choice([-2, -1, 1, 2, 50])
        tiles[op] = (first + step, count) if kind == "tiles" else (first, count + step)
        ranks[index] = replace(ranks[index], tiles=tuple(tiles))
    elif kind in ("piece", "drop"):
        index = chance.choice([i for i, rank in enumerate(ranks) if rank.piece])
        piece = ranks[index].piece
        assert piece is not None
        head = piece.head + chance.choice([-1, 1, 9])
        moved = chance.choice(
            [
                replace(piece, head=head),
                replace(piece, end=piece.end + 1),
                Piece(piece.head, piece.begin + 1, piece.end),
            ]
        )
        ranks[index] = replace(ranks[index], piece=None if kind == "drop" else moved)
    elif kind == "owner":
        row = chance.choice(owners)
        at = chance.randrange(len(row))
        row[at] = chance.choice([(row[at][0] ^ 1, row[at][1]), (row[at][0], row[at][1] + 1)])
    elif kind == "head":
        at = chance.randrange(len(heads))
        heads[at] = (heads[at][0], heads[at][1] + chance.choice([-1, 1]))
    elif kind == "rank":
        del ranks[index]
    else:
        return replace(schedule, clusters=schedule.clusters + chance.choice([-3, 1]))
    return replace(
        schedule,
        ranks=tuple(ranks),
        heads=tuple(heads),
        owners=tuple(tuple(row) for row in owners),
    )


def test_a_thousand_broken_schedules_are_rejected() -> None:
    chance = random.Random(11)
    good = [cut_work(SMALL, 3), cut_work(SMALL, 2, width=16)]
    for number in range(1000):
        broken = _broken(good[number % 2], chance)
        with pytest.raises(ScheduleError):
            validate(SMALL, broken)


def test_kernel_and_host_agree_on_constants() -> None:
    text = build.sources()["cluster_state.cuh"]
    for name in ("CHUNK_STEPS", "MAX_SLICES"):
        assert f"constexpr int {name} = {getattr(cluster_shape, name)};" in text


@given(st.floats(2.0**-60, 2.0**60, width=32))
def test_the_power_of_two_is_the_one_below(value: float) -> None:
    power = float(power_of_two(np.float32(value)))
    assert power <= value < 2 * power
    assert np.log2(power) == round(np.log2(power))


@pytest.mark.parametrize("size", [64, 288, 576, 960])
def test_rms_is_the_rms(size: int) -> None:
    row = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    expected = 1 / np.sqrt((row.astype(np.float64) ** 2).mean() + 1e-5)
    assert float(inverse_rms(row, 1e-5)) == pytest.approx(expected, rel=1e-6)


def test_a_large_or_tiny_residual_stays_in_range() -> None:
    # What travels is scaled by the last rms: neither 1e6 nor 1e-6 leaves float16.
    model = quantise_model(RandomSource(SMALL))
    for factor in (1e-4, 1e3):
        scaled = replace(model, embed=(model.embed.astype(np.float32) * factor).astype(np.float16))
        schedule: ClusterSchedule = cut_work(SMALL, 3, all_logits=True)
        logits = ClusterInterpreter(scaled, 64).run(schedule, TOKENS, 0)
        assert np.isfinite(logits).all()


def _config_is_eligible(config: ModelConfig) -> bool:
    return min(cut(config, op).tiles for op in LAYER_PRODUCTS if op is not Op.HEAD) >= CLUSTER


def test_small_shapes_of_these_tests_could_run_on_clusters() -> None:
    assert all(_config_is_eligible(config) for config in SHAPES.values())
