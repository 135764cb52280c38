# SPDX-License-Identifier: Apache-2.0
"""The executable specification of a Llama-family decoder: numpy, plain loops, no speed.

Read it from top to bottom to learn what every other backend must compute. Names of shapes:
n new tokens, t cached positions, d dim, h query heads, k key/value heads, g = h / k, e head_dim,
f ffn_dim, v vocabulary.

Sources: Llama 2 (https://arxiv.org/abs/2307.09288), RMSNorm (https://arxiv.org/abs/1910.07467),
RoPE (https://arxiv.org/abs/2104.09864), GQA (https://arxiv.org/abs/2305.13245),
SwiGLU (https://arxiv.org/abs/2002.05202).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from engine.backend import Logits, check_rows
from engine.config import ModelConfig
from engine.errors import BackendClosedError
from engine.formats.source import ModelSource
from engine.rope import ROPE_FACTORS, rope_tables

Array: TypeAlias = NDArray[Any]  # of the chosen dtype


class ReferenceBackend:
    """A Backend in numpy. `dtype` float64 is the yardstick; float32 halves the memory."""

    def __init__(
        self, source: ModelSource, max_context: int = 2048, dtype: DTypeLike = np.float64
    ) -> None:
        self._config = config = source.config
        self._max_context = min(max_context, config.context_length)
        cos, sin = rope_tables(source, self._max_context)
        self._cos, self._sin = cos.astype(dtype), sin.astype(dtype)  # (positions, e/2)
        self._weights = {
            name: source.tensor(name).astype(dtype)
            for name in source.tensor_names()
            if name != ROPE_FACTORS
        }
        cache_shape = (config.n_layers, self._max_context, config.n_kv_heads, config.head_dim)
        self._keys = np.zeros(cache_shape, dtype)
        self._values = np.zeros(cache_shape, dtype)
        self._held = 0

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def max_context(self) -> int:
        return self._max_context

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        """As `Backend.forward`."""
        last: Logits = self.forward_all(tokens, position)[-1]
        return last

    def forward_all(self, tokens: Sequence[int], position: int) -> Logits:
        """As `Backend.forward_all`."""
        self._check(tokens, position)
        w, eps = self._weights, self._config.norm_eps
        self._held = position  # until the rows after it are written
        x = w["embed"][list(tokens)]  # (n, d)
        for i in range(self._config.n_layers):
            x = x + self._attention(i, rms_norm(x, w[f"layers.{i}.attn_norm"], eps), position)
            x = x + self._feed_forward(i, rms_norm(x, w[f"layers.{i}.ffn_norm"], eps))
        self._held = position + len(tokens)
        head = w["embed"] if self._config.tied_head else w["head"]  # (v, d)
        logits = linear(rms_norm(x, w["final_norm"], eps), head)  # (n, v)
        return logits.astype(np.float32)

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        """As `Backend.forward_branches`, and what it means: one `forward` after the other."""
        if not branches:
            raise ValueError("no branch to compute")
        for branch in branches:
            self._check(branch, position)
        logits = [self.forward(branch, position) for branch in branches]
        self._held = position
        return np.stack(logits)

    def leave_room(self, *, wanted: bool) -> None:
        """As `Backend.leave_room`: this one is for tests, and leaves none."""

    def forget(self) -> None:
        """As `Backend.forget`."""
        self._keys.fill(0)
        self._values.fill(0)
        self._held = 0

    def close(self) -> None:
        """As `Backend.close`."""
        self._weights = {}
        self._keys = self._values = np.zeros((0, 0, 0, 0))
        self._held = 0

    def _check(self, tokens: Sequence[int], position: int) -> None:
        if not self._weights:
            raise BackendClosedError("the reference backend is closed")
        check_rows(
            tokens,
            position,
            held=self._held,
            max_context=self._max_context,
            vocab_size=self._config.vocab_size,
        )

    def _attention(self, i: int, x: Array, position: int) -> Array:
        """(n, d) -> (n, d): every new token looks at itself and at all positions before it."""
        c, w = self._config, self._weights
        end = position + len(x)
        q = self._project(i, "q", x).reshape(-1, c.n_heads, c.head_dim)  # (n, h, e)
        k = self._project(i, "k", x).reshape(-1, c.n_kv_heads, c.head_dim)  # (n, k, e)
        v = self._project(i, "v", x).reshape(-1, c.n_kv_heads, c.head_dim)  # (n, k, e)
        cos, sin = self._cos[position:end], self._sin[position:end]  # (n, e/2)
        q = rotate(q, cos, sin)
        self._keys[i, position:end] = rotate(k, cos, sin)
        self._values[i, position:end] = v
        group = c.n_heads // c.n_kv_heads  # query heads that share one key/value head
        out = np.empty_like(q)
        for row in range(len(x)):
            seen = position + row + 1
            for head in range(c.n_heads):
                keys = self._keys[i, :seen, head // group]  # (t, e)
                values = self._values[i, :seen, head // group]  # (t, e)
                weights = softmax(keys @ q[row, head] / np.sqrt(c.head_dim))  # (t,)
                out[row, head] = weights @ values
        return linear(out.reshape(len(x), -1), w[f"layers.{i}.wo"])

    def _project(self, i: int, kind: str, x: Array) -> Array:
        """(n, d) -> (n, heads * e), with a bias where the model has one (Qwen2)."""
        y = linear(x, self._weights[f"layers.{i}.w{kind}"])
        if self._config.attention_bias:
            y += self._weights[f"layers.{i}.b{kind}"]
        return y

    def _feed_forward(self, i: int, x: Array) -> Array:
        """(n, d) -> (n, d): SwiGLU."""
        w = self._weights
        gate = linear(x, w[f"layers.{i}.w_gate"])  # (n, f)
        up = linear(x, w[f"layers.{i}.w_up"])  # (n, f)
        return linear(gate * sigmoid(gate) * up, w[f"layers.{i}.w_down"])


def linear(x: Array, weight: Array) -> Array:
    """(n, in) -> (n, out); matrices are stored (out, in)."""
    y: Array = x @ weight.T
    return y


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Scale each row to a root mean square of 1, then by `weight`."""
    y: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight
    return y


def rotate(x: Array, cos: Array, sin: Array) -> Array:
    """Turn the pairs (i, i + e/2) of x (n, heads, e) by the angle of their position (HALF_SPLIT)."""
    first, second = np.split(x, 2, axis=-1)  # (n, heads, e/2) each
    cos, sin = cos[:, None], sin[:, None]  # the same for every head
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def softmax(scores: Array) -> Array:
    """Of a vector; the largest score is taken out first so that exp cannot overflow."""
    weights = np.exp(scores - scores.max())
    y: Array = weights / weights.sum()
    return y


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), written with tanh because exp(-x) overflows for very negative x."""
    y: Array = 0.5 * (1 + np.tanh(0.5 * x))
    return y
