# SPDX-License-Identifier: Apache-2.0
"""What is particular to the CPU backend: memory, threads, and the two kinds of linear."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch

from engine.cpu import linear, weights
from engine.cpu.backend import MAX_THREADS, CpuBackend
from engine.cpu.linear import PackedLinear, PlainLinear, packing_works
from engine.errors import OutOfMemoryError
from engine.reference.backend import ReferenceBackend
from tests.helpers.memory_source import tiny_source

TOKENS = list(range(60))


def without_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "packing_works", lambda: False)
    monkeypatch.setattr(weights, "packing_works", lambda: False)


@pytest.mark.parametrize("tied", [False, True])
def test_without_the_packed_linear_the_logits_stay(
    monkeypatch: pytest.MonkeyPatch, tied: bool
) -> None:
    without_packing(monkeypatch)
    source = tiny_source(tied=tied, bias=True)
    backend = CpuBackend(source, threads=1)
    expected = ReferenceBackend(source).forward_all(TOKENS, 0)
    np.testing.assert_allclose(backend.forward_all(TOKENS, 0), expected, atol=5e-5, rtol=0)
    rows = np.concatenate([backend.forward_all([token], i) for i, token in enumerate(TOKENS)])
    np.testing.assert_allclose(rows, expected, atol=5e-5, rtol=0)


@pytest.mark.skipif(not packing_works(), reason="no packed linear in this torch or processor")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64])
def test_both_linears_agree(rows: int, bias: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    weight = torch.randn(51, 37, generator=generator)
    offset = torch.randn(51, generator=generator) if bias else None
    x = torch.randn(rows, 37, generator=generator)
    torch.testing.assert_close(
        PackedLinear(weight, offset)(x), PlainLinear(weight, offset)(x), atol=1e-4, rtol=0
    )


def test_rows_of_a_failed_forward_are_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = CpuBackend(tiny_source(), threads=1)
    backend.forward(TOKENS, 0)
    with monkeypatch.context() as patch:
        patch.setattr(backend, "_norm", lambda *_: pytest.fail("as if memory had run out"))
        with pytest.raises(pytest.fail.Exception):
            backend.forward([1, 2], 10)
    with pytest.raises(ValueError, match="holds 10 rows"):
        backend.forward([1], 11)


def test_too_little_memory_is_said_before_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    source = tiny_source()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    monkeypatch.setattr(source, "tensor", lambda _: pytest.fail("a tensor was read"))
    with pytest.raises(OutOfMemoryError, match=r"needs \d+ MiB .* and 0 MiB are free"):
        CpuBackend(source)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_memory_is_counted(monkeypatch: pytest.MonkeyPatch, tied: bool, packed: bool) -> None:
    monkeypatch.setattr(weights, "packing_works", lambda: packed)
    source = tiny_source(tied=tied)
    stored = sum(source.tensor(name).nbytes for name in source.tensor_names())
    second_embed = source.tensor("embed").nbytes if tied and packed else 0
    assert weights.weight_bytes(source) == stored + second_embed


@pytest.fixture
def _threads_stay() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads_stay")
@pytest.mark.parametrize(
    ("processors", "threads", "less"), [(3, 3, 2), (2, 2, 1), (1, 1, 1), (8, 2, 2), (4, 8, 3)]
)
def test_room_for_others_is_a_processor(
    monkeypatch: pytest.MonkeyPatch, processors: int, threads: int, less: int
) -> None:
    monkeypatch.setattr("engine.cpu.backend._usable_processors", lambda: processors)
    backend = CpuBackend(tiny_source(), threads=threads)
    backend.leave_room(wanted=True)
    assert torch.get_num_threads() == less
    backend.leave_room(wanted=False)
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("_threads_stay")
def test_threads_change_no_result() -> None:
    source = tiny_source(heads=(8, 4), head_dim=32, dim=256, ffn_dim=1024, vocab_size=3000)
    tokens = [int(t) for t in np.random.default_rng(4).integers(0, 3000, 24)]
    backend = CpuBackend(source, threads=1)
    alone = backend.forward_all(tokens, 0)
    for threads in (2, 3):
        torch.set_num_threads(threads)
        np.testing.assert_allclose(backend.forward_all(tokens, 0), alone, atol=1e-4, rtol=0)
        last = backend.forward(tokens[-1:], len(tokens) - 1)
        assert last.argmax() == alone[-1].argmax()


@pytest.mark.usefixtures("_threads_stay")
def test_threads_are_set() -> None:
    CpuBackend(tiny_source(), threads=1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(1000)
    CpuBackend(tiny_source())
    assert 1 <= torch.get_num_threads() <= MAX_THREADS
