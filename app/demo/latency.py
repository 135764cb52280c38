# SPDX-License-Identifier: Apache-2.0
"""Latency figures: collect seconds under a name, print percentiles in a table."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict, deque

from app.i18n import Translate, padded, told
from engine.texts import Text

_KEEP = 100_000
_NAME_COLUMNS = 34
# Heads of the columns, and how wide these are; negative: to the right.
_HEADS = (
    (Text("latency (ms)"), _NAME_COLUMNS),
    (Text("n"), -6),
    (Text("p50"), -9),
    (Text("p99"), -9),
    (Text("max"), -9),
    (Text("mean"), -9),
)


class LatencyTable:
    """Samples by name, newest `_KEEP` of each. Not thread-safe: one thread records. A name may be a Text."""

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

    def rows(self, tr: Translate = str) -> list[str]:
        """The table as aligned text in the language of `tr`, milliseconds; the first row names the columns."""
        lines = ["".join(padded(told(tr, head), columns) for head, columns in _HEADS)]
        for name, samples in self._samples.items():
            p50, p99 = self.percentile(name, 50), self.percentile(name, 99)
            numbers = (p50, p99, max(samples), statistics.fmean(samples))
            lines.append(
                f"{padded(told(tr, name), _NAME_COLUMNS)}{len(samples):>6}"
                + "".join(f"{n * 1e3:>9.2f}" for n in numbers)
            )
        return lines
