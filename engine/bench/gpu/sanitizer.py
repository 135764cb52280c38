# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over all three kernels on a model of one layer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from engine.bench.gpu.run import Run
from engine.cuda.bench import SHAPES
from engine.cuda.cluster_shape import CLUSTER, fitting_variant
from engine.cuda.shape import WARPS
from engine.fp8.quantise import Grouping

TOOLS: Final = ("memcheck", "synccheck", "racecheck")
KERNELS: Final = ("auto", "grid", "panel")
_PANEL_BARRIERS: Final = 4 * 32 + 2
_LINES: Final = 30  # of a report that are kept
_TIMEOUT_S: Final = 540
_HOPPER_SHARED: Final = 227 << 10


def barriers_of_a_block(kernel: str) -> int:
    """mbarriers in shared memory: racecheck counts too few by itself, because they lie in arrays."""
    if kernel == "panel":
        return _PANEL_BARRIERS
    config = SHAPES["small"]
    variant = fitting_variant(config, Grouping.CHANNEL, "sm_90a", _HOPPER_SHARED, 4 * CLUSTER)
    slots = max(variant.slots) if variant is not None else 0
    return 5 + 2 + 2 + 2 * WARPS * slots


def command(tool: str, kernel: str, out: Path, kernels: Path) -> list[str]:
    """What is started. The kernel waits far longer under a tool than without."""
    argv = ["compute-sanitizer", "--tool", tool, "--print-limit", "20"]
    if tool == "racecheck":
        argv += ["--num-cuda-barriers", str(barriers_of_a_block(kernel))]
    argv += [sys.executable, "-m", "engine.cuda.bench", "random:small", "--kernel", kernel]
    argv += ["--runs", "3", "--repeats", "10", "--wait-ms", "60000"]
    return [*argv, "--json", str(out), "--cache", str(kernels)]


def summary(output: str) -> dict[str, Any]:
    """Errors and warnings of a report, and its first lines.

    "complete" is False where the tool did not reach its last line.
    """
    report = [line for line in output.splitlines() if line.startswith("=========")]
    errors = re.search(r"ERROR SUMMARY: (\d+) error", output)
    hazards = re.search(
        r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warn", output
    )
    found: dict[str, Any] = {"complete": errors is not None or hazards is not None}
    found["errors"] = int(hazards[2]) if hazards else int(errors[1]) if errors else 0
    found["warnings"] = int(hazards[3]) if hazards else 0
    if overflow := re.search(r"Detected overflow of tracked cuda::barrier", output):
        found["note"] = overflow[0]
    if found["errors"] or found["warnings"] or not found["complete"]:
        found["report"] = report[:_LINES]
    return found


def section(run: Run) -> dict[str, Any]:
    """Every tool on the kernel that the device takes by itself, and on the others."""
    if shutil.which("compute-sanitizer") is None:
        return {"missing": "compute-sanitizer is not installed", "passed": False}
    result: dict[str, Any] = {"tools": {}}
    for tool in TOOLS:
        for kernel in KERNELS:
            run.say(f"{tool}, {kernel} kernel")
            argv = command(tool, kernel, run.cache / "sanitizer.json", run.kernels)
            result["tools"][f"{tool}, {kernel}"] = _examine(argv)
    parts = result["tools"].values()
    result["passed"] = all(
        p["complete"] and not p["errors"] and not p["warnings"] and p["exit_code"] == 0
        for p in parts
    )
    return result


def _examine(argv: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {
            "complete": False,
            "errors": 0,
            "warnings": 0,
            "exit_code": -1,
            "report": ["timed out"],
        }
    return summary(done.stdout + done.stderr) | {"exit_code": done.returncode}
