# SPDX-License-Identifier: Apache-2.0
"""The executable spec: close to a float model, and equal to itself however the work is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from engine.config import ModelConfig, RopeLayout
from engine.cuda import schedule, spec
from engine.cuda.errors import ScheduleError
from engine.cuda.interpreter import Interpreter
from engine.cuda.schedule import Schedule
from engine.cuda.validate import validate
from engine.fp8.model import quantise_model
from engine.fp8.quantise import Grouping
from tests.helpers import float_decoder
from tests.helpers.random_source import RandomSource, tiny_config

TOKENS = [int(t) for t in np.random.default_rng(1).integers(0, 50, 21)]
SHAPES = {
    "9/3": tiny_config(heads=(9, 3), head_dim=32, dim=576, ffn=192),
    "32/8": tiny_config(heads=(32, 8), dim=64),
    "4/4": tiny_config(heads=(4, 4), tied=False),
    "interleaved": tiny_config(layout=RopeLayout.INTERLEAVED, bias=True),
    "bias": tiny_config(bias=True, dim=192, ffn=416),
}


def whole(config: ModelConfig, grouping: Grouping) -> Schedule:
    return schedule.build(config, grouping, 3, width=32, all_logits=True)


@pytest.mark.parametrize("grouping", list(Grouping))
@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_those_of_a_float_model_with_these_weights(
    name: str, grouping: Grouping
) -> None:
    config = SHAPES[name]
    source = RandomSource(config)
    expected = float_decoder.logits(config, float_decoder.packed_weights(source, grouping), TOKENS)
    model = quantise_model(source, grouping)
    found = Interpreter(model, 64).run(whole(config, grouping), TOKENS, 0)
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    # Activations of 4 significant bits leave about 4% on random weights; a wrong formula, over 50%.
    assert error < 0.09


@pytest.mark.parametrize("name", SHAPES)
def test_no_cut_of_the_work_changes_a_bit(name: str) -> None:
    config = SHAPES[name]
    model = quantise_model(RandomSource(config))
    reference = Interpreter(model, 64)
    expected = reference.run(whole(config, Grouping.CHANNEL), TOKENS, 0)
    for blocks, workers, shared, step in ((7, 7, False, 8), (5, 2, True, 3), (4, 4, True, 1)):
        built = schedule.build(
            config, Grouping.CHANNEL, blocks, workers=workers, shared_inputs=shared
        )
        validate(config, Grouping.CHANNEL, built)
        other = Interpreter(model, 64)
        for at in range(0, len(TOKENS), step):
            last = other.run(built, TOKENS[at : at + step], at)
        assert np.array_equal(last[0], expected[-1])
        assert np.array_equal(other.cache, reference.cache)
    grouped = schedule.build(
        config, Grouping.CHANNEL, 9, width=8, groups=3, all_logits=True, shared_inputs=True
    )
    assert np.array_equal(Interpreter(model, 64).run(grouped, TOKENS, 0), expected)


def test_incremental_equals_full_at_every_prefix() -> None:
    config = SHAPES["32/8"]
    model = quantise_model(RandomSource(config))
    built = whole(config, Grouping.CHANNEL)
    full = Interpreter(model, 64).run(built, TOKENS, 0)
    for prefix in (1, 2, 7, 8, 9, 16, 20):
        other = Interpreter(model, 64)
        other.run(built, TOKENS[:prefix], 0)
        rest = other.run(built, TOKENS[prefix:], prefix)
        assert np.array_equal(rest, full[prefix:])


def test_a_schedule_that_stalls_is_an_error() -> None:
    config = SHAPES["4/4"]
    built = schedule.build(config, Grouping.CHANNEL, 3)
    short = Schedule(8, 1, False, False, built.blocks[:2])
    with pytest.raises(ScheduleError, match="for ever"):
        Interpreter(quantise_model(RandomSource(config)), 64).run(short, TOKENS[:4], 0)


@given(hnp.arrays(np.float32, st.integers(1, 50), elements=st.floats(width=32, allow_nan=False)))
def test_an_exchanged_value_keeps_15_mantissa_bits(values: np.ndarray) -> None:
    rounded = spec.f24(values)
    assert not (rounded.view(np.uint32) & 0xFF).any()
    finite = np.isfinite(rounded)
    error = np.abs(rounded[finite].astype(np.float64) - values[finite])
    limit = np.maximum(np.abs(values[finite].astype(np.float64)) * 2.0**-15, 2.0**-141)
    assert (error <= limit).all()
    assert np.array_equal(spec.f24(rounded), rounded)


def test_nan_and_infinity_pass_an_exchange() -> None:
    # the NaN that a GPU makes, one of either sign, and the quiet NaN of a CPU
    odd = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000], dtype=np.uint32).view(np.float32)
    assert np.isnan(spec.f24(odd)).all()
    assert np.isinf(spec.f24(np.array([np.inf, -np.inf], dtype=np.float32))).all()


@settings(max_examples=50)
@given(st.integers(1, 120), st.integers(0, 2**32 - 1))
def test_chunked_attention_is_softmax(positions: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    query = random.standard_normal(16).astype(np.float32)
    keys = random.standard_normal((positions, 16)).astype(np.float16)
    values = random.standard_normal((positions, 16)).astype(np.float16)
    scores = keys.astype(np.float64) @ query / 4
    weights = np.exp(scores - scores.max())
    expected = weights @ values.astype(np.float64) / weights.sum()
    np.testing.assert_allclose(spec.attend(query, keys, values), expected, atol=4e-3)
