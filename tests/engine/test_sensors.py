# SPDX-License-Identifier: Apache-2.0
"""Readings of a GPU through NVML, from a library that is a fake: what it tells, and what it does not."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from engine.bench import timing
from engine.bench.sensors import Gpu


class NVMLError(Exception):
    """As pynvml's own."""


def fake_nvml(missing: frozenset[str] = frozenset(), energy: int = 500) -> Any:
    """A module like pynvml; calls named in `missing` end with NVMLError. Energy grows by `energy` mJ a look."""
    module: Any = ModuleType("pynvml")
    spent = [0]

    def answer(name: str, value: Any) -> Any:
        def call(*_: Any) -> Any:
            if name in missing:
                raise NVMLError(name)
            return value() if callable(value) else value

        return call

    def total() -> int:
        spent[0] += energy
        return spent[0]

    module.NVMLError = NVMLError
    module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU = 1, 2, 0
    for name, value in {
        "nvmlInit": None,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlSystemGetDriverVersion": "580.1",
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetPowerUsage": 95_500,
        "nvmlDeviceGetTemperature": 41,
        "nvmlDeviceGetTotalEnergyConsumption": total,
    }.items():
        setattr(module, name, answer(name, value))
    return module


def gpu_with(monkeypatch: pytest.MonkeyPatch, module: Any) -> Gpu:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return Gpu()


def test_what_a_gpu_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_with(monkeypatch, fake_nvml())
    assert gpu.found
    assert gpu.driver == "580.1"
    assert gpu.read() == {"sm_mhz": 1980, "memory_mhz": 1980, "watts": 95.5, "celsius": 41}
    assert gpu.joules() == 0.5
    assert gpu.joules() == 1.0


@pytest.mark.parametrize(
    ("call", "name"),
    [("nvmlDeviceGetPowerUsage", "watts"), ("nvmlDeviceGetTemperature", "celsius")],
)
def test_what_it_does_not_tell_is_left_out(
    monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    readings = gpu_with(monkeypatch, fake_nvml(frozenset({call}))).read()
    assert name not in readings
    assert len(readings) == 3


def test_energy_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_with(monkeypatch, fake_nvml(frozenset({"nvmlDeviceGetTotalEnergyConsumption"})))
    assert gpu.joules() is None
    rows = timing.requests(lambda tokens, position: None, list(range(128)), 3, gpu)
    assert not any("joules" in row for row in rows.values())


def test_joules_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_with(monkeypatch, fake_nvml(energy=6000))
    rows = timing.requests(lambda tokens, position: None, list(range(128)), 3, gpu)
    assert all(row["joules"] == 2.0 for row in rows.values())  # 6 J over three runs


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetHandleByIndex"])
def test_no_driver_and_no_gpu(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    gpu = gpu_with(monkeypatch, fake_nvml(frozenset({call})))
    assert not gpu.found
    assert gpu.read() == {}
    assert gpu.joules() is None


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert not Gpu().found
