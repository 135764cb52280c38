# SPDX-License-Identifier: Apache-2.0
"""What `thock bench engine --check` must notice, and the shape of what is timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.backend import Logits
from engine.bench import check, timing
from engine.bench.peer import PeerMissingError, TransformersPeer
from engine.bench.sensors import Gpu, processor
from engine.cpu.backend import CpuBackend
from engine.messages import Device
from engine.reference.backend import ReferenceBackend
from tests.helpers.memory_source import tiny_source

CPU = check.LIMITS[Device.CPU]
TOKENS = [int(t) for t in np.random.default_rng(3).integers(0, 97, timing.PROMPT)]


class Odd(CpuBackend):
    """Wrong in one way: `drift` grows with each call, `batch` with the tokens computed at once."""

    drift = 0.0
    batch = 0.0

    def __init__(self) -> None:
        super().__init__(tiny_source(), 160, threads=1)
        self._calls = 0

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        self._calls += 1
        wrong = self.drift * self._calls + self.batch * len(tokens)
        return super().forward(tokens, position) + np.float32(wrong)


@pytest.fixture
def odd() -> Odd:
    return Odd()


def test_a_right_backend_passes(odd: Odd) -> None:
    assert check.incremental(odd, TOKENS, range(1, 128, 16), CPU)["passed"]
    assert check.repeated(odd, TOKENS, 3)["passed"]
    found = check.against_reference(odd, ReferenceBackend(tiny_source(), 160), TOKENS, CPU)
    assert found["passed"]
    assert found["positions"] == timing.PROMPT
    assert found["same"] + found["near_ties"] == timing.PROMPT


def test_rows_that_depend_on_their_neighbours_are_noticed(odd: Odd) -> None:
    odd.batch = 1e-4
    assert not check.incremental(odd, TOKENS, [100], CPU)["passed"]
    assert check.repeated(odd, TOKENS, 3)["passed"]


def test_other_bits_each_time_are_noticed(odd: Odd) -> None:
    odd.drift = 1e-5
    found = check.repeated(odd, TOKENS, 3)
    assert not found["passed"]
    assert len(found["hashes"]) == 3


def test_another_model_is_noticed(odd: Odd) -> None:
    other = ReferenceBackend(tiny_source(seed=1), 160)
    assert not check.against_reference(odd, other, TOKENS, CPU)["passed"]


def test_near_ties_are_told_from_mistakes() -> None:
    theirs = np.array([[1.0, 0.9999], [1.0, 0.9], [0.0, 1.0]], dtype=np.float32)
    ours = theirs[:, ::-1]
    found = check.compare(ours, theirs, CPU)
    assert (found["same"], found["near_ties"], found["passed"]) == (0, 1, False)
    assert check.compare(theirs, theirs, CPU)["same"] == 3


def test_what_is_timed() -> None:
    asked: list[tuple[int, int]] = []

    def forward(tokens: Sequence[int], position: int) -> None:
        asked.append((len(tokens), position))

    found = timing.requests(forward, TOKENS, 3, Gpu())
    assert list(found) == ["128 -> 1", *(f"+{n}" for n in range(1, 9))]
    assert {length + position for length, position in asked} == {timing.PROMPT}
    assert all(row["runs"] == 3 and row["p50_ms"] <= row["max_ms"] for row in found.values())


def test_times_after_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(timing.time, "sleep", slept.append)
    found: dict[str, Any] = timing.after_rests(lambda tokens, position: None, TOKENS, 3)
    assert list(found) == ["0 ms", "50 ms", "200 ms", "1000 ms"]
    assert set(slept) == {0.0, 0.05, 0.2, 1.0}


def test_the_machine_is_told() -> None:
    told = processor()
    assert told["name"]
    assert told["load_1min"] >= 0


def test_no_peer_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerMissingError, match="cannot load it"):
        TransformersPeer(tmp_path)
