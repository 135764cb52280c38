# SPDX-License-Identifier: Apache-2.0
"""What engine.backend.Backend promises, for every backend. A new one joins by a line in BACKENDS, or in
QUANTISED if its numbers are not those of the float32 specification.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from engine.backend import Backend
from engine.config import ModelConfig, RopeLayout, RopeScaling, RopeScalingKind
from engine.cpu.backend import BRANCH_ROWS, CpuBackend
from engine.cuda.backend import CudaBackend
from engine.cuda.driver import Context
from engine.errors import (
    BackendClosedError,
    ContextOverflowError,
    DeviceError,
    UnsupportedModelError,
)
from engine.formats.source import ModelSource
from engine.fp8.model import quantise_model
from engine.reference.backend import ReferenceBackend
from tests.helpers.memory_source import MemorySource, tiny_source

Opener: TypeAlias = Callable[[ModelSource, int], Backend]

BACKENDS: dict[str, Opener] = {
    "cpu": lambda source, max_context: CpuBackend(source, max_context, threads=1),
    "reference": ReferenceBackend,
}
# They round weights and activations, but what is computed beside a row changes nothing there either.
QUANTISED = ("cuda",)
# Largest difference of logits of a few units that float32 arithmetic explains; measured: 6e-6.
ROUNDING = 5e-5

LINEAR = RopeScaling(RopeScalingKind.LINEAR, factor=4.0)
LLAMA3 = RopeScaling(RopeScalingKind.LLAMA3, 8.0, 1.0, 4.0, original_context=32)
SHAPES: dict[str, dict[str, Any]] = {
    "heads 9/3": {"heads": (9, 3)},
    "heads 4/4": {"heads": (4, 4)},
    "heads 8/2": {"heads": (8, 2)},
    "heads 4/1": {"heads": (4, 1)},
    "head_dim * heads != dim": {"heads": (6, 2), "head_dim": 24},
    "odd sizes": {"heads": (3, 1), "head_dim": 10, "dim": 37, "ffn_dim": 51, "vocab_size": 101},
    "tied": {"tied": True},
    "bias": {"bias": True, "heads": (9, 3)},
    "bias, tied": {"bias": True, "tied": True, "heads": (4, 1)},
    "linear scaling": {"rope_scaling": LINEAR},
    "llama3 scaling": {"rope_scaling": LLAMA3},
    "frequency divisors": {"rope_scaling": LLAMA3, "frequency_divisors": True},
}
TOKENS = np.random.default_rng(7).integers(0, 97, 90).tolist()


@pytest.fixture(params=list(BACKENDS))
def exact_opener(request: pytest.FixtureRequest) -> Opener:
    return BACKENDS[request.param]


@pytest.fixture(params=[*BACKENDS, *QUANTISED])
def opener(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opener:
    if request.param in BACKENDS:
        return BACKENDS[request.param]
    try:
        Context().close()
    except DeviceError as error:
        pytest.skip(f"needs an NVIDIA GPU with FP8: {error}")
    kept = os.environ.get("THOCK_TEST_KERNELS")
    kernels = Path(kept) if kept else tmp_path_factory.getbasetemp() / "kernels"

    def open_cuda(source: ModelSource, max_context: int) -> Backend:
        try:
            backend = CudaBackend(quantise_model(source), max_context, kernels)
        except UnsupportedModelError as error:
            pytest.skip(str(error))
        request.addfinalizer(backend.close)
        return backend

    return open_cuda


@pytest.fixture
def backend(opener: Opener) -> Backend:
    return opener(tiny_source(), 128)


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_the_specification(exact_opener: Opener, shape: str) -> None:
    source = tiny_source(**SHAPES[shape])
    backend = exact_opener(source, 128)
    logits = backend.forward_all(TOKENS, 0)
    expected = ReferenceBackend(source, 128).forward_all(TOKENS, 0)
    assert logits.shape == (len(TOKENS), source.config.vocab_size)
    assert logits.dtype == np.float32
    assert np.ptp(expected) > 1  # else the comparison says nothing
    np.testing.assert_allclose(logits, expected, atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", [1, 3, 31])
def test_incremental_equals_full(opener: Opener, shape: str, step: int) -> None:
    backend = opener(tiny_source(**SHAPES[shape]), 128)
    full = backend.forward_all(TOKENS, 0)
    parts = [backend.forward_all(TOKENS[i : i + step], i) for i in range(0, len(TOKENS), step)]
    np.testing.assert_allclose(np.concatenate(parts), full, atol=ROUNDING, rtol=0)


def test_forward_is_the_last_row(backend: Backend) -> None:
    every = backend.forward_all(TOKENS, 0)
    last = backend.forward(TOKENS, 0)
    assert last.shape == (backend.config.vocab_size,)
    np.testing.assert_allclose(last, every[-1], atol=ROUNDING, rtol=0)


def test_leaving_room_changes_no_result(backend: Backend) -> None:
    results = []
    for wanted in (False, True, False):
        backend.leave_room(wanted=wanted)
        results.append(backend.forward_all(TOKENS, 0))
    for result in results:
        np.testing.assert_allclose(result, results[0], atol=ROUNDING, rtol=0)


def test_scaling_moves_the_logits(opener: Opener) -> None:
    plain = opener(tiny_source(), 128).forward(TOKENS, 0)
    for scaling in (LINEAR, LLAMA3):
        scaled = opener(tiny_source(rope_scaling=scaling), 128).forward(TOKENS, 0)
        assert np.abs(scaled - plain).max() > 1e-2


def test_frequency_divisors_mean_what_the_rule_means(exact_opener: Opener) -> None:
    rule = exact_opener(tiny_source(rope_scaling=LLAMA3), 128)
    divisors = exact_opener(tiny_source(rope_scaling=LLAMA3, frequency_divisors=True), 128)
    np.testing.assert_allclose(
        divisors.forward_all(TOKENS, 0), rule.forward_all(TOKENS, 0), atol=ROUNDING, rtol=0
    )


def test_rewritten_rows_replace_the_old_ones(backend: Backend) -> None:
    edited = [*TOKENS[:40], 5, 6, 7]
    expected = backend.forward(edited, 0)
    backend.forward(TOKENS, 0)
    np.testing.assert_allclose(backend.forward([5, 6, 7], 40), expected, atol=ROUNDING, rtol=0)


def test_later_rows_become_invalid(backend: Backend) -> None:
    backend.forward(TOKENS, 0)
    backend.forward([1], 10)
    with pytest.raises(ValueError, match="holds 11 rows"):
        backend.forward([1], 12)


def test_branches_stand_alone(backend: Backend) -> None:
    lengths = [1, 3, 2, 1, 7, BRANCH_ROWS + 3, 4, BRANCH_ROWS, 1, 1]
    branches = [TOKENS[i : i + n] for i, n in enumerate(lengths)]
    backend.forward(TOKENS[:60], 0)
    logits = backend.forward_branches(branches, 60)
    assert logits.shape == (len(branches), backend.config.vocab_size)
    for branch, row in zip(branches, logits, strict=True):
        expected = backend.forward(branch, 60)
        np.testing.assert_allclose(row, expected, atol=ROUNDING, rtol=0)


def test_branches_leave_the_rows_before(backend: Backend) -> None:
    expected = backend.forward(TOKENS[:50], 0)
    backend.forward_branches([[1, 2], [3]], 49)
    with pytest.raises(ValueError, match="holds 49 rows"):
        backend.forward([1], 50)
    actual = backend.forward(TOKENS[49:50], 49)
    np.testing.assert_allclose(actual, expected, atol=ROUNDING, rtol=0)


def test_branches_up_to_the_end_of_the_context(backend: Backend) -> None:
    backend.forward([1] * 120, 0)
    branches = [[i] * 8 for i in range(9)]  # together more rows than the context has left
    logits = backend.forward_branches(branches, 120)
    for branch, row in zip(branches, logits, strict=True):
        expected = backend.forward(branch, 120)
        np.testing.assert_allclose(row, expected, atol=ROUNDING, rtol=0)


def test_context_can_be_filled_and_not_passed(backend: Backend) -> None:
    assert backend.max_context == 128
    expected = backend.forward([1] * 128, 0)
    for call in (backend.forward, backend.forward_all):
        with pytest.raises(ContextOverflowError, match="129 tokens do not fit the context of 128"):
            call([2, 3, 4], 126)
    with pytest.raises(ContextOverflowError):
        backend.forward_branches([[1], [2, 3, 4]], 126)
    assert len(expected) == backend.config.vocab_size


def test_context_is_at_most_the_models_own(opener: Opener) -> None:
    assert opener(tiny_source(context=40), 128).max_context == 40


@pytest.mark.parametrize(
    ("tokens", "position", "reason"),
    [
        ([], 0, "no token"),
        ([97], 0, "outside the vocabulary of 97"),
        ([3, -1], 0, "outside the vocabulary"),
        ([3], 11, "leaves a gap"),
        ([3], -1, "leaves a gap"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    backend: Backend, tokens: list[int], position: int, reason: str
) -> None:
    backend.forward(TOKENS[:10], 0)
    for call in (backend.forward, backend.forward_all):
        with pytest.raises(ValueError, match=reason):
            call(tokens, position)
    with pytest.raises(ValueError, match=reason):
        backend.forward_branches([[1], tokens], position)
    actual = backend.forward(TOKENS[10:20], 10)
    np.testing.assert_allclose(actual, backend.forward(TOKENS[:20], 0), atol=ROUNDING, rtol=0)


def test_no_branch_is_refused(backend: Backend) -> None:
    with pytest.raises(ValueError, match="no branch"):
        backend.forward_branches([], 0)


def test_interleaved_rows_are_refused(exact_opener: Opener) -> None:
    class Interleaved(MemorySource):
        @property
        def config(self) -> ModelConfig:
            return replace(super().config, rope_layout=RopeLayout.INTERLEAVED)

    source = tiny_source()
    unordered = Interleaved(
        source.config, {name: source.tensor(name) for name in source.tensor_names()}
    )
    with pytest.raises(ValueError, match="HALF_SPLIT"):
        exact_opener(unordered, 128)


def test_the_source_may_be_closed_after_loading(opener: Opener) -> None:
    source = tiny_source()
    backend = opener(source, 128)
    expected = backend.forward(TOKENS, 0)
    source.close()
    np.testing.assert_array_equal(backend.forward(TOKENS, 0), expected)


def test_after_forgetting_the_cache_is_empty(backend: Backend) -> None:
    expected = backend.forward(TOKENS, 0)
    backend.forget()
    with pytest.raises(ValueError, match="holds 0 rows"):
        backend.forward([1], 1)
    np.testing.assert_array_equal(backend.forward(TOKENS, 0), expected)


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_forgetting_overwrites_every_row(name: str) -> None:
    backend = BACKENDS[name](tiny_source(), 128)
    backend.forward(TOKENS, 0)
    backend.forward_branches([[1, 2], [3]], 60)
    caches = [np.asarray(value) for value in vars(backend).values() if np.ndim(value) >= 4]
    assert caches
    assert all(np.any(cache) for cache in caches)
    backend.forget()
    assert not any(np.any(cache) for cache in caches)


def test_closed_twice_and_then_refusing(backend: Backend) -> None:
    backend.close()
    backend.close()
    for call in (backend.forward, backend.forward_all):
        with pytest.raises(BackendClosedError):
            call([1], 0)
    with pytest.raises(BackendClosedError):
        backend.forward_branches([[1]], 0)
