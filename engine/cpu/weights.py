# SPDX-License-Identifier: Apache-2.0
"""A model's tensors, loaded one after the other and joined into as few matrices as possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.cpu.linear import Linear, make_linear, packing_works
from engine.formats.source import ModelSource

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer. q, k and v are one matrix, and so are gate and up: fewer, longer reads."""

    attn_norm: Tensor  # (dim,)
    qkv: Linear  # dim -> (heads + 2 * kv_heads) * head_dim
    out: Linear  # heads * head_dim -> dim
    ffn_norm: Tensor  # (dim,)
    gate_up: Linear  # dim -> 2 * ffn_dim
    down: Linear  # ffn_dim -> dim


@dataclass(frozen=True, slots=True)
class Weights:
    """Every tensor of a model, float32."""

    embed: Tensor  # (vocab, dim)
    layers: tuple[Layer, ...]
    final_norm: Tensor  # (dim,)
    head: Linear  # dim -> vocab


def load_weights(source: ModelSource) -> Weights:
    """Read `source`. Besides the result, at most two copies of one matrix are alive at any time.

    Raises:
        ModelFileError: a tensor is missing or damaged.
    """
    embed = _joined(source, "embed")
    layers = tuple(_load_layer(source, f"layers.{i}") for i in range(source.config.n_layers))
    # Packing a tied head makes a second copy of `embed`: rows cannot be looked up in a packed matrix.
    head = make_linear(embed if source.config.tied_head else _joined(source, "head"))
    return Weights(embed, layers, _joined(source, "final_norm"), head)


def weight_bytes(source: ModelSource) -> int:
    """Memory that `load_weights` will hold."""
    config = source.config
    second_embed = config.tied_head and packing_works()
    return FLOAT_BYTES * (config.parameters + second_embed * config.vocab_size * config.dim)


def _load_layer(source: ModelSource, name: str) -> Layer:
    bias = None
    if source.config.attention_bias:
        bias = _joined(source, f"{name}.bq", f"{name}.bk", f"{name}.bv")
    return Layer(
        attn_norm=_joined(source, f"{name}.attn_norm"),
        qkv=make_linear(_joined(source, f"{name}.wq", f"{name}.wk", f"{name}.wv"), bias),
        out=make_linear(_joined(source, f"{name}.wo")),
        ffn_norm=_joined(source, f"{name}.ffn_norm"),
        gate_up=make_linear(_joined(source, f"{name}.w_gate", f"{name}.w_up")),
        down=make_linear(_joined(source, f"{name}.w_down")),
    )


def _joined(source: ModelSource, *names: str) -> Tensor:
    """The tensors one below the other, as a copy of our own: the source may be unmapped later."""
    parts = [source.tensor(name) for name in names]
    return torch.from_numpy(np.concatenate(parts).astype(np.float32, copy=False))
