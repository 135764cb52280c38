# SPDX-License-Identifier: Apache-2.0
"""Whether the numbers are right: step by step as in one go, the same every time, and those of the reference."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.backend import Backend, Logits
from engine.bench.timing import PROMPT
from engine.messages import Device


@dataclass(frozen=True, slots=True)
class Limits:
    """What still passes. `rounding`: difference of logits between two ways of the same device.

    `tie`: how far the reference's logits of the two best tokens may lie apart where the device picks the
    other one. `share`: of positions with the same best token, near ties included.
    """

    rounding: float
    tie: float
    share: float


# The CPU computes in float32 as the reference does. The GPU rounds activations to e4m3, whose noise moves
# logits by tenths; it promises the same bits in every way of its own.
LIMITS: Final = {Device.CPU: Limits(1e-3, 1e-3, 1.0), Device.CUDA: Limits(0.0, 0.5, 0.97)}


def incremental(
    backend: Backend, tokens: Sequence[int], prefixes: Sequence[int], limits: Limits
) -> dict[str, Any]:
    """The last row after `prefix` tokens and the rest, against the row computed in one go."""
    full = backend.forward(tokens[:PROMPT], 0)
    differences = []
    for prefix in prefixes:
        backend.forward(tokens[:prefix], 0)
        last = backend.forward(tokens[prefix:PROMPT], prefix)
        differences.append(float(np.abs(last - full).max()))
    return {
        "prefixes": len(prefixes),
        "same_bits": sum(difference == 0 for difference in differences),
        "largest_difference": max(differences),
        "passed": max(differences) <= limits.rounding,
    }


def repeated(backend: Backend, tokens: Sequence[int], runs: int) -> dict[str, Any]:
    """Hashes of the logits of the prompt, over `runs` runs."""
    seen = {
        hashlib.sha256(backend.forward(tokens[:PROMPT], 0).tobytes()).hexdigest()
        for _ in range(runs)
    }
    return {"runs": runs, "hashes": sorted(seen), "passed": len(seen) == 1}


def against_reference(
    backend: Backend, reference: Backend, tokens: Sequence[int], limits: Limits
) -> dict[str, Any]:
    """The best next token at every position of the prompt, the lowest id on ties."""
    ours = backend.forward_all(tokens[:PROMPT], 0)
    theirs = reference.forward_all(tokens[:PROMPT], 0)
    return compare(ours, theirs, limits)


def compare(ours: Logits, theirs: Logits, limits: Limits) -> dict[str, Any]:
    """Best tokens of two backends, both of shape (positions, vocab_size)."""
    mine, right = ours.argmax(axis=1), theirs.argmax(axis=1)
    rows = np.arange(len(mine))
    apart = theirs[rows, right] - theirs[rows, mine]
    same = mine == right
    explained = ~same & (apart <= limits.tie)
    share = float(np.mean(same | explained))
    return {
        "positions": len(mine),
        "same": int(same.sum()),
        "near_ties": int(explained.sum()),
        "largest_difference": float(np.abs(ours - theirs).max()),
        "passed": share >= limits.share,
    }
