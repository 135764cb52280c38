# SPDX-License-Identifier: Apache-2.0
"""PyTorch FP16 on the same GPU: the same shape with random weights, eager and as a CUDA graph."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np

from engine.config import ModelConfig


class _Decoder:
    """A static-cache Llama decoder in plain torch FP16; `step` computes `tokens` at `position`."""

    def __init__(self, torch: Any, config: ModelConfig, context: int) -> None:
        self._torch, self._config = torch, config

        def weight(*shape: int) -> Any:
            return torch.randn(*shape, device="cuda", dtype=torch.float16) * shape[-1] ** -0.5

        c = config
        query, kv = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim
        self._embed = weight(c.vocab_size, c.dim)
        self._head = self._embed if c.tied_head else weight(c.vocab_size, c.dim)
        self._norm = torch.ones(c.dim, device="cuda", dtype=torch.float16)
        self._layers = [
            (
                weight(query + 2 * kv, c.dim),
                weight(c.dim, query),
                weight(2 * c.ffn_dim, c.dim),
                weight(c.dim, c.ffn_dim),
            )
            for _ in range(c.n_layers)
        ]
        shape = (c.n_layers, 2, c.n_kv_heads, context, c.head_dim)
        self._cache = torch.zeros(shape, device="cuda", dtype=torch.float16)
        angles = torch.arange(context, device="cuda")[:, None] * c.rope_theta ** (
            -torch.arange(0, c.head_dim, 2, device="cuda") / c.head_dim
        )
        self._cos = angles.cos().half().repeat(1, 2)
        self._sin = angles.sin().half().repeat(1, 2)

    def _rotate(self, x: Any, position: int) -> Any:
        count, half = x.shape[0], self._config.head_dim // 2
        cos = self._cos[position : position + count, None]
        sin = self._sin[position : position + count, None]
        turned = self._torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * cos + turned * sin

    def step(self, tokens: Any, position: int) -> Any:
        """Id of the next token."""
        c, functional = self._config, self._torch.nn.functional
        count = tokens.shape[0]
        end = position + count
        query = c.n_heads * c.head_dim
        kv = c.n_kv_heads * c.head_dim
        mask = self._torch.ones(count, end, device="cuda", dtype=self._torch.bool).tril(position)
        x = self._embed[tokens]
        for layer, (qkv, out, gate_up, down) in enumerate(self._layers):
            h = functional.rms_norm(x, (c.dim,), self._norm, c.norm_eps)
            q, k, v = functional.linear(h, qkv).split((query, kv, kv), dim=-1)
            q = self._rotate(q.view(count, c.n_heads, c.head_dim), position)
            k = self._rotate(k.view(count, c.n_kv_heads, c.head_dim), position)
            v = v.view(count, c.n_kv_heads, c.head_dim)
            self._cache[layer, 0, :, position:end] = k.transpose(0, 1)
            self._cache[layer, 1, :, position:end] = v.transpose(0, 1)
            keys, values = self._cache[layer, :, :, :end]
            mixed = functional.scaled_dot_product_attention(
                q.transpose(0, 1)[None],
                keys[None],
                values[None],
                attn_mask=mask,
                enable_gqa=True,
            )
            x = x + functional.linear(mixed[0].transpose(0, 1).reshape(count, query), out)
            h = functional.rms_norm(x, (c.dim,), self._norm, c.norm_eps)
            gate, up = functional.linear(h, gate_up).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, down)
        last = functional.rms_norm(x[-1:], (c.dim,), self._norm, c.norm_eps)
        return functional.linear(last, self._head).argmax(dim=-1)


def _median_us(torch: Any, run: Any, runs: int) -> dict[str, float]:
    times = []
    for _ in range(runs + 20):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - start) / 1000)
    points = np.percentile(times[20:], [50, 99])
    return {"p50": round(float(points[0]), 1), "p99": round(float(points[1]), 1)}


def _round_trip(torch: Any) -> Any:
    """128 tokens to the device, one small kernel, one word back: what a doorbell replaces."""
    tokens = torch.zeros(128, dtype=torch.int32, pin_memory=True)
    answer = torch.zeros(1, dtype=torch.int32, pin_memory=True)
    there = torch.zeros(128, dtype=torch.int32, device="cuda")

    def run() -> None:
        there.copy_(tokens, non_blocking=True)
        there.add_(1)
        answer.copy_(there[:1], non_blocking=True)

    return run


def measure(config: ModelConfig, runs: int) -> dict[str, Any]:
    """Host microseconds of 128 -> 1 and of one more token, eager and as a CUDA graph."""
    torch = importlib.import_module("torch")
    result: dict[str, Any] = {"torch": torch.__version__, "runs": runs}
    with torch.inference_mode():
        decoder = _Decoder(torch, config, 256)
        for name, count, position in (("128->1", 128, 0), ("+1", 1, 127)):
            tokens = torch.randint(0, config.vocab_size, (count,), device="cuda")

            def run(tokens: Any = tokens, position: int = position) -> Any:
                return decoder.step(tokens, position)

            eager = _median_us(torch, run, max(20, runs // 5))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            result[name] = {"eager_us": eager, "graph_us": _median_us(torch, graph.replay, runs)}
        result["copy, launch, copy"] = _median_us(torch, _round_trip(torch), max(runs, 1000))
    return result
