# SPDX-License-Identifier: Apache-2.0
"""The shape of a Llama-family decoder, as read from a GGUF header or a config.json."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class RopeLayout(enum.Enum):
    """How the rows of W_q and W_k pair up for rotary embedding.

    INTERLEAVED: rows (2i, 2i+1) rotate together (GGUF `llama`).
    HALF_SPLIT: rows (i, i + head_dim/2) rotate together (Hugging Face, GGUF `qwen2`).
    """

    INTERLEAVED = "interleaved"
    HALF_SPLIT = "half-split"


class RopeScalingKind(enum.Enum):
    """Which formula stretches the rotary frequencies."""

    NONE = "none"
    LINEAR = "linear"
    LLAMA3 = "llama3"


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Rotary frequency scaling. The three last fields are used by LLAMA3 only."""

    kind: RopeScalingKind = RopeScalingKind.NONE
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shapes and constants of one model. Every count is positive and checked by the reader.

    `n_heads % n_kv_heads == 0`; `head_dim` is even. `rope_layout` describes the tensors as the
    model source hands them out (each reader normalises to HALF_SPLIT).
    """

    architecture: str
    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    context_length: int
    norm_eps: float
    rope_theta: float
    rope_layout: RopeLayout = RopeLayout.HALF_SPLIT
    rope_scaling: RopeScaling = RopeScaling()
    tied_head: bool = False
    attention_bias: bool = False
    name: str = ""

    @property
    def parameters(self) -> int:
        """Number of weights, counting a tied head once."""
        q = self.n_heads * self.head_dim
        kv = self.n_kv_heads * self.head_dim
        attention = self.dim * q * 2 + self.dim * kv * 2 + (q + 2 * kv) * self.attention_bias
        layer = attention + 3 * self.dim * self.ffn_dim + 2 * self.dim
        heads = 1 if self.tied_head else 2
        return self.n_layers * layer + heads * self.vocab_size * self.dim + self.dim
