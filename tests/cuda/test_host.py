# SPDX-License-Identifier: Apache-2.0
"""What the host shares with the kernel, and what it does where there is no GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.cuda import build, driver, memory, shape
from engine.cuda.backend import CudaBackend
from engine.cuda.errors import CudaError, DeviceLostError, NoDeviceError
from engine.cuda.mailbox import Mailbox, Want
from engine.cuda.params import Params
from engine.errors import EngineError, OutOfMemoryError
from engine.fp8.model import quantise_model
from tests.helpers.random_source import RandomSource, tiny_config


def _constants() -> dict[str, int]:
    text = "\n".join(build.sources().values())
    return {name: int(value) for name, value in re.findall(r"constexpr int (\w+) = (\d+);", text)}


def test_kernel_and_host_agree_on_constants() -> None:
    kernel = _constants()
    for name in ("WARPS", "TILE_TOKENS", "MAX_TOKENS", "MAX_TOP", "MAX_ROWS", "CHUNK"):
        assert kernel[name] == getattr(shape, name), name
    assert kernel["TOKENS_PER_UNIT"] == shape.TOKENS_PER_UNIT
    ops = re.findall(r"OP_(\w+) = (\d)", build.sources()["request.cuh"])
    assert {name: int(value) for name, value in ops} == {op.name: int(op) for op in shape.Op}


def test_kernel_and_host_agree_on_the_parameters() -> None:
    text = build.sources()["request.cuh"]
    body = text[text.index("struct Params {") : text.index("};", text.index("struct Params {"))]
    fields = re.findall(r"^\s+(?:const )?(\w+)(\*?)\s+(\w+)(\[5\])?;", body, re.MULTILINE)
    expected = []
    for kind, pointer, name, many in fields:
        size = 8 if pointer or kind == "u64" else 4
        expected.append((name, size * (5 if many else 1)))
    assert expected == [(name, ctypes.sizeof(kind)) for name, kind in Params._fields_]
    assert ctypes.sizeof(Params) == sum(size for _, size in expected)


def test_slices_cover_every_step_once() -> None:
    for columns in (32, 64, 96, 192, 576, 896, 1536, 2048, 4096, 4864, 8192, 11008):
        for grouping in shape.Grouping:
            config = tiny_config(dim=columns)
            product = shape.product_shape(config, grouping, shape.Op.QKV)
            steps = [s for i in range(product.slices) for s in range(*product.slice_steps(i))]
            assert steps == list(range(product.steps))
            assert product.slices <= shape.WARPS


def _mailbox(ring: int = 4) -> tuple[Mailbox, np.ndarray, np.ndarray]:
    requests = np.zeros(ring * shape.REQUEST_UNITS * 4, dtype=np.uint32)
    replies = np.zeros(ring * shape.REPLY_UNITS * 4, dtype=np.uint32)
    control = np.zeros(4, dtype=np.uint32)
    return Mailbox(requests, replies, control, ring), requests, replies


@pytest.mark.parametrize("count", [1, 2, 3, 4, 127, 128])
def test_a_request_is_whole_units_that_carry_its_number(count: int) -> None:
    mailbox, requests, _ = _mailbox()
    tokens = list(range(1000, 1000 + count))
    mailbox.post(2, tokens, 17, 3, 5, Want.LOGITS)
    slot = requests.reshape(4, shape.REQUEST_UNITS, 4)[2]
    assert slot[0].tolist() == [count | 1 << 16, 17, 3 | 5 << 16, 2]
    units = -(-count // 3)
    assert (slot[1 : units + 1, 3] == 2).all()
    assert slot[1 : units + 1, :3].reshape(-1)[:count].tolist() == tokens
    assert not slot[units + 1 :].any()


def test_a_reply_is_read_when_its_number_is_there() -> None:
    mailbox, _, replies = _mailbox()
    slot = replies.reshape(4, shape.REPLY_UNITS, 4)[1]
    assert not mailbox.answered(5)
    slot[2:4, 0] = 11, 7
    slot[2:4, 1:3] = np.array([[2.5, -0.5], [1.5, -1.5]], dtype=np.float32).view(np.uint32)
    slot[2:4, 3] = 5
    slot[1] = 123, 1, 0, 5
    slot[0] = 3, 2, 0, 5
    assert mailbox.answered(5)
    reply = mailbox.reply(5)
    assert [(c.token, c.logit, c.log_probability) for c in reply.candidates] == [
        (11, 2.5, -0.5),
        (7, 1.5, -1.5),
    ]
    assert reply.device_ns == 123 + (1 << 32)
    assert "11" not in repr(reply)
    mailbox.clear()
    assert not mailbox.answered(5)


@pytest.mark.parametrize(("tokens", "top"), [([], 1), ([1] * 129, 1), ([1], 0), ([1], 17)])
def test_impossible_requests_are_refused(tokens: list[int], top: int) -> None:
    with pytest.raises(ValueError, match="1 to"):
        _mailbox()[0].post(1, tokens, 0, 0, top, Want.TOP)


def test_memory_is_counted_before_it_is_taken() -> None:
    model = quantise_model(RandomSource(tiny_config()))
    plan = memory.plan(model, 128, 12345)
    assert plan.exchange == 12345
    assert plan.total == sum(
        getattr(plan, n) for n in ("weights", "cache", "exchange", "logits", "rope")
    )
    memory.require(plan, plan.total + memory.DESKTOP_RESERVE, "GPU")
    with pytest.raises(OutOfMemoryError, match="MiB free") as caught:
        memory.require(plan, plan.total, "GPU")
    assert f"{plan.total / 2**20:.0f} MiB" in str(caught.value)
    for name in ("weights", "cache", "exchange", "logits", "rope", "total"):
        assert f"{name} {getattr(plan, name) / 2**20:.1f} MiB" in plan.line()


def test_without_cuda_python_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    with pytest.raises(NoDeviceError, match=r"thock\[cuda\]"):
        driver.Context()
    with pytest.raises(NoDeviceError, match=r"thock\[cuda\]"):
        build.compiler_version()


class _FakeDriver:
    """Answers as a driver would that finds no device, or too old a one."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)

    def __init__(self, count: int, version: int) -> None:
        self._count, self._version = count, version

    def cuInit(self, flags: int) -> tuple[int]:
        return (0,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, self._count

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, self._version


@pytest.mark.parametrize(
    ("count", "version", "code"), [(0, 13000, "cuda-no-device"), (1, 11080, "cuda-driver-old")]
)
def test_unusable_machines_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, count: int, version: int, code: str
) -> None:
    monkeypatch.setattr(driver, "load", lambda: _FakeDriver(count, version))
    model = quantise_model(RandomSource(tiny_config()))
    with pytest.raises(EngineError) as caught:
        CudaBackend(model, 64, tmp_path)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CUDA_ERROR_OUT_OF_MEMORY", OutOfMemoryError),
        ("CUDA_ERROR_UNKNOWN", DeviceLostError),
        ("CUDA_ERROR_LAUNCH_TIMEOUT", DeviceLostError),
        ("CUDA_ERROR_INVALID_VALUE", CudaError),
    ],
)
def test_each_driver_error_has_its_type(name: str, kind: type[Exception]) -> None:
    api = SimpleNamespace(CUresult=SimpleNamespace(CUDA_SUCCESS=0))
    result = SimpleNamespace(name=name)
    with pytest.raises(kind) as caught:
        driver.check(api, "cuMemAlloc", (result,))
    assert type(caught.value) is kind
    assert driver.check(api, "x", (0, 5)) == 5
    assert driver.check(api, "x", (0, 5, 6)) == (5, 6)


def test_importing_the_engine_loads_no_cuda_and_no_torch() -> None:
    # In an interpreter of its own: modules that are imported twice in this one would be there twice.
    code = "import sys, engine.cuda.backend; print({'torch', 'cuda'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
