# SPDX-License-Identifier: Apache-2.0
"""The torch backend for processors: float32, one KV cache, several candidates at once.

What it computes is written down in engine/reference/backend.py. Shapes: n new tokens, t columns of
the cache, h query heads, k key/value heads, g = h / k, e head_dim.

A row's result must not depend on how many rows were computed with it. float32 rounding through 30
layers alone moves the logits of SmolLM2-135M by 1e-4, so the matrix products are held to shapes for
which the libraries take the same kernel: see engine/cpu/linear.py and the tiles below. Measured with
oneDNN and MKL, incremental and full prefill then mostly give the same bits; on some processors a logit
differs by some millionths of their range (seen: 1.2e-4 on an AMD EPYC).
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
from engine.texts import Text

# Rows of all branches computed at once. Up to about 16 a row costs next to nothing, because the
# time goes into reading the weights; the cache has this many spare rows to hold them.
BRANCH_ROWS = 32
# The attention products are padded to whole tiles: MKL rounds otherwise for other shapes.
ROW_TILE = 16
COLUMN_TILE = 64
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
            _round_up(self._max_context + BRANCH_ROWS, COLUMN_TILE),
            config.head_dim,
        )
        _check_memory(weight_bytes(source) + math.prod(cache_shape) * FLOAT_BYTES)
        self._threads = threads or _usable_threads()
        self._threads_aside = min(self._threads, max(_usable_processors() - 1, 1))
        torch.set_num_threads(self._threads)
        cos, sin = rope_tables(source, self._max_context)
        self._cos = torch.from_numpy(cos.astype(np.float32))  # (max_context, e/2)
        self._sin = torch.from_numpy(sin.astype(np.float32))
        self._weights: Weights | None = load_weights(source)
        self._cache = torch.zeros(cache_shape)
        self._held = 0
        self._written = 0  # columns of the cache that were ever used

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

    def leave_room(self, *, wanted: bool) -> None:
        """As `Backend.leave_room`; no thread less where a processor is free anyway, or there is but one."""
        torch.set_num_threads(self._threads_aside if wanted else self._threads)

    def forget(self) -> None:
        """As `Backend.forget`."""
        self._cache[:, :, :, : self._written].zero_()
        self._held = self._written = 0

    def close(self) -> None:
        """As `Backend.close`."""
        self._weights = None
        self._cache = torch.zeros(0, 2, 0, 0, 0)
        self._held = self._written = 0

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
        self._held = position  # until the rows after it are written
        with torch.inference_mode():
            rows = torch.arange(position, position + n)
            seen = torch.arange(position + n) <= rows[:, None]  # the columns up to a row's own
            x = self._run(weights, tokens, rows, seen)
            self._held = position + n
            return self._logits(weights, x[-1:] if last_only else x)

    def _run_branches(self, branches: Sequence[Sequence[int]], position: int) -> Logits:
        weights = self._check(branches[0], position)
        lengths = torch.tensor([len(branch) for branch in branches])
        ends = lengths.cumsum(0)
        owner = torch.repeat_interleave(torch.arange(len(branches)), lengths)  # (n,)
        index = torch.arange(len(owner))
        rows = position + index - (ends - lengths)[owner]
        own = (owner == owner[:, None]) & (index <= index[:, None])
        past = torch.ones(len(owner), position, dtype=torch.bool)
        tokens = [token for branch in branches for token in branch]
        x = self._run(weights, tokens, rows, torch.cat([past, own], dim=1))
        return self._logits(weights, x[ends - 1])

    def _run(self, weights: Weights, tokens: Sequence[int], rows: Tensor, seen: Tensor) -> Tensor:
        """(n, dim) after the last layer.

        `rows` (n,) are the positions of `tokens`; their keys and values go to the last n of the
        cache columns that `seen` (n, t) speaks of: whether a row looks at a column.
        """
        x = weights.embed[torch.tensor(tokens)]
        cos, sin = self._cos[rows, None], self._sin[rows, None]  # (n, 1, e/2)
        mask = self._mask(seen)
        self._written = max(self._written, seen.shape[1])
        start = seen.shape[1] - len(tokens)
        for layer, cache in zip(weights.layers, self._cache, strict=True):
            h = self._norm(x, layer.attn_norm)
            x = x + layer.out(self._attention(layer, cache, h, start, cos, sin, mask))
            gate, up = layer.gate_up(self._norm(x, layer.ffn_norm)).chunk(2, dim=-1)
            x = x + layer.down(functional.silu(gate) * up)
        return x

    def _mask(self, seen: Tensor) -> Tensor:
        """What to add to the scores of one key/value head, in whole tiles: 0 or minus infinity.

        Row i * n + j is query head i of the group and token j.
        """
        group = self._config.n_heads // self._config.n_kv_heads
        n, t = seen.shape
        mask = torch.zeros(_round_up(group * n, ROW_TILE), _round_up(t, COLUMN_TILE))
        mask[:, t:] = -math.inf
        mask[: group * n, :t].masked_fill_(~seen.repeat(group, 1), -math.inf)
        return mask

    def _attention(
        self,
        layer: Layer,
        cache: Tensor,
        x: Tensor,
        start: int,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor,
    ) -> Tensor:
        """(n, dim) -> (n, h * e). Writes the cache columns start .. start + n."""
        c = self._config
        n, (tile_rows, tile_columns) = len(x), mask.shape
        qkv = layer.qkv(x).view(n, c.n_heads + 2 * c.n_kv_heads, c.head_dim)
        qk, v = qkv[:, : -c.n_kv_heads], qkv[:, -c.n_kv_heads :]
        first, second = qk.chunk(2, dim=-1)
        qk = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
        cache[0, :, start : start + n] = qk[:, c.n_heads :].transpose(0, 1)  # (k, n, e)
        cache[1, :, start : start + n] = v.transpose(0, 1)
        keys, values = cache[:, :, :tile_columns]  # (k, t, e) each
        # (n, h, e) -> (k, g * n, e): one matrix product for each key/value head
        q = qk[:, : c.n_heads].reshape(n, c.n_kv_heads, -1, c.head_dim).permute(1, 2, 0, 3)
        q = q.reshape(c.n_kv_heads, -1, c.head_dim) * c.head_dim**-0.5
        q = functional.pad(q, (0, 0, 0, tile_rows - q.shape[1]))
        scores = (q @ keys.transpose(1, 2)).add_(mask)  # (k, rows, t)
        out: Tensor = scores.softmax(dim=-1) @ values  # (k, rows, e)
        out = out[:, : c.n_heads // c.n_kv_heads * n].reshape(c.n_kv_heads, -1, n, c.head_dim)
        return out.permute(2, 0, 1, 3).reshape(n, -1)

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, weight.shape, weight, self._config.norm_eps)

    def _logits(self, weights: Weights, x: Tensor) -> Logits:
        logits: Logits = weights.head(self._norm(x, weights.final_norm)).numpy()
        return logits


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


def _round_up(count: int, tile: int) -> int:
    return -(-count // tile) * tile


def _usable_processors() -> int:
    if hasattr(psutil.Process, "cpu_affinity"):
        return len(psutil.Process().cpu_affinity())
    return psutil.cpu_count() or 1


def _usable_threads() -> int:
    return min(torch.get_num_threads(), _usable_processors(), MAX_THREADS)


def _check_memory(needed: int) -> None:
    free = psutil.virtual_memory().available
    if needed > free:
        raise OutOfMemoryError(
            Text(
                "the model needs {needed} MiB in float32 with its cache, and {free} MiB are free: "
                "close other programs or take a smaller model or a shorter context",
                needed=needed >> 20,
                free=free >> 20,
            )
        )
