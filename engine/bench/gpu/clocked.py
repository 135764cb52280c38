# SPDX-License-Identifier: Apache-2.0
"""What has a limit in time: the doorbell, leases, and the speed of requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from engine.bench import timing
from engine.bench.gpu import trip
from engine.bench.gpu.run import Run
from engine.cuda import bench
from engine.cuda.backend import CudaBackend
from engine.cuda.driver import Context
from engine.cuda.engine import Residency

DOORBELL_US: Final = 6.0  # resident, p50
# Microseconds at p50 on an H200, by shape: a prompt of 128 tokens, and one token more.
MARKS: Final = {
    "smollm2": {"128->1": 500.0, "+1": 250.0},
    "llama-7b": {"128->1": 4500.0, "+1": 2200.0},
}
_LEAST_LEASES: Final = 1000
_IDLE_LEASES: Final = 20
_POLL_S: Final = 1e-4
_REST_NS: Final = (
    3_000_000  # no request is begun so near the end of a lease: it would begin a new one
)


def doorbell(run: Run) -> dict[str, Any]:
    """Round trips of a request that computes nothing, by residency, and copy + launch + copy beside them."""
    found = {}
    for residency, backend in run.residencies():
        run.say(f"doorbell, {residency.value}")
        found[residency.value] = bench.doorbell(backend, run.runs)
    run.say("copy, launch, copy")
    with Context() as context:
        peer = bench.percentiles(trip.measure(context, run.kernels, run.runs))
    result: dict[str, Any] = {
        "residencies": found,
        "copy_launch_copy_us": peer,
        "limit_us": DOORBELL_US,
    }
    # Where the driver ends long kernels a lease is as far as it goes.
    best = found.get(Residency.RESIDENT.value, found[Residency.LEASE.value])["host_us"]["p50"]
    return result | {"passed": best <= DOORBELL_US and best < peer["p50"]}


def busy_stays(
    backend: CudaBackend, limit_ms: int, count: int, numbers: Callable[[range], Iterable[int]]
) -> tuple[list[int], int]:
    """Nanoseconds of `count` leases kept busy, from the launch until the kernel had left; requests served."""
    engine = backend.engine
    engine.run([1], 0)
    engine.leave()
    stays, served = [], 0
    for _ in numbers(range(count)):
        start = time.perf_counter_ns()
        last = start + max(limit_ms * 1_000_000 - _REST_NS, limit_ms * 500_000)
        engine.run([1], 0)
        served += 1
        while time.perf_counter_ns() < min(last, start + engine.stay_ns - _REST_NS // 3):
            engine.run([1], 0)
            served += 1
        stays.append(_left_after(backend, start))
    return stays, served


def idle_stays(backend: CudaBackend, count: int) -> list[int]:
    """Nanoseconds from the end of the only request of a lease until the kernel had left."""
    stays = []
    for _ in range(count):
        backend.engine.run([1], 0)
        stays.append(_left_after(backend, time.perf_counter_ns()))
    return stays


def _left_after(backend: CudaBackend, start: int) -> int:
    while not backend.engine.left:
        time.sleep(_POLL_S)
    return time.perf_counter_ns() - start


def late(stays: Sequence[int], limit_ms: int) -> int:
    """How many stayed longer than their limit, by the host's clock around launch and end."""
    return sum(stay > limit_ms * 1_000_000 for stay in stays)


def leases(run: Run) -> dict[str, Any]:
    """Leases kept busy to the end, of several limits, and some that nobody uses."""
    result: dict[str, Any] = {"limits": {}}
    for limit, count in run.leases.items():
        backend = run.open(Residency.LEASE, lease_ms=limit, idle_ms=limit)
        try:
            told = partial(run.progress, f"leases of {limit} ms", total=count)
            stays, served = busy_stays(backend, limit, count, told)
        finally:
            backend.close()
        result["limits"][f"{limit} ms"] = {
            "leases": count,
            "requests": served,
            "stay_us": bench.percentiles(stays),
            "over_limit": late(stays, limit),
        }
    backend = run.open(Residency.LEASE)
    try:
        run.say("idle leases")
        idle = idle_stays(backend, _IDLE_LEASES)
    finally:
        backend.close()
    result["idle_150_ms"] = {"leases": _IDLE_LEASES, "stay_us": bench.percentiles(idle)}
    parts = result["limits"].values()
    result["leases"] = sum(part["leases"] for part in parts)
    return result | {
        "passed": result["leases"] >= _LEAST_LEASES and not any(p["over_limit"] for p in parts)
    }


def marks_met(latency: dict[str, Any], marks: dict[str, float]) -> dict[str, Any]:
    """Each mark beside what was measured at p50 around the call."""
    return {
        name: {"us": latency[name]["host_us"]["p50"], "mark_us": mark,
               "met": latency[name]["host_us"]["p50"] <= mark}
        for name, mark in marks.items()
    }  # fmt: skip


def speed(run: Run) -> dict[str, Any]:
    """Requests and rests in each residency, with the marks of the model's shape."""
    tokens = run.prompt()
    parts: dict[str, dict[str, Any]] = {}
    result: dict[str, Any] = {"residencies": parts, "weights_bytes": run.packed().nbytes}
    for residency, backend in run.residencies():
        run.say(f"speed, {residency.value}")
        before = run.gpu.joules()
        started = time.monotonic()
        latency = bench.latencies(backend, tokens, run.runs)
        after, spent = run.gpu.joules(), time.monotonic() - started
        parts[residency.value] = {
            "latency": latency,
            "after_rests": timing.after_rests(backend.best, tokens, max(3, run.runs // 20)),
            "sensors": run.gpu.read(),
        }
        if before is not None and after is not None:
            parts[residency.value]["watts"] = round((after - before) / spent, 1)
        result["kernel"] = run.kernel_of(backend)
    stays = Residency.RESIDENT if Residency.RESIDENT.value in parts else Residency.LEASE
    backend = run.open(stays, pin_l2=True)
    try:
        run.say(f"speed, {stays.value}, L2 kept for cache and exchange")
        result["l2_kept"] = bench.latencies(backend, tokens, run.runs)
    finally:
        backend.close()
    marks = MARKS["llama-7b" if run.packed().config.parameters > 5_000_000_000 else "smollm2"]
    result["marks"] = marks_met(parts[stays.value]["latency"], marks)
    return result | {"passed": all(mark["met"] for mark in result["marks"].values())}
