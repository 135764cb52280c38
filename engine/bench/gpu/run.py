# SPDX-License-Identifier: Apache-2.0
"""What the sections of an acceptance run share: options, the model, progress, and the facts of the machine."""

from __future__ import annotations

import datetime
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from engine.bench.checkout import commit_of_checkout
from engine.bench.sensors import Gpu
from engine.cuda.backend import CudaBackend
from engine.cuda.bench import PROMPT, SHAPES
from engine.cuda.driver import Context
from engine.cuda.engine import Residency
from engine.cuda.layout import Tuning
from engine.cuda.random_source import random_packed
from engine.errors import EngineError
from engine.formats import open_model
from engine.fp8.model import PackedModel, open_cached

_Item = TypeVar("_Item")
_EVERY_S: Final = 5.0


@dataclass
class Run:
    """Options of one acceptance run. `model`: a file, a folder, or `random:` and a name of SHAPES.

    `repeats`: identical runs in each residency. `runs`: times measured of one thing. `leases`: how many of
    each limit, milliseconds. `part`: (which, of how many) of the shapes. `expected`: folder of results that
    were computed before, without a GPU.
    """

    model: str
    kernels: Path
    cache: Path
    expected: Path
    repeats: int = 100_000
    runs: int = 1000
    leases: dict[int, int] = field(default_factory=lambda: {20: 900, 100: 60, 500: 40})
    kernel: str = "auto"
    wait_ms: int = 1000
    text: Path | None = None
    positions: int = 5120
    part: tuple[int, int] = (1, 1)
    gpu: Gpu = field(default_factory=Gpu)
    _packed: PackedModel | None = None
    _ends_long_kernels: bool = False

    def packed(self) -> PackedModel:
        """The model's weights, quantised and packed once.

        Raises:
            ModelFileError, UnsupportedModelError: from reading it.
        """
        if self._packed is None:
            self._packed = self._read()
        return self._packed

    def _read(self) -> PackedModel:
        name = self.model.removeprefix("random:")
        if name != self.model:
            if name not in SHAPES:
                raise EngineError(f"no shape {name}: {', '.join(SHAPES)}")
            return random_packed(SHAPES[name])
        source = open_model(self.model)
        try:
            return open_cached(source, self.cache / f"{Path(self.model).name}.fp8")
        finally:
            source.close()

    def open(self, residency: Residency, **tuning: Any) -> CudaBackend:
        """The model on the GPU.

        Raises: as CudaBackend.
        """
        chosen: dict[str, Any] = {"kernel": self.kernel, "wait_ms": self.wait_ms} | tuning
        return CudaBackend(
            self.packed(), 256, self.kernels, residency=residency, tuning=Tuning(**chosen)
        )

    def residencies(self, **tuning: Any) -> Iterator[tuple[Residency, CudaBackend]]:
        """The model on the GPU in each residency that the driver allows, one after the other."""
        for residency in Residency:
            if residency is Residency.RESIDENT and self._ends_long_kernels:
                continue
            backend = self.open(residency, **tuning)
            try:
                self._ends_long_kernels = backend.facts.watchdog
                yield residency, backend
            finally:
                backend.close()

    def prompt(self) -> list[int]:
        """128 tokens, the same in every run."""
        random = np.random.default_rng(0)
        vocabulary = self.packed().config.vocab_size
        return [int(t) for t in random.integers(0, vocabulary, PROMPT)]

    @staticmethod
    def kernel_of(backend: CudaBackend) -> str:
        """ "cluster", "panel" or "grid"."""
        return backend.engine.layout.name

    def say(self, text: str) -> None:
        """One line of progress, on standard error."""
        print(text, file=sys.stderr, flush=True)

    def progress(
        self, what: str, items: Iterable[_Item], total: int | None = None
    ) -> Iterator[_Item]:
        """`items`, told every few seconds: how many of `total`, how long it took and will take."""
        if total is None:
            listed = list(items)
            items, total = listed, len(listed)
        start = last = time.monotonic()
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - last >= _EVERY_S and done:
                last, spent = now, now - start
                left = spent / done * (total - done)
                self.say(f"{what}: {done} of {total}, {spent:.0f} s, {left:.0f} s to go")
            yield item

    def facts(self, commit: str = "") -> dict[str, Any]:
        """Device, driver, clocks, commit and date: what a number means nothing without."""
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": commit or commit_of_checkout(),
            "python": platform.python_version(),
            "driver": self.gpu.driver,
            "model": self.model if self.model.startswith("random:") else Path(self.model).name,
            **_device_facts(),
        }


def _device_facts() -> dict[str, Any]:
    with Context() as context:
        facts = context.facts
    return {
        "device": facts.name,
        "capability": "{}.{}".format(*facts.capability),
        "cuda_of_driver": facts.driver,
        "multiprocessors": facts.multiprocessors,
        "memory_bytes": facts.total_memory,
        "clock_mhz": facts.clock_khz // 1000,
        "memory_clock_mhz": facts.memory_clock_khz // 1000,
        "watchdog": facts.watchdog,
    }
