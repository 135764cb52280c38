# SPDX-License-Identifier: Apache-2.0
"""Small Llama-family shapes for RandomSource."""

from __future__ import annotations

from engine.config import ModelConfig, RopeLayout
from engine.cuda.random_source import RandomSource

__all__ = ["RandomSource", "tiny_config"]


def tiny_config(
    *,
    heads: tuple[int, int] = (4, 2),
    head_dim: int = 16,
    dim: int = 64,
    ffn: int = 96,
    layers: int = 2,
    vocab: int = 50,
    tied: bool = True,
    bias: bool = False,
    layout: RopeLayout = RopeLayout.HALF_SPLIT,
    context: int = 512,
) -> ModelConfig:
    """A small Llama-family shape."""
    return ModelConfig(
        architecture="llama",
        vocab_size=vocab,
        dim=dim,
        n_layers=layers,
        n_heads=heads[0],
        n_kv_heads=heads[1],
        head_dim=head_dim,
        ffn_dim=ffn,
        context_length=context,
        norm_eps=1e-5,
        rope_theta=10000.0,
        rope_layout=layout,
        tied_head=tied,
        attention_bias=bias,
    )
