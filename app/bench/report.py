# SPDX-License-Identifier: Apache-2.0
"""What `thock bench trigger` found, as a table and as JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from app.bench.trigger import Shot
from app.companion.ready import ReadyStats


@dataclass(frozen=True, slots=True)
class Run:
    """All triggers of one typist."""

    words_per_minute: float
    shots: tuple[Shot, ...]
    stats: ReadyStats

    @property
    def hits(self) -> tuple[float, ...]:
        """Seconds of each hit."""
        return tuple(shot.seconds for shot in self.shots if shot.is_hit)

    @property
    def misses(self) -> tuple[float, ...]:
        """Seconds of each miss."""
        return tuple(shot.seconds for shot in self.shots if not shot.is_hit)

    @property
    def from_press(self) -> tuple[float, ...]:
        """Seconds of each hit, with what the simulated keyboard took before its report."""
        return tuple(shot.seconds + shot.keyboard_s for shot in self.shots if shot.is_hit)

    @property
    def ready(self) -> tuple[float, ...]:
        """Seconds from the last key to the reply's first token, where it came before the trigger."""
        return tuple(shot.ready_s for shot in self.shots if not math.isnan(shot.ready_s))

    @property
    def hops(self) -> tuple[float, ...]:
        """Seconds that a bare thread took to wake, where measured."""
        return tuple(shot.hop_s for shot in self.shots if not math.isnan(shot.hop_s))

    @property
    def hit_rate(self) -> float:
        return len(self.hits) / len(self.shots)


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile; NaN without values."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def table(runs: Sequence[Run]) -> list[str]:
    """One line for each typist."""
    lines = [
        "words/min  triggers    hits |  hit: p50    p99    max us (p99 from press) |"
        " miss: p50    max ms | ready after: p50    p90 ms | tokens ahead   wasted | bare thread: p50    p99 us"
    ]
    for run in runs:
        hits = [percentile(run.hits, p) * 1e6 for p in (50, 99, 100)]
        misses = [percentile(run.misses, p) * 1e3 for p in (50, 100)]
        ready = [percentile(run.ready, p) * 1e3 for p in (50, 90)]
        computed, wasted = run.stats.computed, run.stats.wasted
        hops = [percentile(run.hops, p) * 1e6 for p in (50, 99)]
        lines.append(
            f"{run.words_per_minute:9.0f}{len(run.shots):10d}{run.hit_rate:8.1%} |"
            f"{_or_dash(hits[0]):>10}{_or_dash(hits[1]):>7}{_or_dash(hits[2]):>10}"
            f"{_or_dash(percentile(run.from_press, 99) * 1e6):>17} |"
            f"{_or_dash(misses[0]):>10}{_or_dash(misses[1]):>10} |"
            f"{_or_dash(ready[0]):>17}{_or_dash(ready[1]):>10} |"
            f"{computed:13d}{wasted:9d} |"
            f"{_or_dash(hops[0]):>17}{_or_dash(hops[1]):>10}"
        )
    return lines


def document(runs: Sequence[Run], options: Mapping[str, object]) -> dict[str, object]:
    """Everything, with what it was measured on; times in microseconds."""
    return {
        "options": options,
        "machine": {"system": platform.platform(), "processors": os.cpu_count()},
        "runs": [
            {
                "words_per_minute": run.words_per_minute,
                "triggers": len(run.shots),
                "hit_rate": run.hit_rate,
                "hit_us": _percentiles(run.hits),
                "hit_from_press_us": _percentiles(run.from_press),
                "miss_us": _percentiles(run.misses),
                "ready_after_us": _percentiles(run.ready),
                "bare_thread_us": _percentiles(run.hops),
                "ready": asdict(run.stats),
                "shots": [
                    {
                        "gap_ms": shot.gap_s * 1e3,
                        "hit": shot.is_hit,
                        "us": shot.seconds * 1e6,
                        "keyboard_us": shot.keyboard_s * 1e6,
                        "ready_after_ms": None if math.isnan(shot.ready_s) else shot.ready_s * 1e3,
                        "bare_thread_us": None if math.isnan(shot.hop_s) else shot.hop_s * 1e6,
                    }
                    for shot in run.shots
                ],
            }
            for run in runs
        ],
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    return {f"p{p}": percentile(values, p) * 1e6 for p in (50, 90, 99, 100)} if values else {}


def _or_dash(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"
