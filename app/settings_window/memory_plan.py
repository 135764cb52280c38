# SPDX-License-Identifier: Apache-2.0
"""Whether a model fits this computer's memory, from its header alone."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.config import ModelConfig

# The CPU engine keeps weights and cache in float32.
_FLOAT_BYTES = 4
# What the engine child holds beside the model: torch, its threads' buffers, the tokeniser.
_RUNTIME_BYTES = 230_000_000


class Fit(enum.Enum):
    """What the memory allows."""

    FITS = "fits"
    TIGHT = "tight"  # only when other programs are closed
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes that the engine child will hold, beside the bytes of the computer.

    `context` is in tokens: what was asked for, or less if the model was not made for so many.
    """

    parameters: int
    context: int
    weights: int
    cache: int
    free: int
    total: int

    @property
    def needed(self) -> int:
        return self.weights + self.cache + _RUNTIME_BYTES

    @property
    def fit(self) -> Fit:
        if self.needed > self.total:
            return Fit.TOO_LARGE
        return Fit.FITS if self.needed <= self.free else Fit.TIGHT


def plan_for(path: Path, max_context: int) -> MemoryPlan:
    """Read the header of a model.

    Raises:
        EngineError: it is no model that Thock can run; the message says why.
    """
    from engine.formats import open_model  # brings numpy, which the window does not wait for

    model = open_model(path)
    try:
        config = model.config
    finally:
        model.close()
    memory = psutil.virtual_memory()
    return plan_of(config, max_context, memory.available, memory.total)


def plan_of(config: ModelConfig, max_context: int, free: int, total: int) -> MemoryPlan:
    """The plan for a model of this shape; see `engine.cpu` for what it keeps."""
    context = min(max_context, config.context_length)
    # A tied head is packed for its product, and the embedding stays as it is beside it.
    second_embed = config.vocab_size * config.dim if config.tied_head else 0
    row = 2 * config.n_layers * config.n_kv_heads * config.head_dim  # keys and values of a token
    return MemoryPlan(
        parameters=config.parameters,
        context=context,
        weights=(config.parameters + second_embed) * _FLOAT_BYTES,
        cache=row * context * _FLOAT_BYTES,
        free=free,
        total=total,
    )
