# SPDX-License-Identifier: Apache-2.0
"""A ModelSource that holds random weights in memory: no file, no tokeniser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeScaling
from engine.errors import ModelFileError
from engine.formats.source import TokenizerKind, TokenizerSpec
from tests.helpers.tiny_model import Weights, tiny_config, tiny_weights


class MemorySource:
    """Weights by our own tensor names."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self._config = config
        self._weights = weights

    @property
    def path(self) -> Path:
        return Path("memory")

    @property
    def config(self) -> ModelConfig:
        return self._config

    @property
    def tokenizer(self) -> TokenizerSpec:
        return TokenizerSpec(self.path, TokenizerKind.BPE, self._config.vocab_size)

    def tensor_names(self) -> Sequence[str]:
        return list(self._weights)

    def tensor(self, name: str) -> NDArray[np.float32]:
        if name not in self._weights:
            raise ModelFileError(self.path, f"tensor {name}", "missing")
        read_only = self._weights[name].view()
        read_only.flags.writeable = False  # as a memory-mapped file would hand it out
        return read_only

    def close(self) -> None:
        self._weights = {}


def tiny_source(
    *,
    heads: tuple[int, int] = (4, 2),
    head_dim: int = 16,
    dim: int = 64,
    ffn_dim: int = 96,
    n_layers: int = 2,
    vocab_size: int = 97,
    context: int = 160,
    tied: bool = False,
    bias: bool = False,
    rope_scaling: RopeScaling | None = None,
    frequency_divisors: bool = False,
    seed: int = 0,
) -> MemorySource:
    """A random model; `heads` is (query heads, key/value heads).

    With `frequency_divisors` the source carries a `rope_factors` tensor, as GGUF files of Llama 3.1 do,
    in place of the scaling rule.
    """
    config = tiny_config(
        "llama",
        vocab_size,
        dim=dim,
        n_layers=n_layers,
        n_heads=heads[0],
        n_kv_heads=heads[1],
        head_dim=head_dim,
        ffn_dim=ffn_dim,
        tied=tied,
        bias=bias,
        rope_scaling=rope_scaling,
        context=context,
    )
    weights = tiny_weights(config, seed)
    if frequency_divisors:
        config = replace(config, rope_scaling=RopeScaling())
    else:
        weights.pop("rope_factors", None)
    return MemorySource(config, weights)
