# SPDX-License-Identifier: Apache-2.0
"""The GPU engine on a simulated GPU: everything but the machine code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.cuda import cluster_shape, memory, shape
from engine.cuda.backend import CudaBackend
from engine.cuda.engine import Residency
from engine.cuda.errors import MailboxFullError, UnsupportedDeviceError
from engine.cuda.layout import ClusterLayout, PanelLayout, Tuning
from engine.cuda.mailbox import Want
from engine.errors import BackendClosedError, ContextOverflowError, OutOfMemoryError
from engine.fp8.model import PackedModel, quantise_model
from engine.session import Session
from tests.helpers.fake_cuda import CUresult
from tests.helpers.random_source import RandomSource, tiny_config
from tests.helpers.simulated_gpu import SimulatedGpu, simulated_gpu

ADA, HOPPER = (8, 9), (9, 0)
# The cluster kernel takes models from 16 tiles in each product on.
CONFIGS = {
    ADA: tiny_config(layers=1, tied=False),
    HOPPER: tiny_config(heads=(4, 2), head_dim=64, dim=256, ffn=256, layers=1, tied=False),
}
MODELS = {kind: quantise_model(RandomSource(config)) for kind, config in CONFIGS.items()}
TOKENS = [int(t) for t in np.random.default_rng(5).integers(0, 50, 40)]


@pytest.fixture(params=[ADA, HOPPER], ids=["grid", "cluster"])
def capability(request: pytest.FixtureRequest) -> tuple[int, int]:
    kind: tuple[int, int] = request.param
    return kind


@pytest.fixture
def model(capability: tuple[int, int]) -> PackedModel:
    return MODELS[capability]


@pytest.fixture
def gpu(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], model: PackedModel
) -> Iterator[SimulatedGpu]:
    with simulated_gpu(monkeypatch, model, capability) as gpu:
        yield gpu


@pytest.fixture(params=list(Residency), ids=[r.value for r in Residency])
def backend(
    request: pytest.FixtureRequest, gpu: SimulatedGpu, model: PackedModel
) -> Iterator[CudaBackend]:
    made = CudaBackend(
        model,
        64,
        Path("unused"),
        residency=request.param,
        tuning=Tuning(ring=8, lease_ms=2000, wait_ms=30_000),
    )
    yield made
    made.close()


def test_requests_in_any_step_give_one_answer(backend: CudaBackend, gpu: SimulatedGpu) -> None:
    whole = backend.forward_all(TOKENS, 0)
    backend.forward(TOKENS[:7], 0)
    assert np.array_equal(backend.forward(TOKENS[7:], 7), whole[-1])
    reply = backend.best(TOKENS[-1:], len(TOKENS) - 1, 5)
    order = np.argsort(-whole[-1], kind="stable")[:5]
    assert [c.token for c in reply.candidates] == [int(t) for t in order]
    assert all(cluster == gpu.launches[0][1] for _, cluster in gpu.launches)
    stays = backend.engine.layout.cluster
    assert stays == gpu.launches[0][1]


def test_choices_among_a_few_tokens(backend: CudaBackend) -> None:
    logits = backend.forward(TOKENS[:9], 0)
    backend.forget()
    session = Session(backend)
    session.update(TOKENS[:9])
    labels = [[3], [17], [40]]
    index, shares = session.choose(labels)
    assert index == int(np.argmax(logits[[3, 17, 40]]))
    assert sum(shares) == pytest.approx(1)
    # Labels that begin alike are told apart by further requests.
    index, shares = session.choose([[3, 5], [3, 9], [17]])
    assert sum(shares) == pytest.approx(1)
    assert session.top(4)[0][0] == int(np.argmax(logits))


def test_branches_leave_the_rows_before_them(backend: CudaBackend) -> None:
    backend.forward(TOKENS[:6], 0)
    rows = backend.forward_branches([[7], [8, 9]], 6)
    assert np.array_equal(rows[1], backend.forward([8, 9], 6))
    assert np.array_equal(rows[0], backend.forward([7], 6))
    with pytest.raises(ContextOverflowError):
        backend.forward(TOKENS[:1] * 60, 5)
    backend.close()
    with pytest.raises(BackendClosedError):
        backend.forward(TOKENS[:1], 0)


def test_waiting_requests_are_drained_in_order(backend: CudaBackend) -> None:
    engine = backend.engine
    numbers = [engine.submit(TOKENS[at : at + 4], at) for at in range(0, 32, 4)]
    replies = [engine.collect(number) for number in numbers]
    assert not any(reply.passed_over for reply in replies)
    backend.forward_all(TOKENS[:32], 0)
    engine.run(TOKENS[31:32], 31)
    assert engine.run(TOKENS[31:32], 31).candidates == replies[-1].candidates


def test_of_waiting_contexts_the_newest_is_computed(backend: CudaBackend) -> None:
    engine = backend.engine
    engine.run(TOKENS[:16], 0)
    numbers = [
        engine.submit(TOKENS[16 : 17 + i], 16, want=Want.REPLACEABLE, top=3) for i in range(6)
    ]
    replies = [engine.collect(number) for number in numbers]
    assert not replies[-1].passed_over
    assert all(len(r.candidates) == (0 if r.passed_over else 3) for r in replies)
    assert engine.run(TOKENS[16:22], 16, top=3).candidates == replies[-1].candidates


def test_no_more_wait_than_there_is_room_for(backend: CudaBackend) -> None:
    engine = backend.engine
    long = [1] * 12
    last = 0
    with pytest.raises(MailboxFullError):  # noqa: PT012 - the kernel may serve some meanwhile
        for _ in range(2000):
            last = engine.submit(long, 0)
    engine.collect(last)
    assert engine.run(TOKENS[:3], 0).candidates


def test_what_was_typed_is_overwritten(backend: CudaBackend) -> None:
    backend.forward(TOKENS, 0)
    first = backend.forward(TOKENS[:3], 0)
    backend.forget()
    assert backend.engine.left
    assert np.array_equal(backend.forward(TOKENS[:3], 0), first)


def test_a_ping_is_answered_in_every_residency(backend: CudaBackend) -> None:
    assert all(backend.engine.ping() > 0 for _ in range(3))
    assert backend.best(TOKENS[:5], 0).candidates


def test_a_lease_ends_by_itself_and_in_time(gpu: SimulatedGpu, model: PackedModel) -> None:
    tuning = Tuning(lease_ms=300, idle_ms=100)
    backend = CudaBackend(model, 64, Path("unused"), residency=Residency.LEASE, tuning=tuning)
    try:
        engine = backend.engine
        first = engine.run(TOKENS[:8], 0)
        launched = len(gpu.launches)
        while not engine.left:  # idle
            time.sleep(0.005)
        assert engine.run(TOKENS[:8], 0).candidates == first.candidates
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:  # kept busy: leaves all the same, and comes back
            assert engine.run(TOKENS[7:8], 7).candidates == first.candidates
        assert len(gpu.launches) >= launched + 3
    finally:
        backend.close()


def test_a_request_begun_late_ends_within_the_lease(gpu: SimulatedGpu, model: PackedModel) -> None:
    lease = 100_000_000_000
    backend = CudaBackend(
        model, 64, Path("unused"), residency=Residency.LEASE, tuning=Tuning(lease_ms=100_000)
    )
    try:
        engine = backend.engine
        longest = engine.run(TOKENS[:9], 0).device_ns
        assert engine.stay_ns == lease - 1_000_000  # launched before anything was known
        for _ in range(3):
            engine.leave()
            spent = engine.run(TOKENS[:2], 0).device_ns
            assert engine.stay_ns == lease - 1_000_000 - longest
            longest = max(longest, spent)
    finally:
        backend.close()


def test_a_lease_shorter_than_a_request_is_still_one(gpu: SimulatedGpu, model: PackedModel) -> None:
    tuning = Tuning(lease_ms=1)
    backend = CudaBackend(model, 64, Path("unused"), residency=Residency.LEASE, tuning=tuning)
    try:
        first = backend.forward(TOKENS[:9], 0)
        assert np.array_equal(backend.forward(TOKENS[:9], 0), first)
        assert backend.engine.stay_ns == 500_000
    finally:
        backend.close()


@pytest.mark.parametrize(("most", "layout"), [(1 << 40, ClusterLayout), (1, PanelLayout)])
def test_large_models_are_for_panels(
    monkeypatch: pytest.MonkeyPatch, most: int, layout: type
) -> None:
    config = tiny_config(heads=(4, 2), head_dim=64, dim=256, ffn=256, layers=1, tied=False)
    for module in (shape, cluster_shape):
        monkeypatch.setattr(module, "LARGE_PARAMETERS", most)
    model = quantise_model(RandomSource(config))
    with simulated_gpu(monkeypatch, model, HOPPER):
        backend = CudaBackend(model, 64, Path("unused"), tuning=Tuning(wait_ms=30_000))
        try:
            assert isinstance(backend.engine.layout, layout)
        finally:
            backend.close()


def test_what_the_chosen_kernel_exchanges_has_to_fit_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(heads=(4, 2), head_dim=64, dim=256, ffn=256, layers=1, tied=False)
    model = quantise_model(RandomSource(config))
    with simulated_gpu(monkeypatch, model, HOPPER) as gpu:
        rest = memory.plan(model, 64, 0).total + memory.DESKTOP_RESERVE
        monkeypatch.setattr(gpu, "cuMemGetInfo", lambda: (CUresult.CUDA_SUCCESS, rest + 1, 8 << 30))
        with pytest.raises(OutOfMemoryError, match="MiB free"):
            CudaBackend(model, 64, Path("unused"), tuning=Tuning(kernel="panel"))


def test_panels_serve_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(heads=(4, 2), head_dim=64, dim=256, ffn=256, layers=1, tied=False)
    model = quantise_model(RandomSource(config))
    tuning = Tuning(kernel="panel", wait_ms=30_000)
    with simulated_gpu(monkeypatch, model, HOPPER) as gpu:
        backend = CudaBackend(model, 64, Path("unused"), tuning=tuning)
        try:
            assert isinstance(backend.engine.layout, PanelLayout)
            whole = backend.forward_all(TOKENS, 0)
            backend.forward(TOKENS[:33], 0)
            assert np.array_equal(backend.forward(TOKENS[33:], 33), whole[-1])
            order = np.argsort(-whole[-1], kind="stable")[:5]
            reply = backend.best(TOKENS[-1:], len(TOKENS) - 1, 5)
            assert [c.token for c in reply.candidates] == [int(t) for t in order]
            assert set(gpu.launches) == {(132, 1)}
        finally:
            backend.close()


def test_resident_is_refused_where_the_driver_ends_long_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = MODELS[ADA]
    with simulated_gpu(monkeypatch, model, watchdog=True):
        with pytest.raises(UnsupportedDeviceError, match="use lease or launch"):
            CudaBackend(model, 64, Path("unused"), residency=Residency.RESIDENT)
        CudaBackend(model, 64, Path("unused"), residency=Residency.LEASE).close()
