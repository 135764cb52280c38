# SPDX-License-Identifier: Apache-2.0
"""Power, clocks and temperature of the GPU through NVML, and what the machine is."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil


class Gpu:
    """The first GPU as NVML sees it. `found` is False without NVML; all readings are empty then."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self.driver = ""
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._handle = nvml.nvmlDeviceGetHandleByIndex(0)
            self.driver = str(nvml.nvmlSystemGetDriverVersion())
            self._nvml = nvml
        except nvml.NVMLError:
            return  # no driver, or no GPU

    @property
    def found(self) -> bool:
        return self._nvml is not None

    def read(self) -> dict[str, float]:
        """MHz, watts and degrees Celsius of this moment; what the GPU does not tell is left out."""
        nvml = self._nvml
        if nvml is None:
            return {}
        handle = self._handle
        readings: dict[str, Callable[[], float]] = {
            "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        }
        told: dict[str, float] = {}
        for name, read in readings.items():
            try:
                told[name] = read()
            except nvml.NVMLError:
                continue
        return told

    def joules(self) -> float | None:
        """Energy since the driver was loaded; None where it is not counted."""
        if self._nvml is None:
            return None
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except self._nvml.NVMLError:
            return None


def processor() -> dict[str, Any]:
    """The CPU, its present clock, and how busy the machine is with other things."""
    clock = psutil.cpu_freq()
    return {
        "name": _processor_name(),
        "cores": psutil.cpu_count(logical=False),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "mhz": round(clock.current) if clock else None,
        "load_1min": round(psutil.getloadavg()[0], 2),
        "system": platform.platform(),
    }


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
