# SPDX-License-Identifier: Apache-2.0
"""Over all shapes that the GPU is held to: the specs of both kernels against the reference, without a GPU.

The GPU is compared with these specs (`thock bench gpu`); so what its kernels must give is right. Heads, widths,
vocabularies and rotary orders are those of the GPU's list, heads and feed-forward parts are narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.bench.gpu import shapes
from engine.bench.gpu.shapes import Shape
from engine.config import ModelConfig
from engine.cuda import cluster_schedule, schedule
from engine.cuda.cluster_interpreter import ClusterInterpreter
from engine.cuda.cluster_shape import CLUSTER, cut, fitting_variant
from engine.cuda.interpreter import Interpreter
from engine.cuda.layout import ClusterLayout, GridLayout, Tuning
from engine.cuda.mailbox import Want
from engine.cuda.parity import QuantisedSource
from engine.cuda.random_source import RandomSource, random_packed
from engine.cuda.shape import LAYER_PRODUCTS
from engine.fp8.model import PackedModel, quantise_model
from engine.fp8.quantise import Grouping
from tests.helpers import float_decoder
from tests.helpers.random_source import tiny_config

NARROW = {
    shape.name: shape
    for head_dim, ffn in ((32, 288), (32, 64), (16, 64))
    for shape in shapes.shapes(head_dim=head_dim, ffn=ffn)
    # 9 heads of 16 values are no whole number of steps.
    if (head_dim, ffn)
    == ((32, 288) if shape.config.dim < 1000 else (32 if shape.config.n_heads == 9 else 16, 64))
}
FULL = {shape.name: shape for shape in shapes.shapes()}
# Relative distance of all logits that the roundings of activations leave on random weights: a wrong formula
# leaves over 0.5.
NOISE = {"grid": 0.09, "cluster": 2e-3}


def packed(shape: Shape, grouping: Grouping = Grouping.CHANNEL) -> PackedModel:
    return quantise_model(RandomSource(shape.config), grouping)


def wanted(shape: Shape, tokens: Sequence[int], grouping: Grouping) -> np.ndarray:
    """A decoder in float64 with the same quantised weights."""
    source = QuantisedSource(RandomSource(shape.config), grouping)
    return float_decoder.logits(source.config, source.tensor, tokens)


def distance(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def could_be_cut(config: ModelConfig) -> bool:
    """Whether every block of a cluster gets a tile: all that the spec needs."""
    tiles = min(cut(config, op).tiles for op in LAYER_PRODUCTS)
    return tiles >= CLUSTER and config.n_kv_heads <= CLUSTER


@pytest.mark.parametrize("name", NARROW)
def test_both_specs_are_the_reference_but_for_rounding(name: str) -> None:
    shape = NARROW[name]
    tokens = shapes.tokens_of(shape.config)[:9]
    model, right = packed(shape), wanted(shape, tokens, Grouping.CHANNEL)
    kernels = ["grid", *(["cluster"] if could_be_cut(shape.config) else [])]
    for kernel in kernels:
        found = shapes.expected(model, kernel, tokens)
        assert (
            found.shape == right.shape == (9, shape.config.vocab_size)
        )  # no padded row among them
        assert distance(found, right) < NOISE[kernel], kernel


def test_most_shapes_could_run_on_clusters() -> None:
    # All but 32/32, which has more key-value heads than a cluster has blocks.
    cut_up = {
        (s.config.n_heads, s.config.n_kv_heads) for s in NARROW.values() if could_be_cut(s.config)
    }
    assert cut_up == {(9, 3), (32, 8), (4, 4)}


def check_counts(shape: Shape, counts: Sequence[int]) -> None:
    """The last row of each token count is the row of the longest, on every kernel, by other schedules."""
    tokens = shapes.tokens_of(shape.config)[: max(counts)]
    model = packed(shape)
    whole = shapes.expected(model, "grid", tokens)
    built = schedule.build(shape.config, Grouping.CHANNEL, 5, width=128, workers=3)
    clusters = shapes.expected(model, "cluster", tokens) if could_be_cut(shape.config) else None
    for count in counts:
        if count <= 128:
            last = Interpreter(model, 160).run(built, tokens[:count], 0)
            assert np.array_equal(last[0], whole[count - 1]), count
        if clusters is not None:
            few = cluster_schedule.build(shape.config, -(-count // 8), width=8)
            last = ClusterInterpreter(model, 160).run(few, tokens[:count], 0)
            assert np.array_equal(last[0], clusters[count - 1]), count


@pytest.mark.parametrize("heads", ["9/3", "32/8", "32/32", "4/4"])
def test_every_small_token_count_gives_the_rows_of_the_longest(heads: str) -> None:
    check_counts(NARROW[next(n for n in NARROW if n.startswith(f"{heads} 576 515"))], range(1, 10))


def test_long_token_counts_give_the_rows_of_the_longest() -> None:
    config = replace(NARROW["4/4 576 515 half-split"].config, n_layers=1)
    check_counts(Shape("4/4", config), (127, 128, 129))


@pytest.mark.parametrize("grouping", [g for g in Grouping if g is not Grouping.CHANNEL])
@pytest.mark.parametrize("width", [576, 896])
def test_ragged_groups(width: int, grouping: Grouping) -> None:
    # 576 and 896 columns are no multiple of 128 and 192: the last group of a row is shorter.
    shape = NARROW[next(n for n in NARROW if n.startswith(f"9/3 {width} 515"))]
    tokens = shapes.tokens_of(shape.config)[:5]
    found = shapes.expected(packed(shape, grouping), "grid", tokens)
    assert distance(found, wanted(shape, tokens, grouping)) < NOISE["grid"]


@pytest.mark.parametrize("name", FULL)
def test_every_program_of_the_real_layout_is_sound(name: str) -> None:
    # As the device will read them: encode proves each one before it is handed out.
    config = FULL[name].config
    layouts: list[GridLayout | ClusterLayout] = [
        GridLayout(config, Grouping.CHANNEL, "sm_90a", 132, Tuning())
    ]
    variant = fitting_variant(config, Grouping.CHANNEL, "sm_90a", 227 << 10, 4 * CLUSTER)
    if variant is not None:
        layouts.append(ClusterLayout(variant, 8))
    for layout in layouts:
        assert layout.shared_bytes <= 227 << 10
        programs = {
            layout.program_for(min(count, layout.most_tokens), want)
            for count in shapes.TOKENS
            for want in (Want.TOP, Want.ALL_LOGITS)
        }
        for program in programs:
            assert layout.encode(program).shape[0] == layout.blocks


def test_rows_are_judged_by_distance_and_best_token() -> None:
    wanted = np.random.default_rng(0).standard_normal((9, 64)).astype(np.float32)
    right = {3: wanted[:3].copy(), 9: wanted.copy()}
    assert shapes.judge(right, wanted, "grid")["passed"]
    noise = {9: wanted + np.float32(0.001) * wanted[::-1]}
    assert not shapes.judge(noise, wanted, "grid")["passed"]  # no row is exact
    one = wanted.copy()
    one[4] *= np.float32(1.05)
    found = shapes.judge({9: one}, wanted, "grid")
    assert found["passed"]  # one activation turned
    assert found["largest_distance"] == pytest.approx(0.05, abs=1e-3)
    one[4] *= 2
    assert not shapes.judge({9: one}, wanted, "grid")["passed"]
    # Another best token: a near tie or not.
    tie = wanted.copy()
    best = int(wanted[2].argmax())
    other = int(np.argsort(-wanted[2])[1])
    tie[2, other] = wanted[2, best] + np.float32(1e-6)
    found = shapes.judge({9: tie}, wanted, "grid")
    assert (found["same_best_token"], found["unexplained"]) == (8, 0)
    far = wanted.copy()
    far[2, int(wanted[2].argmin())] = wanted[2, best] + np.float32(1e-6)
    assert shapes.judge({9: far}, wanted, "grid")["unexplained"] == 1
    broken = wanted.copy()
    broken[8, 3] = np.nan
    assert not shapes.judge({3: wanted[:3], 9: broken}, wanted, "grid")["passed"]


@pytest.mark.parametrize(
    ("scale", "passed", "tried"), [(1.0, True, 1), (1.05, False, 3), (3.0, False, 1)]
)
def test_other_tokens_are_tried_until_rows_are_exact_or_wrong(
    monkeypatch: pytest.MonkeyPatch, scale: float, passed: bool, tried: int
) -> None:
    rows = np.random.default_rng(0).standard_normal((9, 64)).astype(np.float32)
    monkeypatch.setattr(shapes, "expected", lambda *_: rows)
    backend: Any = SimpleNamespace(forward_all=lambda tokens, _: rows * np.float32(scale))
    part = shapes.judge({9: rows * np.float32(1.04)}, rows, "grid")
    assert (part["passed"], part["right"]) == (False, True)
    shapes.judge_other_tokens(part, backend, random_packed(tiny_config()), "grid")
    assert part["passed"] == passed
    assert sum(name.startswith("with tokens") for name in part) == tried
