# SPDX-License-Identifier: Apache-2.0
"""How long requests take: a prompt of 128 tokens to one token, 1 to 8 tokens more, and after a rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from engine.bench.sensors import Gpu

PROMPT: Final = 128
MOST_MORE: Final = 8
GAPS_MS: Final = (0, 50, 200, 1000)
_WARM: Final = 3  # runs before the first that counts


# What is measured: tokens computed at a position, up to the logits of the last one.
Forward: TypeAlias = Callable[[Sequence[int], int], object]


def spread(times_s: Sequence[float]) -> dict[str, float]:
    """Milliseconds at 50, 90 and 100 percent, and how many there are."""
    points = np.percentile(np.asarray(times_s) * 1000.0, [50, 90, 100])
    names = ("p50_ms", "p90_ms", "max_ms")
    return {**dict(zip(names, np.round(points, 4).tolist(), strict=True)), "runs": len(times_s)}


def time_of(run: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def requests(forward: Forward, tokens: Sequence[int], runs: int, gpu: Gpu) -> dict[str, Any]:
    """`128 -> 1` and `+1` to `+8`; with joules a request where the GPU counts them."""
    measured: dict[str, Any] = {}
    for more in (0, *range(1, MOST_MORE + 1)):
        at = PROMPT - more if more else 0
        rest = list(tokens[at:PROMPT])

        def run(rest: list[int] = rest, at: int = at) -> object:
            return forward(rest, at)

        for _ in range(_WARM):
            run()
        before = gpu.joules()
        times = [time_of(run) for _ in range(runs)]
        after = gpu.joules()
        row: dict[str, Any] = spread(times)
        if before is not None and after is not None:
            row["joules"] = round((after - before) / runs, 6)
        measured[f"+{more}" if more else f"{PROMPT} -> 1"] = row
    return measured


def after_rests(forward: Forward, tokens: Sequence[int], runs: int) -> dict[str, Any]:
    """One token more, after nothing was asked for some milliseconds, as between two keys."""
    forward(tokens[:PROMPT], 0)
    measured = {}
    for gap_ms in GAPS_MS:
        times = []
        for _ in range(max(3, runs // (1 + gap_ms // 50))):
            time.sleep(gap_ms / 1000.0)
            times.append(time_of(lambda: forward(tokens[PROMPT - 1 : PROMPT], PROMPT - 1)))
        measured[f"{gap_ms} ms"] = spread(times)
    return measured
