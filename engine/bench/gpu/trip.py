# SPDX-License-Identifier: Apache-2.0
"""What a doorbell replaces: 128 tokens copied in, a kernel launched, a word copied out, by the driver."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.cuda import build
from engine.cuda.driver import Context, check

_WORDS: Final = 128
_THREADS: Final = 128
_WARM: Final = 50


@dataclass(frozen=True, slots=True)
class TripVariant:
    """The kernel that does nearly nothing."""

    arch: str
    main = "trip.cu"
    kernel = "thock_trip"

    def defines(self) -> dict[str, str]:
        return {}


def measure(context: Context, kernels: Path, rounds: int) -> list[int]:
    """Host nanoseconds of each round trip: copy, launch, copy, wait.

    Raises:
        CompileError, CudaError.
    """
    variant = TripVariant(context.facts.arch)
    function = context.load_kernel(build.cached_kernel(variant, kernels).cubin, variant.kernel, 0)
    api, stream = context.api, context.stream
    host, _ = context.allocate_shared_with_host(_WORDS)
    device = context.allocate(_WORDS * 4)
    word = ctypes.c_uint64(device)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(word))
    arguments, source = ctypes.addressof(pointers), host.ctypes.data

    def calls() -> tuple[tuple[int, ...], ...]:
        return (
            api.cuMemcpyHtoDAsync(device, source, _WORDS * 4, stream),
            api.cuLaunchKernel(function, 1, 1, 1, _THREADS, 1, 1, 0, stream, arguments, 0),
            api.cuMemcpyDtoHAsync(source, device, 4, stream),
            api.cuStreamSynchronize(stream),
        )

    times = []
    for _ in range(rounds + _WARM):
        start = time.perf_counter_ns()
        answers = calls()
        times.append(time.perf_counter_ns() - start)
        for answer in answers:
            check(api, "copy, launch, copy", answer)
    return times[_WARM:]
