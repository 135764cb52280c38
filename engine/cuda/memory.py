# SPDX-License-Identifier: Apache-2.0
"""What the engine takes on the device, counted before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.config import ModelConfig
from engine.cuda.shape import MAX_TOKENS
from engine.errors import OutOfMemoryError
from engine.fp8.model import PackedModel
from engine.texts import Text

DESKTOP_RESERVE: Final = 600 << 20  # bytes left for the desktop on the same card


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by purpose."""

    weights: int
    cache: int
    exchange: int
    logits: int
    rope: int

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.exchange + self.logits + self.rope

    def line(self) -> str:
        """MiB by purpose."""
        names = ("weights", "cache", "exchange", "logits", "rope", "total")
        return ", ".join(f"{name} {getattr(self, name) / 2**20:.1f} MiB" for name in names)


def cache_bytes(config: ModelConfig, context: int) -> int:
    """Float16 keys and values of `context` positions."""
    return config.n_layers * config.n_kv_heads * 2 * context * config.head_dim * 2


def exchange_units(config: ModelConfig) -> dict[str, int]:
    """16-byte units (four values) of each exchange buffer."""
    query = config.n_heads * config.head_dim
    kv = config.n_kv_heads * config.head_dim
    return {
        "x_attention": MAX_TOKENS * config.dim // 4,
        "x_ffn": MAX_TOKENS * config.dim // 4,
        "queries": MAX_TOKENS * query // 4,
        "new_kv": config.n_layers * MAX_TOKENS * 2 * kv // 4,
        "mixed": MAX_TOKENS * query // 4,
        "gated": MAX_TOKENS * config.ffn_dim // 4,
        # twelve codes a unit, and one unit for the scale; rows as wide as the widest input
        "codes_shared": 4 * MAX_TOKENS * (-(-max(config.dim, query, config.ffn_dim) // 12) + 1),
    }


def plan(model: PackedModel, context: int, exchange: int) -> MemoryPlan:
    """Memory for `model` with a KV cache of `context` positions; blocks exchange in `exchange` bytes."""
    config = model.config
    return MemoryPlan(
        weights=model.nbytes,
        cache=cache_bytes(config, context),
        exchange=exchange,
        logits=MAX_TOKENS * config.vocab_size * 4,
        rope=context * config.head_dim * 4,
    )


def require(needed: MemoryPlan, free: int, name: str) -> None:
    """Refuse a plan that does not fit beside a desktop.

    Raises:
        OutOfMemoryError: with the table.
    """
    if needed.total + DESKTOP_RESERVE > free:
        raise OutOfMemoryError(
            Text(
                "{name} has {free:.0f} MiB free; the model needs {needed:.0f} MiB, and {desktop_reserve} "
                "MiB stay free for the desktop: use a smaller model or a shorter context",
                name=name,
                free=free / 2**20,
                needed=needed.total / 2**20,
                desktop_reserve=DESKTOP_RESERVE >> 20,
            )
        )
