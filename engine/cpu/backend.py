# SPDX-License-Identifier: Apache-2.0
"""The torch backend for processors: float32, one KV cache, several candidates at once.

What it computes is written down in engine/reference/backend.py. Shapes: n new tokens, t cached
positions, h query heads, k key/value heads, g = h / k, e head_dim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.nn import functional

from engine.backend import Logits, check_rows
from engine.config import ModelConfig
from engine.cpu.weights import FLOAT_BYTES, Layer, Weights, load_weights, weight_bytes
from engine.errors import BackendClosedError, OutOfMemoryError
from engine.formats.source import ModelSource
from engine.rope import rope_tables

# Rows of all branches computed at once. Up to about 16 a row costs next to nothing, because the
# time goes into reading the weights; the cache has this many spare rows to hold them.
BRANCH_ROWS = 32
# More threads than this only wait for each other: decoding is bound by memory, not by arithmetic.
MAX_THREADS = 8


class CpuBackend:
    """A Backend on the processor.

    `threads` sets torch's thread count for the whole process; None takes the processors this
    process may use, at most MAX_THREADS (OMP_NUM_THREADS is honoured).

    Raises:
        OutOfMemoryError: less free memory than weights and cache need.
        ModelFileError: a tensor is missing or damaged.
    """

    def __init__(
        self, source: ModelSource, max_context: int = 2048, threads: int | None = None
    ) -> None:
        self._config = config = source.config
        self._max_context = min(max_context, config.context_length)
        cache_shape = (
            config.n_layers,
            2,
            config.n_kv_heads,
            self._max_context + BRANCH_ROWS,
            config.head_dim,
        )
        _check_memory(weight_bytes(source) + math.prod(cache_shape) * FLOAT_BYTES)
        torch.set_num_threads(threads or _usable_threads())
        self._weights: Weights | None = load_weights(source)
        cos, sin = rope_tables(source, self._max_context)
        self._cos = torch.from_numpy(cos.astype(np.float32))  # (max_context, e/2)
        self._sin = torch.from_numpy(sin.astype(np.float32))
        self._cache = torch.zeros(cache_shape)
        self._held = 0

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def max_context(self) -> int:
        return self._max_context

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        """As `Backend.forward`."""
        logits: Logits = self._forward(tokens, position, last_only=True)[0]
        return logits

    def forward_all(self, tokens: Sequence[int], position: int) -> Logits:
        """As `Backend.forward_all`."""
        return self._forward(tokens, position, last_only=False)

    def forward_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        """As `Backend.forward_branches`: as many branches at once as BRANCH_ROWS allows."""
        if not branches:
            raise ValueError("no branch to compute")
        for branch in branches:
            self._check(branch, position)
        self._held = position
        with torch.inference_mode():
            groups = [self._run_branches(group, position) for group in _packed(branches)]
        return np.concatenate(groups)

    def close(self) -> None:
        """As `Backend.close`."""
        self._weights = None
        self._cache = torch.zeros(0)
        self._held = 0

    def _check(self, tokens: Sequence[int], position: int) -> Weights:
        if self._weights is None:
            raise BackendClosedError("the CPU backend is closed")
        check_rows(
            tokens,
            position,
            held=self._held,
            max_context=self._max_context,
            vocab_size=self._config.vocab_size,
        )
        return self._weights

    def _forward(self, tokens: Sequence[int], position: int, *, last_only: bool) -> Logits:
        weights = self._check(tokens, position)
        n = len(tokens)
        with torch.inference_mode():
            rows = torch.arange(position, position + n)
            mask = None
            if n > 1:  # a row sees the columns up to its own
                seen = torch.arange(position + n)[None, :] <= rows[:, None]
                mask = _additive(seen)
            x = self._run(weights, tokens, rows, position, mask)
            self._held = position + n
            return self._logits(weights, x[-1:] if last_only else x)

    def _run_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        weights = self._check(branches[0], position)
        lengths = torch.tensor([len(branch) for branch in branches])
        ends = lengths.cumsum(0)
        owner = torch.repeat_interleave(torch.arange(len(branches)), lengths)  # (n,)
        index = torch.arange(len(owner))
        rows = position + index - (ends - lengths)[owner]
        own = (owner[:, None] == owner[None, :]) & (index[None, :] <= index[:, None])
        past = torch.ones(len(owner), position, dtype=torch.bool)
        tokens = [token for branch in branches for token in branch]
        mask = _additive(torch.cat([past, own], dim=1))
        x = self._run(weights, tokens, rows, position, mask)
        return self._logits(weights, x[ends - 1])

    def _run(
        self,
        weights: Weights,
        tokens: Sequence[int],
        rows: Tensor,
        start: int,
        mask: Tensor | None,
    ) -> Tensor:
        """(n, dim) after the last layer. KV goes to cache rows `start ..`; `rows` are positions.

        `mask` (n, start + n) is added to the scores; None for a single row that sees everything.
        """
        x = weights.embed[torch.tensor(tokens)]
        cos, sin = self._cos[rows, None], self._sin[rows, None]  # (n, 1, e/2)
        if mask is not None:  # the g query heads of one key/value head lie one after the other
            mask = mask.repeat(self._config.n_heads // self._config.n_kv_heads, 1)
        for layer, cache in zip(weights.layers, self._cache, strict=True):
            h = self._norm(x, layer.attn_norm)
            x = x + layer.out(self._attention(layer, cache, h, start, cos, sin, mask))
            gate, up = layer.gate_up(self._norm(x, layer.ffn_norm)).chunk(2, dim=-1)
            x = x + layer.down(functional.silu(gate) * up)
        return x

    def _attention(
        self,
        layer: Layer,
        cache: Tensor,
        x: Tensor,
        start: int,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """(n, dim) -> (n, h * e). Writes the cache rows (k, start .. start + n, e)."""
        c = self._config
        n, end = len(x), start + len(x)
        qkv = layer.qkv(x).view(n, c.n_heads + 2 * c.n_kv_heads, c.head_dim)
        qk, v = qkv[:, : -c.n_kv_heads], qkv[:, -c.n_kv_heads :]
        first, second = qk.chunk(2, dim=-1)
        qk = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
        q, k = qk[:, : c.n_heads], qk[:, c.n_heads :]
        keys, values = cache[0, :, :end], cache[1, :, :end]  # (k, t, e)
        keys[:, start:] = k.transpose(0, 1)
        values[:, start:] = v.transpose(0, 1)
        # (n, k * g, e) -> (k, g * n, e): one matrix product for each key/value head
        q = q.reshape(n, c.n_kv_heads, -1, c.head_dim).permute(1, 2, 0, 3)
        q = q.reshape(c.n_kv_heads, -1, c.head_dim) * (c.head_dim**-0.5)
        scores = q @ keys.transpose(1, 2)  # (k, g * n, t)
        if mask is not None:
            scores += mask
        out: Tensor = scores.softmax(dim=-1) @ values  # (k, g * n, e)
        return out.view(c.n_kv_heads, -1, n, c.head_dim).permute(2, 0, 1, 3).reshape(n, -1)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, weight.shape, weight, self._config.norm_eps)

    def _logits(self, weights: Weights, x: Tensor) -> Logits:
        logits: Logits = weights.head(self._norm(x, weights.final_norm)).numpy()
        return logits


def _additive(seen: Tensor) -> Tensor:
    """0 where a row may look, minus infinity elsewhere."""
    return torch.zeros(seen.shape).masked_fill_(~seen, -math.inf)


def _packed(branches: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """Neighbouring branches together, as many as BRANCH_ROWS holds; a longer branch goes alone."""
    group: list[Sequence[int]] = []
    rows = 0
    for branch in branches:
        if group and rows + len(branch) > BRANCH_ROWS:
            yield group
            group, rows = [], 0
        group.append(branch)
        rows += len(branch)
    yield group


def _usable_threads() -> int:
    allowed = len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else 0
    return min(torch.get_num_threads(), allowed or MAX_THREADS, MAX_THREADS)


def _check_memory(needed: int) -> None:
    free = psutil.virtual_memory().available
    if needed > free:
        raise OutOfMemoryError(
            f"the model needs {needed >> 20} MiB in float32 with its cache, and {free >> 20} MiB are free:"
            " close other programs or take a smaller model or a shorter context"
        )
