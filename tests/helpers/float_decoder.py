# SPDX-License-Identifier: Apache-2.0
"""A Llama-family decoder written from the paper in float64, with the weights that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeLayout
from engine.fp8.quantise import Grouping, quantise
from tests.helpers.random_source import RandomSource

Array = NDArray[np.float64]


def _norm(x: Array, weight: Array, epsilon: float) -> Array:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * weight


def _rotate(x: Array, config: ModelConfig) -> Array:
    """x (tokens, heads, head_dim), positions from 0."""
    half = config.head_dim // 2
    angle = np.outer(
        np.arange(x.shape[0]), config.rope_theta ** (-np.arange(half) * 2 / config.head_dim)
    )[:, None, :]
    out = np.empty_like(x)
    if config.rope_layout is RopeLayout.HALF_SPLIT:
        a, b = np.s_[..., :half], np.s_[..., half:]
    else:
        a, b = np.s_[..., 0::2], np.s_[..., 1::2]
    out[a] = x[a] * np.cos(angle) - x[b] * np.sin(angle)
    out[b] = x[b] * np.cos(angle) + x[a] * np.sin(angle)
    return out


def logits(
    config: ModelConfig, tensor: Callable[[str], NDArray[np.float32]], tokens: Sequence[int]
) -> Array:
    """Logits of every token, (tokens, vocab)."""

    def get(name: str) -> Array:
        return tensor(name).astype(np.float64)

    count = len(tokens)
    x = get("embed")[list(tokens)]
    mask = np.triu(np.full((count, count), -np.inf), 1)
    repeat = config.n_heads // config.n_kv_heads
    for layer in range(config.n_layers):
        at = f"layers.{layer}."
        h = _norm(x, get(at + "attn_norm"), config.norm_eps)
        parts = [h @ get(at + w).T for w in ("wq", "wk", "wv")]
        if config.attention_bias:
            parts = [p + get(at + b) for p, b in zip(parts, ("bq", "bk", "bv"), strict=True)]
        q, k, v = (p.reshape(count, -1, config.head_dim) for p in parts)
        q, k = _rotate(q, config), _rotate(k, config)
        k, v = np.repeat(k, repeat, axis=1), np.repeat(v, repeat, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(config.head_dim) + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", weights, v).reshape(count, -1) @ get(at + "wo").T
        h = _norm(x, get(at + "ffn_norm"), config.norm_eps)
        gate, up = h @ get(at + "w_gate").T, h @ get(at + "w_up").T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ get(at + "w_down").T
    head = get("embed" if config.tied_head else "head")
    result: Array = _norm(x, get("final_norm"), config.norm_eps) @ head.T
    return result


def packed_weights(
    source: RandomSource, grouping: Grouping = Grouping.CHANNEL
) -> Callable[[str], NDArray[np.float32]]:
    """The tensors of `source` as the GPU engine keeps them: what `quantise_model` makes of them."""

    def tensor(name: str) -> NDArray[np.float32]:
        values = source.tensor(name)
        if values.ndim == 1:
            return values
        if name != "embed":
            return quantise(values, grouping).dequantise()
        return values if source.config.tied_head else values.astype(np.float16).astype(np.float32)

    return tensor
