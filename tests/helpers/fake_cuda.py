# SPDX-License-Identifier: Apache-2.0
"""A CUDA driver without a GPU: answers like `cuda.bindings.driver` up to the call that is to fail."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from engine.backend import Logits
from engine.cpu.backend import CpuBackend
from engine.formats.source import ModelSource


class CUresult(enum.Enum):
    """The results that tests use, by CUDA's numbers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912
    CUDA_ERROR_UNKNOWN = 999


class Names:
    """Any attribute is its own name: enums whose values do not matter."""

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(name=name, value=0)


class FakeDriver:
    """One device. `failing` maps a call to the result, or the exception, that it ends with."""

    CUresult = CUresult
    CUdevice_attribute = Names()
    CUstream_flags = Names()

    def __init__(
        self,
        failing: dict[str, CUresult | Exception] | None = None,
        *,
        count: int = 1,
        version: int = 13000,
        capability: tuple[int, int] = (8, 9),
        free: int = 8 << 30,
    ) -> None:
        self._failing = failing or {}
        self._values = {
            "cuDeviceGetCount": (count,),
            "cuDriverGetVersion": (version,),
            "cuDeviceGetName": (b"Fake GPU\0",),
            "cuMemGetInfo": (free, 8 << 30),
        }
        self._capability = dict(zip(("MAJOR", "MINOR"), capability, strict=True))

    def __getattr__(self, call: str) -> Any:
        def answer(*arguments: Any) -> tuple[Any, ...]:
            result = self._failing.get(call, CUresult.CUDA_SUCCESS)
            if isinstance(result, Exception):
                raise result
            if call == "cuDeviceGetAttribute":
                last = arguments[0].name.rpartition("_")[2]
                return result, self._capability.get(last, 1)
            return result, *self._values.get(call, (1,))

        return answer


class DyingBackend(CpuBackend):
    """Stands for a GPU: computes, until the `after`-th call ends with `error`; all later ones do too."""

    def __init__(self, source: ModelSource, max_context: int, error: Exception, after: int) -> None:
        super().__init__(source, max_context, threads=1)
        self._error = error
        self._left = after
        self.closed = 0

    def _live(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._error

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        self._live()
        return super().forward(tokens, position)

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        self._live()
        return super().forward_branches(branches, position)

    def forget(self) -> None:
        if self._left <= 0:
            raise self._error
        super().forget()

    def close(self) -> None:
        self.closed += 1
        super().close()
