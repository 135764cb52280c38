# SPDX-License-Identifier: Apache-2.0
"""The panel kernel's schedule and its executable spec, without a GPU."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import ModelConfig, RopeLayout
from engine.cuda import build, panel_shape
from engine.cuda.errors import ScheduleError
from engine.cuda.panel_interpreter import PanelInterpreter, first_power, inverse_rms
from engine.cuda.panel_schedule import PanelSchedule, arrange, validate
from engine.cuda.panel_schedule import build as cut_work
from engine.cuda.panel_shape import WIDTHS, PanelVariant, cut, exchange_bytes, fitting_variant
from engine.cuda.shape import LAYER_PRODUCTS, PRODUCTS, Op
from engine.fp8.model import Matrix, quantise_model
from engine.fp8.packing import TILE_STEP_BYTES
from engine.fp8.quantise import Grouping
from tests.helpers import float_decoder
from tests.helpers.random_source import RandomSource, tiny_config

TOKENS = [int(t) for t in np.random.default_rng(1).integers(0, 50, 40)]
SHAPES = {  # several panels, the last one ragged; two to four slices; padded rows of the vocabulary
    "9/3": tiny_config(heads=(9, 3), head_dim=64, dim=576, ffn=832, vocab=515, tied=False),
    "bias": tiny_config(
        heads=(4, 2), head_dim=64, dim=256, ffn=512, bias=True, layers=1, tied=False
    ),
    "interleaved": tiny_config(
        heads=(2, 2), head_dim=128, dim=256, ffn=320, layout=RopeLayout.INTERLEAVED, tied=False
    ),
}


def test_the_shapes_exercise_what_they_should() -> None:
    cuts = [cut(config, op) for config in SHAPES.values() for op in LAYER_PRODUCTS]
    assert {c.slices for c in cuts} >= {1, 2, 3}
    assert any(c.panels > 1 and c.tiles % panel_shape.PANEL for c in cuts)


@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_a_float_model_with_these_weights(name: str) -> None:
    config = SHAPES[name]
    source = RandomSource(config)
    expected = float_decoder.logits(config, float_decoder.packed_weights(source), TOKENS)
    schedule = cut_work(config, 5, width=128, all_logits=True)
    found = PanelInterpreter(quantise_model(source), 64).run(schedule, TOKENS, 0)
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1.5e-3


@pytest.mark.parametrize("name", SHAPES)
def test_no_cut_of_the_work_changes_a_bit(name: str) -> None:
    config = SHAPES[name]
    model = quantise_model(RandomSource(config))
    reference = PanelInterpreter(model, 64)
    expected = reference.run(cut_work(config, 7, width=128, all_logits=True), TOKENS, 0)
    for width, step, blocks in ((8, 1, 5), (8, 8, 132), (32, 31, 12)):
        schedule = cut_work(config, blocks, width=width)
        other = PanelInterpreter(model, 64)
        for at in range(0, len(TOKENS), step):
            last = other.run(schedule, TOKENS[at : at + step], at)
        assert np.array_equal(last[0], expected[-1])
        assert np.array_equal(other.cache, reference.cache)


def test_more_tokens_than_the_width_are_refused() -> None:
    model = quantise_model(RandomSource(SHAPES["bias"]))
    with pytest.raises(ScheduleError, match="more than"):
        PanelInterpreter(model, 64).run(cut_work(SHAPES["bias"], 4, width=8), TOKENS, 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 140), st.sampled_from(WIDTHS), st.booleans(), st.sampled_from([*SHAPES]))
def test_built_schedules_are_sound(blocks: int, width: int, every: bool, name: str) -> None:
    config = SHAPES[name]
    schedule = cut_work(config, blocks, width=width, all_logits=every)
    validate(config, schedule)
    words = schedule.encode(PanelVariant(config, blocks, 227 << 10).program_units)
    assert words.shape[0] == blocks
    assert (words[:, 0, 0] == width).all()
    for block, row in zip(schedule.blocks, words, strict=True):
        items = [item for part in (*block.items, block.head) for item in part]
        for item, (first, packed, stages, panel) in zip(items, row[2:].tolist(), strict=False):
            assert (first, packed & 0xFFFF, packed >> 16) == (item.first, item.count, item.slice)
            assert (stages & 0xFFFF, stages >> 16, panel) == (item.begin, item.end, item.panel)


def test_slices_cover_every_stage_once() -> None:
    for columns in (256, 576, 896, 2048, 4096, 11008):
        config = tiny_config(dim=columns, ffn=columns)
        for op in PRODUCTS:
            product = cut(config, op)
            stages = [s for i in range(product.slices) for s in range(*product.slice_stages(i))]
            assert stages == list(range(product.stages))


def test_panels_of_one_slice_are_made_smaller_until_all_blocks_have_some() -> None:
    seven = tiny_config(heads=(32, 32), head_dim=128, dim=4096, ffn=11008)
    assert (cut(seven, Op.GATE_UP).panels, cut(seven, Op.GATE_UP).size) == (126, 11)
    assert (cut(seven, Op.QKV).panels, cut(seven, Op.QKV).size) == (64, 12)  # two slices
    assert cut(LEVELLED, Op.GATE_UP).size < panel_shape.PANEL
    thirteen = tiny_config(heads=(40, 40), head_dim=128, dim=5120, ffn=13824)
    assert (cut(thirteen, Op.GATE_UP).panels, cut(thirteen, Op.GATE_UP).size) == (247, 7)


LEVELLED = tiny_config(heads=(2, 2), head_dim=64, dim=128, ffn=6400, vocab=700, layers=1)


@pytest.mark.parametrize("name", [*SHAPES, "levelled"])
@pytest.mark.parametrize("blocks", [2, 5])  # with two, a block has several items of the head
def test_arranged_codes_lie_where_the_kernel_looks(name: str, blocks: int) -> None:
    """panel_stream.cuh: (first * stages + stage * count + tile) stages of bytes from the layer's beginning."""
    config = {**SHAPES, "levelled": LEVELLED}[name]
    model = quantise_model(RandomSource(config))
    schedule = cut_work(config, blocks, width=8)
    for op in PRODUCTS:
        codes = model.matrices[Matrix(op.name.lower())].codes[0]
        product = cut(config, op)
        found = arrange(config, op, blocks, codes).reshape(-1, 2 * TILE_STEP_BYTES)
        by_tile = codes.reshape(product.tiles, product.stages, -1)
        heads = [block.head for block in schedule.blocks]
        parts = heads if op is Op.HEAD else [b.items[op] for b in schedule.blocks]
        seen = 0
        for item in (item for part in parts for item in part):
            for stage in range(item.begin, item.end):
                for tile in range(item.count):
                    at = item.first * product.stages + stage * item.count + tile
                    assert np.array_equal(found[at], by_tile[item.first + tile, stage])
                    seen += 1
        assert seen == found.shape[0]


def _broken(schedule: PanelSchedule, chance: random.Random) -> PanelSchedule:
    """Break one thing that must not be broken."""
    blocks = list(schedule.blocks)
    kind = chance.choice(["item", "lost", "twice", "order", "head", "piece", "drop", "team"])
    if kind in ("item", "lost", "twice", "order"):
        op = chance.randrange(len(LAYER_PRODUCTS))
        least = 2 if kind == "order" else 1
        index = chance.choice([i for i, b in enumerate(blocks) if len(b.items[op]) >= least])
        part = list(blocks[index].items[op])
        at = chance.randrange(len(part))
        if kind == "item":
            field = chance.choice(["panel", "slice", "first", "count", "begin", "end"])
            part[at] = replace(part[at], **{field: getattr(part[at], field) + 1})
        elif kind == "lost":
            del part[at]
        elif kind == "twice":
            part.append(part[at])
        else:
            part.reverse()
        items = list(blocks[index].items)
        items[op] = tuple(part)
        blocks[index] = replace(blocks[index], items=tuple(items))
    elif kind == "head":
        index = chance.choice([i for i, b in enumerate(blocks) if b.head])
        head = list(blocks[index].head)
        at = chance.randrange(len(head))
        field = chance.choice(["first", "count", "end"])
        head[at] = replace(
            head[at], **{field: getattr(head[at], field) + chance.choice([-1, 1, 13])}
        )
        blocks[index] = replace(blocks[index], head=tuple(head))
    else:
        index = chance.choice([i for i, b in enumerate(blocks) if any(b.pieces)])
        teams = [list(team) for team in blocks[index].pieces]
        team = chance.choice([t for t in teams if t])
        at = chance.randrange(len(team))
        if kind == "drop":
            del team[at]
        elif kind == "team":
            teams.append([])
        else:
            field = chance.choice(["head", "begin", "end"])
            team[at] = replace(team[at], **{field: getattr(team[at], field) + 1})
        blocks[index] = replace(blocks[index], pieces=tuple(tuple(t) for t in teams))
    return replace(schedule, blocks=tuple(blocks))


def test_a_thousand_broken_schedules_are_rejected() -> None:
    chance = random.Random(11)
    config = SHAPES["9/3"]
    good = [cut_work(config, 4, width=32), cut_work(config, 3, width=8)]
    for number in range(1000):
        broken = _broken(good[number % 2], chance)
        with pytest.raises(ScheduleError):
            validate(config, broken)


def test_a_width_without_code_is_rejected() -> None:
    config = SHAPES["bias"]
    with pytest.raises(ScheduleError, match="no code"):
        validate(config, replace(cut_work(config, 4, width=8), width=16))


def test_kernel_and_host_agree_on_constants() -> None:
    text = build.sources()["panel_state.cuh"]
    for name in ("STAGE_STEPS", "COUNTER_WORDS"):
        assert f"constexpr int {name} = {getattr(panel_shape, name)};" in text
    slices, least = panel_shape.MAX_SLICES, panel_shape.LEAST_STAGES
    assert f"constexpr int MAX_SLICES = {slices}, LEAST_STAGES = {least};" in text
    few, some, many = WIDTHS
    assert f"constexpr int FEW = {few}, SOME = {some}, MANY = {many};" in text


@pytest.mark.parametrize("size", [64, 576, 2048])
def test_rms_is_the_rms(size: int) -> None:
    row = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    expected = 1 / np.sqrt((row.astype(np.float64) ** 2).mean() + 1e-5)
    assert float(inverse_rms(row, 1e-5)) == pytest.approx(expected, rel=1e-6)
    assert 0.5 * expected <= float(first_power(row, 1e-5)) <= expected


def test_a_large_or_tiny_residual_stays_in_range() -> None:
    config = SHAPES["9/3"]
    model = quantise_model(RandomSource(config))
    for factor in (1e-4, 1e3):
        scaled = replace(model, embed=(model.embed.astype(np.float32) * factor).astype(np.float16))
        schedule = cut_work(config, 5, width=128, all_logits=True)
        assert np.isfinite(PanelInterpreter(scaled, 64).run(schedule, TOKENS, 0)).all()


def test_only_what_the_kernel_can_do_is_for_it() -> None:
    def fits(
        config: ModelConfig, grouping: Grouping = Grouping.CHANNEL, arch: str = "sm_90a"
    ) -> bool:
        return fitting_variant(config, grouping, arch, 227 << 10, 132) is not None

    good = SHAPES["9/3"]
    assert fits(good)
    assert not fits(good, Grouping.G64)
    assert not fits(good, arch="sm_89")
    assert not fits(replace(good, head_dim=32))
    assert not fits(replace(good, ffn_dim=864))
    assert not fits(replace(good, n_heads=51))
    assert fitting_variant(good, Grouping.CHANNEL, "sm_90a", 99 << 10, 132) is None


def test_exchange_holds_the_parts_of_every_product() -> None:
    config = SHAPES["9/3"]
    most = max(cut(config, op).panels * cut(config, op).slices for op in LAYER_PRODUCTS)
    assert exchange_bytes(config)["new_kv"] == most * 192 * (128 + 32) * 4
    assert cut(config, Op.HEAD).slices == 1
