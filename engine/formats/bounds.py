# SPDX-License-Identifier: Apache-2.0
"""How large the numbers in a model file may be, and how its names are shown in messages.

The bounds are far above any published model. They exist so that a damaged or hostile file is
refused before it costs memory or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.config import ModelConfig
from engine.errors import ModelFileError, UnsupportedModelError
from engine.texts import Text

MAX_DIM = 1 << 17
MAX_LAYERS = 1024
MAX_HEADS = 1024
MAX_HEAD_DIM = 1024
MAX_FFN_DIM = 1 << 20
MAX_VOCAB = 1 << 20
MAX_CONTEXT = 1 << 24
MAX_CHAT_TEMPLATE_BYTES = 1 << 18
MAX_ROPE_THETA = 1e12
MAX_ROPE_FACTOR = 1e4
MAX_NAME_CHARACTERS = 80


def printable(text: str, limit: int = MAX_NAME_CHARACTERS) -> str:
    """`text` from a file, safe to show: control characters escaped, at most `limit` characters."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return safe if len(text) <= limit and len(safe) <= limit else safe[: limit - 3] + "..."


@dataclass(frozen=True, slots=True)
class FieldNames:
    """How one format calls the fields that are checked against each other."""

    heads: str
    kv_heads: str
    head_dim: str


def check_heads(path: Path, config: ModelConfig, fields: FieldNames) -> None:
    """Refuse head counts that no attention layer can have.

    Raises:
        ModelFileError: the query heads do not share the key heads evenly, or head_dim is odd.
        UnsupportedModelError: the head is larger than the engine handles.
    """
    if config.n_heads % config.n_kv_heads:
        raise ModelFileError(
            path,
            fields.kv_heads,
            Text(
                "{n_heads} query heads cannot share {n_kv_heads} key heads evenly",
                n_heads=config.n_heads,
                n_kv_heads=config.n_kv_heads,
            ),
        )
    if config.head_dim % 2:
        raise ModelFileError(
            path,
            fields.head_dim,
            Text("{head_dim} is odd, rotary embedding needs pairs", head_dim=config.head_dim),
        )
    if config.head_dim > MAX_HEAD_DIM:
        raise UnsupportedModelError(
            path,
            fields.head_dim,
            Text(
                "{head_dim} is more than {max_head_dim}",
                head_dim=config.head_dim,
                max_head_dim=MAX_HEAD_DIM,
            ),
        )
