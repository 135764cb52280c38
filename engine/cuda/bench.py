# SPDX-License-Identifier: Apache-2.0
"""Measure the GPU engine: latencies by residency, determinism, and PyTorch FP16 in the same run.

    python -m engine.cuda.bench MODEL --json result.json [--runs 2000] [--repeats 100000]

MODEL is a model file, a folder, or `random:` and smollm2, llama-1b or llama-7b (that shape, random weights).
What takes long is asked for: --repeats (output hashes), --leases (whether each leaves on time), --prefixes.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import importlib
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine.config import ModelConfig
from engine.cuda.backend import CudaBackend
from engine.cuda.engine import Residency
from engine.cuda.layout import Tuning
from engine.cuda.random_source import random_packed
from engine.formats import open_model
from engine.fp8.model import PackedModel, open_cached

PROMPT: Final = 128
SMOLLM2_SHAPE: Final = ModelConfig(
    architecture="llama",
    vocab_size=49152,
    dim=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    head_dim=64,
    ffn_dim=1536,
    context_length=2048,
    norm_eps=1e-5,
    rope_theta=10000.0,
    tied_head=True,
    name="SmolLM2-135M shape, random weights",
)
SHAPES: Final = {
    "smollm2": SMOLLM2_SHAPE,
    "small": replace(
        SMOLLM2_SHAPE, vocab_size=1000, n_layers=1, name="one layer, for compute-sanitizer"
    ),
    "llama-1b": replace(
        SMOLLM2_SHAPE,
        vocab_size=128256,
        dim=2048,
        n_layers=16,
        n_heads=32,
        n_kv_heads=8,
        ffn_dim=8192,
        name="Llama-3.2-1B shape, random weights",
    ),
    "llama-7b": replace(
        SMOLLM2_SHAPE,
        vocab_size=32000,
        dim=4096,
        n_layers=32,
        n_heads=32,
        n_kv_heads=32,
        head_dim=128,
        ffn_dim=11008,
        tied_head=False,
        name="Llama-2-7B shape, random weights",
    ),
}
_WARM: Final = 50  # runs before the first that counts


def percentiles(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Microseconds at 50, 90, 99 and 100 percent."""
    points = np.percentile(np.asarray(nanoseconds, dtype=np.float64) / 1000, [50, 90, 99, 100])
    return dict(zip(("p50", "p90", "p99", "max"), np.round(points, 2).tolist(), strict=True))


def _nvml() -> Any | None:
    try:
        module = importlib.import_module("pynvml")
        module.nvmlInit()
    except Exception:  # noqa: BLE001 - NVML is optional; any failure means "no readings"
        return None
    return module


def _sensors(nvml: Any | None) -> dict[str, float]:
    if nvml is None:
        return {}
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    return {
        "sm_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
        "memory_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
        "watts": nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "celsius": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
    }


def measure(run: Callable[[], int], runs: int) -> dict[str, Any]:
    """Time `run`, which returns the device's own nanoseconds; host time is around the call."""
    host, device = [], []
    warm = min(_WARM, runs)
    for _ in range(runs + warm):
        start = time.perf_counter_ns()
        spent = run()
        host.append(time.perf_counter_ns() - start)
        device.append(spent)
    return {
        "runs": runs,
        "host_us": percentiles(host[warm:]),
        "device_us": percentiles(device[warm:]),
    }


def latencies(backend: CudaBackend, tokens: list[int], runs: int) -> dict[str, Any]:
    """The prompt in one go, then 1, 2, 4, 8 tokens at its end."""
    result = {"128->1": measure(lambda: backend.best(tokens, 0).device_ns, runs)}
    for count in (1, 2, 4, 8):
        at = PROMPT - count
        result[f"+{count}"] = measure(
            lambda at=at: backend.best(tokens[at:], at).device_ns,  # type: ignore[misc]
            runs,
        )
    result["+1 top 8"] = measure(lambda: backend.best(tokens[-1:], PROMPT - 1, 8).device_ns, runs)
    return result


def output_hashes(backend: CudaBackend, tokens: list[int], repeats: int) -> dict[str, Any]:
    """Hash of the whole logits of the prompt, then `repeats` runs of prompt or suffix by reply."""
    logits = hashlib.sha256(backend.forward(tokens, 0).tobytes()).hexdigest()
    seen: dict[str, int] = {}
    for index in range(repeats):
        at = 0 if index % 100 == 0 else PROMPT - 1 - index % 8
        reply = backend.best(tokens[at:], at, 8)
        fields = [(c.token, c.logit, c.log_probability) for c in reply.candidates]
        digest = hashlib.sha256(np.array(fields, dtype=np.float64).tobytes()).hexdigest()[:16]
        seen[digest] = seen.get(digest, 0) + 1
    return {"logits_sha256": logits, "repeats": repeats, "distinct_replies": len(seen)}


def incremental(backend: CudaBackend, tokens: list[int]) -> dict[str, Any]:
    """Whether full prefill and prefix + rest give the same bits, at every prefix length."""
    full = backend.forward(tokens, 0)
    wrong = []
    for prefix in range(1, PROMPT):
        backend.forward(tokens[:prefix], 0)
        if not np.array_equal(backend.forward(tokens[prefix:], prefix), full):
            wrong.append(prefix)
    return {"prefixes": PROMPT - 1, "different": wrong}


def doorbell(backend: CudaBackend, rounds: int) -> dict[str, Any]:
    """Request to answer of a kernel that computes nothing."""
    warm = min(_WARM, rounds)
    times = [backend.engine.ping() for _ in range(rounds + warm)]
    return {"rounds": rounds, "host_us": percentiles(times[warm:])}


def leases(model: PackedModel, kernels: Path, count: int) -> dict[str, Any]:
    """Leases of 20 ms that are kept busy: how long each stayed, from its first request to its end."""
    limit = 20
    tuning = Tuning(lease_ms=limit, idle_ms=5)
    stays, served = [], 0
    backend = CudaBackend(model, 256, kernels, residency=Residency.LEASE, tuning=tuning)
    try:
        engine = backend.engine
        engine.run([1], 0)
        engine.leave()
        for _ in range(count):
            start = time.perf_counter_ns()
            deadline = start + (limit - 3) * 1_000_000
            while time.perf_counter_ns() < deadline:
                engine.run([1], 0)
                served += 1
            while not engine.left:
                pass
            stays.append(time.perf_counter_ns() - start)
    finally:
        backend.close()
    late = sum(stay > (limit + 1) * 1_000_000 for stay in stays)
    return {
        "leases": count,
        "limit_ms": limit,
        "requests": served,
        "stay_us": percentiles(stays),
        "over_limit_by_1_ms": late,
    }


def _model(name: str, cache: Path) -> PackedModel:
    if name.startswith("random:"):
        return random_packed(SHAPES[name.removeprefix("random:")])
    source = open_model(name)
    try:
        return open_cached(source, cache / f"{Path(name).name}.fp8")
    finally:
        source.close()


def bench(
    model: PackedModel, kernels: Path, runs: int, repeats: int, prefixes: bool, tuning: Tuning
) -> dict[str, Any]:
    """All measurements of one model on GPU 0, as a JSON-ready object."""
    nvml = _nvml()
    random = np.random.default_rng(0)
    tokens = [int(t) for t in random.integers(0, model.config.vocab_size, PROMPT)]
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "parameters": model.config.parameters,
        "weights_bytes": model.nbytes,
        "driver_release": nvml.nvmlSystemGetDriverVersion() if nvml is not None else "",
        "sensors_before": _sensors(nvml),
        "residencies": {},
    }
    for residency in Residency:
        backend = CudaBackend(model, 256, kernels, residency=residency, tuning=tuning)
        try:
            facts = backend.facts
            if residency is Residency.RESIDENT and facts.watchdog:
                continue
            result["device"] = facts.name
            result["cuda_of_driver"] = facts.driver
            result["kernel"] = backend.engine.kernel.key
            result["kernel_name"] = backend.engine.layout.name
            part = {
                "latency": latencies(backend, tokens, runs),
                "doorbell": doorbell(backend, runs),
                "sensors": _sensors(nvml),
                "determinism": output_hashes(backend, tokens, repeats),
            }
            if prefixes and residency is Residency.LAUNCH:
                part["incremental"] = incremental(backend, tokens)
            result["residencies"][residency.value] = part
        finally:
            backend.close()
    hashes = {part["determinism"]["logits_sha256"] for part in result["residencies"].values()}
    result["same_logits_in_all_residencies"] = len(hashes) == 1
    result["sensors_after"] = _sensors(nvml)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; prints the JSON and writes it to a file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--kernel", choices=("auto", "grid", "panel"), default="auto")
    parser.add_argument("--wait-ms", type=int, default=1000, help="more under compute-sanitizer")
    parser.add_argument("--leases", type=int, default=0)
    parser.add_argument("--prefixes", action="store_true", help="incremental against full")
    parser.add_argument("--cache", type=Path, default=Path("build") / "fp8")
    parser.add_argument("--commit", default="")
    parser.add_argument("--torch", action="store_true", help="PyTorch FP16 baselines as well")
    options = parser.parse_args(arguments)
    model = _model(options.model, options.cache)
    tuning = Tuning(kernel=options.kernel, wait_ms=options.wait_ms)
    result = bench(model, options.cache, options.runs, options.repeats, options.prefixes, tuning)
    if options.leases:
        result["leases"] = leases(model, options.cache, options.leases)
    result |= {"model": options.model, "commit": options.commit}
    if options.torch:
        baseline = importlib.import_module("engine.cuda.baseline")
        result["torch_fp16"] = baseline.measure(model.config, min(options.runs, 300))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
