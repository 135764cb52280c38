# SPDX-License-Identifier: Apache-2.0
"""Latency figures: collect seconds under a name, print percentiles in a table."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict, deque

_KEEP = 100_000


class LatencyTable:
    """Samples by name, newest `_KEEP` of each. Not thread-safe: one thread records."""

    def __init__(self) -> None:
        self._samples: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_KEEP))

    def record(self, name: str, seconds: float) -> None:
        self._samples[name].append(seconds)

    def count(self, name: str) -> int:
        return len(self._samples.get(name, ()))

    def percentile(self, name: str, percent: float) -> float:
        """Nearest-rank percentile in seconds.

        Raises:
            ValueError: no sample of that name.
        """
        ordered = sorted(self._samples.get(name, ()))
        if not ordered:
            raise ValueError(f"no sample of {name!r}")
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    def rows(self) -> list[str]:
        """The table as aligned text, milliseconds."""
        lines = [f"{'latency (ms)':<34}{'n':>6}{'p50':>9}{'p99':>9}{'max':>9}{'mean':>9}"]
        for name, samples in self._samples.items():
            p50, p99 = self.percentile(name, 50), self.percentile(name, 99)
            numbers = (p50, p99, max(samples), statistics.fmean(samples))
            lines.append(
                f"{name:<34}{len(samples):>6}" + "".join(f"{n * 1e3:>9.2f}" for n in numbers)
            )
        return lines
