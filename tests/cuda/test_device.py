# SPDX-License-Identifier: Apache-2.0
"""The kernel on a real GPU against the interpreter: same shapes, same tokens, same caches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import ModelConfig, RopeLayout
from engine.cuda import cluster_schedule, panel_schedule, schedule
from engine.cuda.cluster_interpreter import ClusterInterpreter
from engine.cuda.driver import Context
from engine.cuda.engine import GpuEngine, Residency
from engine.cuda.interpreter import Interpreter
from engine.cuda.layout import PanelLayout, Tuning
from engine.cuda.mailbox import Want
from engine.cuda.panel_interpreter import PanelInterpreter
from engine.cuda.random_source import random_packed
from engine.fp8.model import PackedModel, quantise_model
from engine.fp8.quantise import Grouping
from tests.helpers.random_source import RandomSource, tiny_config

CONTEXT = 320
SHAPES = {
    "9/3": tiny_config(heads=(9, 3), head_dim=64, dim=576, ffn=1536, vocab=1000),
    "4/4": tiny_config(heads=(4, 4), head_dim=16, dim=64, ffn=96, vocab=50, tied=False),
    "14/2": tiny_config(heads=(14, 2), head_dim=64, dim=896, ffn=1216, vocab=515, bias=True),
    "32/8": tiny_config(heads=(32, 8), head_dim=64, dim=2048, ffn=4096, vocab=777, layers=1),
    "interleaved": tiny_config(
        heads=(6, 2), head_dim=32, dim=192, ffn=224, vocab=129, layout=RopeLayout.INTERLEAVED
    ),
}


def packed(config: ModelConfig, grouping: Grouping = Grouping.CHANNEL) -> PackedModel:
    return quantise_model(RandomSource(config), grouping)


def tokens_for(config: ModelConfig, count: int, seed: int = 1) -> list[int]:
    random = np.random.default_rng(seed)
    return [int(t) for t in random.integers(0, config.vocab_size, count)]


def interpreted(engine: GpuEngine, model: PackedModel, tokens: list[int]) -> np.ndarray:
    """Logits of all tokens from the executable spec of the kernel that `engine` runs."""
    if isinstance(engine.layout, PanelLayout):
        panels = panel_schedule.build(model.config, 20, width=128, all_logits=True)
        return PanelInterpreter(model, CONTEXT).run(panels, tokens, 0)
    if engine.layout.cluster > 1:
        cut = cluster_schedule.build(model.config, 8, width=16, all_logits=True)
        return ClusterInterpreter(model, CONTEXT).run(cut, tokens, 0)
    built = schedule.build(model.config, model.grouping, 16, width=128, workers=8, all_logits=True)
    return Interpreter(model, CONTEXT).run(built, tokens, 0)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("grouping", "kernel"),
    [
        (Grouping.CHANNEL, "auto"),
        (Grouping.CHANNEL, "grid"),
        (Grouping.G64, "grid"),
        (Grouping.G192, "grid"),
    ],
)
@pytest.mark.parametrize("name", SHAPES)
def test_logits_match_the_interpreter(
    gpu: Context, kernels: Path, name: str, grouping: Grouping, kernel: str
) -> None:
    config = SHAPES[name]
    model = packed(config, grouping)
    engine = GpuEngine(gpu, model, CONTEXT, kernels, tuning=Tuning(kernel=kernel))
    tokens = tokens_for(config, engine.most_tokens)
    expected = interpreted(engine, model, tokens)
    for count in (1, 2, 7, 8, 9, 40, len(tokens) - 1, len(tokens)):
        engine.run(tokens[:count], 0, want=Want.ALL_LOGITS)
        found = engine.logits(count)
        apart = [distance(a, b) for a, b in zip(found, expected, strict=False)]
        # The last bit of a sum can flip an e4m3 code (a step of 6%), and then others follow: such
        # a token ends up within the noise of the format. Without a flip it agrees to float32.
        # Float16 activations flip too, by 0.1%.
        assert min(apart) < (1e-3 if engine.layout.cluster > 1 else 1e-4), count
        assert max(apart) < (5e-3 if engine.layout.cluster > 1 else 0.1), count
        reply = engine.run(tokens[:count], 0, top=4)
        order = np.argsort(-found[-1], kind="stable")[:4]
        assert [c.token for c in reply.candidates] == [int(t) for t in order]
        wide = found[-1].astype(np.float64)
        norm = wide.max() + np.log(np.exp(wide - wide.max()).sum())
        for candidate in reply.candidates:
            assert candidate.logit == found[-1, candidate.token]
            assert candidate.log_probability == pytest.approx(candidate.logit - norm, abs=1e-3)


@pytest.mark.parametrize("kernel", ["auto", "grid"])
@pytest.mark.parametrize("name", SHAPES)
def test_incremental_equals_full_bit_for_bit(
    gpu: Context, kernels: Path, name: str, kernel: str
) -> None:
    config = SHAPES[name]
    engine = GpuEngine(gpu, packed(config), CONTEXT, kernels, tuning=Tuning(kernel=kernel))
    tokens = tokens_for(config, engine.most_tokens)
    engine.run(tokens, 0, want=Want.ALL_LOGITS)
    full = engine.logits(len(tokens))
    for prefix in (1, 5, 8, 31, 32, 33, 64, 100, len(tokens) - 8, len(tokens) - 1):
        if prefix >= len(tokens):
            continue  # fewer tokens fit one request of this shape
        engine.run(tokens[:prefix], 0)
        engine.run(tokens[prefix:], prefix, want=Want.LOGITS)
        assert np.array_equal(engine.logits(1)[0], full[-1]), prefix
    for at in range(0, len(tokens) - 7, 8):
        engine.run(tokens[at : at + 8], at, want=Want.ALL_LOGITS)
        assert np.array_equal(engine.logits(8), full[at : at + 8]), at


GRID = Tuning(kernel="grid")


@pytest.mark.parametrize(
    "tuning",
    [
        replace(GRID, wide=1),
        replace(GRID, wide=4),
        replace(GRID, few_workers=24),
        replace(GRID, share_from=9),
    ],
)
def test_tuning_changes_no_bit(gpu: Context, kernels: Path, tuning: Tuning) -> None:
    config = SHAPES["9/3"]
    model, tokens = packed(config), tokens_for(config, 100)
    results = []
    for choice in (GRID, tuning):
        engine = GpuEngine(gpu, model, CONTEXT, kernels, tuning=choice)
        engine.run(tokens[:95], 0)
        engine.run(tokens[95:], 95, want=Want.LOGITS)
        results.append(engine.logits(1))
    assert np.array_equal(*results)


def test_a_cluster_attends_far_back(gpu: Context, kernels: Path) -> None:
    config = SHAPES["9/3"]
    model, tokens = packed(config), tokens_for(config, 300)
    engine = GpuEngine(gpu, model, CONTEXT, kernels)
    if engine.layout.cluster == 1:
        pytest.skip("this GPU has no clusters")
    reference = ClusterInterpreter(model, CONTEXT)
    built = cluster_schedule.build(config, 8, width=16)
    for at in range(0, 300, 100):
        engine.run(tokens[at : at + 100], at, want=Want.LOGITS)
        expected = reference.run(built, tokens[at : at + 100], at)
    assert distance(engine.logits(1), expected) < 5e-3


def test_barriers_outlast_many_requests(gpu: Context, kernels: Path) -> None:
    # In one launch: byte counts that do not come out even would add up until a barrier overflows.
    config = SHAPES["9/3"]
    if gpu.facts.watchdog:
        pytest.skip("this GPU drives a display")
    tokens = tokens_for(config, 40)
    engine = GpuEngine(gpu, packed(config), CONTEXT, kernels, residency=Residency.RESIDENT)
    first = engine.run(tokens, 0)
    for index in range(6000):
        at = 40 - 1 - index % 8
        assert engine.run(tokens[at:], at).candidates == first.candidates
    engine.leave()


PANEL = Tuning(kernel="panel")
PANEL_SHAPES = {
    **{name: SHAPES[name] for name in ("9/3", "14/2", "32/8")},
    "128": tiny_config(
        heads=(4, 4), head_dim=128, dim=512, ffn=1344, vocab=777, layout=RopeLayout.INTERLEAVED
    ),
    # Two panels of a product for one block, and three pieces of attention for one team.
    "140/140": tiny_config(heads=(140, 140), head_dim=64, dim=128, ffn=13312, vocab=300, layers=1),
}


@pytest.fixture
def hopper(gpu: Context) -> Context:
    if not gpu.facts.arch.startswith("sm_90"):
        pytest.skip("the panel kernel is for sm_90a")  # warpgroup instructions
    return gpu


@pytest.mark.parametrize("name", PANEL_SHAPES)
def test_panels_match_the_interpreter_and_prefixes_the_whole(
    hopper: Context, kernels: Path, name: str
) -> None:
    config = PANEL_SHAPES[name]
    model, tokens = packed(config), tokens_for(config, 128)
    engine = GpuEngine(hopper, model, CONTEXT, kernels, tuning=PANEL)
    assert isinstance(engine.layout, PanelLayout)
    expected = interpreted(engine, model, tokens)
    for count in (1, 2, 7, 8, 9, 32, 33, 100, 127, 128):
        engine.run(tokens[:count], 0, want=Want.ALL_LOGITS)
        found = engine.logits(count)
        apart = [distance(a, b) for a, b in zip(found, expected, strict=False)]
        assert min(apart) < 1e-3, count
        assert max(apart) < 5e-3, count
        reply = engine.run(tokens[:count], 0, top=4, want=Want.LOGITS)
        assert np.array_equal(engine.logits(1)[0], found[-1])
        order = np.argsort(-found[-1], kind="stable")[:4]
        assert [c.token for c in reply.candidates] == [int(t) for t in order]
    # 1 to 8 tokens take the instructions of a warp, others those of a warpgroup: the bits are the same.
    for prefix in range(1, 128):
        engine.run(tokens[:prefix], 0)
        engine.run(tokens[prefix:], prefix, want=Want.LOGITS)
        assert np.array_equal(engine.logits(1)[0], found[-1]), prefix


def test_panels_attend_far_back(hopper: Context, kernels: Path) -> None:
    config = PANEL_SHAPES["128"]
    model, tokens = packed(config), tokens_for(config, 300)
    engine = GpuEngine(hopper, model, CONTEXT, kernels, tuning=PANEL)
    reference = PanelInterpreter(model, CONTEXT)
    built = panel_schedule.build(config, 20, width=128)
    for at in range(0, 300, 100):
        engine.run(tokens[at : at + 100], at, want=Want.LOGITS)
        expected = reference.run(built, tokens[at : at + 100], at)
    assert distance(engine.logits(1), expected) < 5e-3


@pytest.mark.parametrize("count", [1, 8, 30, 128])
def test_panels_repeat_themselves_at_full_width(hopper: Context, kernels: Path, count: int) -> None:
    # Every block busy in every product, as small shapes never have it: a race between warps shows here.
    config = tiny_config(heads=(32, 32), head_dim=128, dim=4096, ffn=11008, vocab=32000, tied=False)
    tokens = tokens_for(config, 128)
    engine = GpuEngine(
        hopper, random_packed(config), CONTEXT, kernels, residency=Residency.RESIDENT, tuning=PANEL
    )
    engine.run(tokens, 0, want=Want.LOGITS)
    whole = engine.logits(1)
    for _ in range(200):
        engine.run(tokens[128 - count :], 128 - count, want=Want.LOGITS)
        assert np.array_equal(engine.logits(1), whole)
    engine.leave()


def test_positions_past_one_request(gpu: Context, kernels: Path) -> None:
    config = SHAPES["interleaved"]
    model, tokens = packed(config), tokens_for(config, 300)
    engine = GpuEngine(gpu, model, CONTEXT, kernels)
    for at in range(0, 300, 100):
        engine.run(tokens[at : at + 100], at, want=Want.LOGITS)
    reference = Interpreter(model, CONTEXT)
    built = schedule.build(config, model.grouping, 8, width=128)
    for at in range(0, 300, 100):
        expected = reference.run(built, tokens[at : at + 100], at)
    assert distance(engine.logits(1), expected) < 0.1


@pytest.mark.parametrize("residency", list(Residency))
def test_residencies_give_the_same_bits(gpu: Context, kernels: Path, residency: Residency) -> None:
    config = SHAPES["9/3"]
    if residency is Residency.RESIDENT and gpu.facts.watchdog:
        pytest.skip("this GPU drives a display")
    model, tokens = packed(config), tokens_for(config, 60)
    results = []
    for kind in (Residency.LAUNCH, residency):
        engine = GpuEngine(gpu, model, CONTEXT, kernels, residency=kind)
        for at in range(0, 60, 6):
            engine.run(tokens[at : at + 6], at, want=Want.LOGITS)
        results.append(engine.logits(1))
        engine.leave()
        assert gpu.idle()
    assert np.array_equal(*results)


def test_padded_vocabulary_never_wins(gpu: Context, kernels: Path) -> None:
    config = SHAPES["4/4"]  # 50 rows in 4 tiles of 16: 14 padded rows with logit 0
    source = RandomSource(config)
    model = quantise_model(source, Grouping.CHANNEL)
    engine = GpuEngine(gpu, model, CONTEXT, kernels)
    for seed in range(40):
        reply = engine.run(tokens_for(config, 3, seed), 0, top=16)
        ids = [c.token for c in reply.candidates]
        assert max(ids) < config.vocab_size
        assert len(set(ids)) == 16


@pytest.mark.parametrize("kernel", ["auto", "grid"])
@pytest.mark.parametrize("residency", list(Residency))
def test_a_full_ring_is_drained_and_the_newest_wins(
    gpu: Context, kernels: Path, residency: Residency, kernel: str
) -> None:
    config = SHAPES["9/3"]
    if residency is Residency.RESIDENT and gpu.facts.watchdog:
        pytest.skip("this GPU drives a display")
    tuning = Tuning(kernel=kernel, ring=256 if residency is Residency.LAUNCH else 2048)
    engine = GpuEngine(gpu, packed(config), CONTEXT, kernels, residency=residency, tuning=tuning)
    tokens = tokens_for(config, 40)
    engine.run(tokens[:32], 0)
    expected = [engine.run(tokens[32 : 33 + n], 32, top=3).candidates for n in range(8)]
    numbers = [engine.submit(tokens[32 : 33 + n % 8], 32, top=3) for n in range(tuning.ring)]
    for n, number in enumerate(numbers):
        assert engine.collect(number).candidates == expected[n % 8]
    numbers = [
        engine.submit(tokens[32 : 33 + n % 8], 32, top=3, want=Want.REPLACEABLE)
        for n in range(tuning.ring)
    ]
    replies = [engine.collect(number) for number in numbers]
    assert not replies[-1].passed_over
    for n, reply in enumerate(replies):
        assert reply.candidates == (() if reply.passed_over else expected[n % 8])
    assert any(reply.passed_over for reply in replies)
    engine.release()
    assert gpu.idle()


def test_kept_l2_changes_no_bit(gpu: Context, kernels: Path) -> None:
    config = SHAPES["9/3"]
    model, tokens = packed(config), tokens_for(config, 60)
    results = []
    for pin in (False, True):
        engine = GpuEngine(gpu, model, CONTEXT, kernels, tuning=Tuning(pin_l2=pin))
        engine.run(tokens, 0, want=Want.LOGITS)
        results.append(engine.logits(1))
        engine.release()
    assert np.array_equal(*results)
