# SPDX-License-Identifier: Apache-2.0
"""A ModelSource of any shape with random weights: measurements and tests that need no model file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig
from engine.cuda.shape import PRODUCTS, Op, product_shape
from engine.formats.source import TokenizerKind, TokenizerSpec
from engine.fp8.model import Matrix, PackedMatrix, PackedModel
from engine.fp8.quantise import Grouping


class RandomSource:
    """Normal weights of a trained model's size; `seed` fixes them."""

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        self.path = Path("random.gguf")
        self.config = config
        self.tokenizer = TokenizerSpec(self.path, TokenizerKind.BPE, config.vocab_size)
        self._seed = seed
        query, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
        dim, ffn = config.dim, config.ffn_dim
        self._shapes: dict[str, tuple[int, ...]] = {
            "embed": (config.vocab_size, dim),
            "final_norm": (dim,),
        }
        if not config.tied_head:
            self._shapes["head"] = (config.vocab_size, dim)
        for layer in range(config.n_layers):
            rows: dict[str, tuple[int, ...]] = {
                "attn_norm": (dim,),
                "ffn_norm": (dim,),
                "wq": (query, dim),
                "wk": (kv, dim),
                "wv": (kv, dim),
                "wo": (dim, query),
                "w_gate": (ffn, dim),
                "w_up": (ffn, dim),
                "w_down": (dim, ffn),
            }
            if config.attention_bias:
                rows |= {"bq": (query,), "bk": (kv,), "bv": (kv,)}
            self._shapes |= {f"layers.{layer}.{name}": shape for name, shape in rows.items()}

    def tensor_names(self) -> Sequence[str]:
        return list(self._shapes)

    def tensor(self, name: str) -> NDArray[np.float32]:
        shape = self._shapes[name]
        place = sum(ord(c) * (i + 1) for i, c in enumerate(name))
        random = np.random.default_rng((self._seed, place))
        values = random.standard_normal(shape).astype(np.float32)
        if name.endswith("norm"):
            return 1.0 + 0.2 * values
        if len(shape) == 1:
            return 0.1 * values
        return values if name == "embed" else values / np.float32(np.sqrt(shape[1]))

    def close(self) -> None:
        """Nothing to close."""


def random_packed(config: ModelConfig, seed: int = 0) -> PackedModel:
    """A packed model of random codes, made in seconds where `quantise_model` would take minutes.

    Codes are uniform, so weights are larger than a trained model's; scales make the products of unit size.
    """
    random = np.random.default_rng(seed)
    # One block over and over: 7 GB of fresh random numbers would take longer than the measurement.
    block = random.integers(0, 1 << 64, 8_388_593, dtype=np.uint64)
    block &= np.uint64(0xBFBFBFBFBFBFBFBF)  # magnitudes below 2: no NaN among them
    matrices = {}
    for op in PRODUCTS:
        shape = product_shape(config, Grouping.CHANNEL, op)
        layers = 1 if op is Op.HEAD else config.n_layers
        codes = np.empty((layers, shape.tiles, shape.steps, 32, 16), dtype=np.uint8)
        flat = codes.reshape(-1).view(np.uint64)
        for start in range(0, flat.size, block.size):
            part = flat[start : start + block.size]
            part[:] = block[: part.size]
        scales = np.full((layers, shape.tiles, 1, 16), shape.columns**-0.5, dtype=np.float32)
        scales.reshape(layers, -1)[:, shape.rows :] = 0
        matrices[Matrix(op.name.lower())] = PackedMatrix(codes, scales)
    embed = random.standard_normal((config.vocab_size, config.dim), dtype=np.float32)
    return PackedModel(
        config=config,
        grouping=Grouping.CHANNEL,
        matrices=matrices,
        embed=embed.astype(np.float16),
        norms=np.ones((config.n_layers, 2, config.dim), dtype=np.float32),
        final_norm=np.ones(config.dim, dtype=np.float32),
        bias=None,
    )
