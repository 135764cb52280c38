# SPDX-License-Identifier: Apache-2.0
"""The part of L2 that is kept: clamped to the device, off unless asked for, given back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cuda import l2
from engine.cuda.backend import CudaBackend
from engine.cuda.errors import CudaError
from engine.cuda.layout import Tuning
from engine.fp8.model import quantise_model
from tests.helpers.fake_cuda import CUresult
from tests.helpers.random_source import RandomSource, tiny_config
from tests.helpers.simulated_gpu import simulated_gpu

MODEL = quantise_model(RandomSource(tiny_config(layers=1, tied=False)))
BYTES = st.integers(0, 1 << 40)


@given(BYTES, BYTES, BYTES)
def test_a_window_keeps_to_the_device(nbytes: int, most_set_aside: int, most_window: int) -> None:
    found = l2.window(nbytes, most_set_aside, most_window)
    assert 0 <= found.set_aside <= found.nbytes <= min(nbytes, most_window)
    assert found.set_aside <= most_set_aside
    assert 0 <= found.hit_ratio <= 1
    # What is kept by chance is no more than there is room for.
    assert found.hit_ratio * found.nbytes <= found.set_aside * (1 + 1e-9)


@pytest.mark.parametrize("pin", [False, True])
def test_asked_for_it_is_set_and_given_back(monkeypatch: pytest.MonkeyPatch, pin: bool) -> None:
    with simulated_gpu(monkeypatch, MODEL) as gpu:
        backend = CudaBackend(MODEL, 64, Path("unused"), tuning=Tuning(pin_l2=pin, wait_ms=30_000))
        first = backend.forward([1, 2, 3], 0)
        assert gpu.set_aside == (20_000 if pin else 0)
        assert len(gpu.windows) == pin
        for window in gpu.windows.values():
            assert window.num_bytes == 40_000
            assert window.hitRatio == 0.5
            assert window.base_ptr % 128 == 0
        assert np.array_equal(backend.forward([1, 2, 3], 0), first)
        backend.close()
        backend.close()
        assert gpu.set_aside == 0
        assert not gpu.windows


def test_a_device_without_it_is_left_alone() -> None:
    facts = SimpleNamespace(persisting_l2_bytes=0, l2_window_bytes=1 << 20)
    context: Any = SimpleNamespace(api=None, facts=facts, stream=1)
    assert l2.pin(context, 4096, 1 << 20).set_aside == 0


def test_a_refusal_has_its_type(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulated_gpu(monkeypatch, MODEL) as gpu:
        monkeypatch.setattr(
            gpu, "cuCtxSetLimit", lambda *_: (CUresult.CUDA_ERROR_INVALID_VALUE,), raising=False
        )
        with pytest.raises(CudaError, match="cuCtxSetLimit"):
            CudaBackend(MODEL, 64, Path("unused"), tuning=Tuning(pin_l2=True))


def test_the_bindings_have_every_name_that_is_used() -> None:
    api = pytest.importorskip("cuda.bindings.driver")
    value = api.CUstreamAttrValue()
    policy = value.accessPolicyWindow
    policy.base_ptr, policy.num_bytes, policy.hitRatio = 4096, 512, 0.5
    policy.hitProp = api.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    policy.missProp = api.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    value.accessPolicyWindow = policy
    assert value.accessPolicyWindow.num_bytes == 512
    assert api.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE is not None
    assert api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW is not None
    assert api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE is not None
    for call in (
        "cuCtxSetLimit",
        "cuCtxGetLimit",
        "cuStreamSetAttribute",
        "cuCtxResetPersistingL2Cache",
    ):
        assert callable(getattr(api, call))
