# SPDX-License-Identifier: Apache-2.0
"""Every way in which a GPU can be missing, refuse or fail ends on the CPU, with the reason told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cpu.backend import CpuBackend
from engine.cuda import driver
from engine.cuda.errors import (
    CompileError,
    CudaError,
    DeviceLostError,
    DriverTooOldError,
    KernelTimeoutError,
    NoDeviceError,
    ScheduleError,
    UnsupportedDeviceError,
)
from engine.devices import DEVICES, Devices
from engine.errors import OutOfMemoryError
from engine.messages import (
    Chat,
    Device,
    Failed,
    Forget,
    LoadModel,
    ModelLoaded,
    ReplyFinished,
    ReplyGrew,
    Suggest,
    SuggestionsReady,
    Turn,
)
from engine.runner import ModelRunner
from tests.helpers.engines import Talk, engine_in_thread, supervised
from tests.helpers.fake_cuda import CUresult, DyingBackend, FakeDriver
from tests.helpers.gguf_writer import make_tiny_gguf

LOST = DeviceLostError("cuStreamQuery", "CUDA_ERROR_UNKNOWN", "the GPU context is lost")
DRIVERS: dict[str, tuple[Callable[[], FakeDriver], str]] = {
    "no bindings": (lambda: _raises(NoDeviceError("cuda-python is not installed")), "cuda-python"),
    "no driver": (lambda: FakeDriver({"cuInit": RuntimeError("no libcuda")}), "no usable NVIDIA"),
    "no device": (
        lambda: FakeDriver({"cuInit": CUresult.CUDA_ERROR_NO_DEVICE}),
        "no usable NVIDIA",
    ),
    "mismatch": (
        lambda: FakeDriver({"cuInit": CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH}),
        "DRIVER_MISMATCH",
    ),
    "none of them": (lambda: FakeDriver(count=0), "0 found"),
    "driver too old": (lambda: FakeDriver(version=12020), "needs 12.4: update it"),
    "ampere": (lambda: FakeDriver(capability=(8, 6)), "compute capability 8.6"),
    "no memory for a context": (
        lambda: FakeDriver({"cuDevicePrimaryCtxRetain": CUresult.CUDA_ERROR_OUT_OF_MEMORY}),
        "too little free memory",
    ),
    "no memory for the model": (lambda: FakeDriver(free=100 << 20), "100 MiB free"),
    "after suspend": (
        lambda: FakeDriver({"cuStreamCreate": CUresult.CUDA_ERROR_UNKNOWN}),
        "CUDA_ERROR_UNKNOWN",
    ),
    "other bindings": (
        lambda: FakeDriver({"cuMemGetInfo": AttributeError("no such call")}),
        "AttributeError at",
    ),
}
QUIET = {"no bindings", "no driver", "no device", "mismatch", "none of them", "ampere"}


def _raises(error: Exception) -> FakeDriver:
    raise error


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf").path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def dying(error: Exception, after: int, made: list[DyingBackend]) -> Devices:
    """Devices whose GPU fails at its `after`-th call."""

    def open_gpu(source: object, max_context: int) -> DyingBackend:
        made.append(DyingBackend(source, max_context, error, after))  # type: ignore[arg-type]
        return made[-1]

    return {Device.CPU: DEVICES[Device.CPU], Device.CUDA: open_gpu}


@pytest.mark.skipif(sys.platform != "linux", reason="moves the cache folder by XDG_CACHE_HOME")
@pytest.mark.parametrize("device", [Device.AUTO, Device.CUDA])
@pytest.mark.parametrize("name", DRIVERS)
def test_a_gpu_that_cannot_be_opened(
    model: Path, monkeypatch: pytest.MonkeyPatch, name: str, device: Device
) -> None:
    make, reason = DRIVERS[name]
    monkeypatch.setattr(driver, "load", make)
    runner = ModelRunner.open(str(model), 64, device=device)
    info = runner.info
    assert info.backend == "cpu"
    if device is Device.AUTO and name in QUIET:
        assert info.note == ""
    else:
        assert info.note.startswith("on the CPU: ")
        assert reason in info.note
        assert "\n" not in info.note
    assert runner.suggest("hello ", 3, lambda: False).candidates is not None
    runner.close()


@pytest.mark.parametrize(
    "error",
    [
        NoDeviceError("x"), DriverTooOldError("x"), UnsupportedDeviceError("x"), LOST,
        CudaError("cuMemAlloc", "CUDA_ERROR_INVALID_VALUE"), KernelTimeoutError("x"),
        CompileError("x" * 5000), ScheduleError("x"), OutOfMemoryError("x"),
        ModuleNotFoundError("cuda.bindings.nvrtc"), PermissionError(13, "denied"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_every_error_of_the_opener_ends_on_the_cpu(model: Path, error: Exception) -> None:
    def fail(*_: object) -> CpuBackend:
        raise error

    devices = {Device.CPU: DEVICES[Device.CPU], Device.CUDA: fail}
    runner = ModelRunner.open(str(model), 64, device=Device.CUDA, devices=devices)
    assert runner.info.backend == "cpu"
    assert runner.info.note
    assert len(runner.info.note) < 400
    runner.close()


def test_the_cpu_is_left_alone_when_it_is_chosen(model: Path) -> None:
    made: list[DyingBackend] = []
    devices = dying(LOST, 0, made)
    runner = ModelRunner.open(str(model), 64, device=Device.CPU, devices=devices)
    assert (runner.info.backend, runner.info.note, made) == ("cpu", "", [])
    runner.close()


def suggested(talk: Talk, text: str) -> list[object]:
    """The events of one suggest: perhaps a ModelLoaded, then the answer."""
    talk.send(Suggest(request=talk.number(), text=text))
    events: list[object] = [talk.next()]
    while isinstance(events[-1], ModelLoaded | ReplyGrew):
        events.append(talk.next())
    return events


@pytest.mark.expected_log("the device failed")
@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("error", [LOST, KernelTimeoutError("x"), CudaError("cuLaunch", "X")])
def test_a_gpu_that_is_lost_while_it_computes(model: Path, error: Exception, after: int) -> None:
    made: list[DyingBackend] = []
    devices = dying(error, after, made)

    def load(command: LoadModel) -> ModelRunner:
        return ModelRunner.open(command.path, 64, device=command.device, devices=devices)

    with engine_in_thread(load) as talk:
        loaded = talk.ask(LoadModel(request=9000, path=str(model)))
        assert isinstance(loaded, ModelLoaded)
        assert (loaded.backend, loaded.note) == ("cuda", "")
        told: list[ModelLoaded] = []
        for text in ("hello ", "hello the ", "hello the hello and "):
            *before, answer = suggested(talk, text)
            told += [event for event in before if isinstance(event, ModelLoaded)]
            assert isinstance(answer, SuggestionsReady)
            assert not answer.cancelled
        assert len(told) == 1
        assert told[0].backend == "cpu"
        assert "the GPU failed" in told[0].note
    assert len(made) == 1
    assert made[0].closed


@pytest.mark.expected_log("the device failed")
def test_a_reply_that_was_begun_on_the_gpu_is_not_mixed_with_another(model: Path) -> None:
    devices = dying(LOST, 4, [])

    def load(command: LoadModel) -> ModelRunner:
        return ModelRunner.open(command.path, 64, device=command.device, devices=devices)

    turns = [Turn(role="user", content="hello")]
    with engine_in_thread(load) as talk:
        talk.ask(LoadModel(request=9000, path=str(model)))
        talk.send(Chat(request=1, turns=turns, max_tokens=16))
        events = [talk.next()]
        while not isinstance(events[-1], Failed | ReplyFinished):
            events.append(talk.next())
        assert any(isinstance(event, ReplyGrew) for event in events)
        assert isinstance(events[-1], Failed)
        assert events[-1].code == "cuda-device-lost"
        again = talk.ask(Chat(request=2, turns=turns, max_tokens=4))
        assert isinstance(again, ReplyFinished)


@pytest.mark.expected_log("the device failed")
def test_a_gpu_that_is_lost_when_it_is_to_forget(model: Path) -> None:
    devices = dying(LOST, 0, [])

    def load(command: LoadModel) -> ModelRunner:
        return ModelRunner.open(command.path, 64, device=command.device, devices=devices)

    with engine_in_thread(load) as talk:
        talk.ask(LoadModel(request=9000, path=str(model)))
        talk.send(Forget(request=1))
        assert isinstance(talk.next(), ModelLoaded)
        assert talk.next().type == "forgotten"


@pytest.mark.expected_log("the device failed")
def test_no_cpu_either_is_told_once_and_ends_the_engine(model: Path) -> None:
    def load(command: LoadModel) -> ModelRunner:
        if command.device is Device.CPU:
            raise OutOfMemoryError("not enough for the CPU")
        return ModelRunner.open(command.path, 64, device=command.device, devices=dying(LOST, 0, []))

    with engine_in_thread(load) as talk:
        talk.ask(LoadModel(request=9000, path=str(model)))
        talk.send(Suggest(request=1, text="hello "))
        first, second = talk.next(), talk.next()
        assert isinstance(first, Failed)
        assert isinstance(second, Failed)
        assert (first.request, first.code) == (9000, "out-of-memory")
        assert "the GPU failed" in first.message
        assert (second.request, second.code) == (1, "out-of-memory")


@pytest.mark.expected_log("engine child died")
@pytest.mark.parametrize("kind", ["gpu-kills-loading", "gpu-kills-computing"])
def test_a_driver_that_kills_the_child_gets_one_chance(kind: str) -> None:
    with supervised((sys.executable, "-m", "tests.helpers.odd_engine", kind)) as talk:
        talk.client.start("odd")
        loaded = talk.next()
        while not isinstance(loaded, ModelLoaded) or loaded.backend != "cpu":
            if isinstance(loaded, ModelLoaded):
                talk.send(Forget(request=talk.number()))
            loaded = talk.next()
        assert "the engine died" in loaded.note
