# SPDX-License-Identifier: Apache-2.0
"""Which tensors a model must have, and an open model that hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeLayout
from engine.errors import ModelFileError
from engine.formats.dequantise import dequantise, read_blocks
from engine.formats.mapped_file import MappedFile
from engine.formats.source import TokenizerSpec
from engine.formats.tensors import StoredTensor
from engine.texts import Text


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Our name and shape of every tensor that a model of this config has (`source` lists them)."""
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (config.vocab_size, config.dim),
        "final_norm": (config.dim,),
    }
    if not config.tied_head:
        shapes["head"] = (config.vocab_size, config.dim)
    for i in range(config.n_layers):
        layer = f"layers.{i}."
        shapes[layer + "attn_norm"] = (config.dim,)
        shapes[layer + "ffn_norm"] = (config.dim,)
        shapes[layer + "wq"] = (q, config.dim)
        shapes[layer + "wk"] = (kv, config.dim)
        shapes[layer + "wv"] = (kv, config.dim)
        shapes[layer + "wo"] = (config.dim, q)
        if config.attention_bias:
            shapes[layer + "bq"] = (q,)
            shapes[layer + "bk"] = (kv,)
            shapes[layer + "bv"] = (kv,)
        shapes[layer + "w_gate"] = (config.ffn_dim, config.dim)
        shapes[layer + "w_up"] = (config.ffn_dim, config.dim)
        shapes[layer + "w_down"] = (config.dim, config.ffn_dim)
    return shapes


def check_tensors(
    path: Path,
    config: ModelConfig,
    tensors: Mapping[str, StoredTensor],
    file_name: Callable[[str], str],
) -> None:
    """Compare what the file has with what its config asks for. `file_name` maps our names back.

    Raises:
        ModelFileError: a tensor is missing, has another shape, or belongs to no part of the model.
    """
    shapes = tensor_shapes(config)
    if "rope_factors" in tensors:
        shapes["rope_factors"] = (config.head_dim // 2,)
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None:
            raise ModelFileError(path, Text("tensor {name}", name=file_name(name)), "is missing")
        if tensor.shape != shape:
            raise ModelFileError(
                tensor.file.path,
                tensor.field,
                Text(
                    "has shape {shape}, the model's settings ask for {shape2}",
                    shape=tensor.shape,
                    shape2=shape,
                ),
            )
    for name, tensor in tensors.items():
        if name not in shapes:  # a layer too many, or a bias that the other layers lack
            reason = "is not part of the model that the settings describe"
            raise ModelFileError(tensor.file.path, tensor.field, reason)


class StoredModel:
    """An open model of any format: a ModelSource over memory-mapped files."""

    def __init__(
        self,
        path: Path,
        format_name: str,
        config: ModelConfig,
        tensors: Mapping[str, StoredTensor],
        *,
        rope_layout: RopeLayout,
        files: Iterable[MappedFile],
        read_tokenizer: Callable[[], TokenizerSpec],
    ) -> None:
        """`tensors` by our names; `rope_layout` is the row order in the file.

        `read_tokenizer` runs when the tokeniser is first asked for.
        """
        self.path = path
        self.format_name = format_name
        self.config = config
        self._tensors = dict(tensors)
        self._files = tuple(files)
        self._read_tokenizer = read_tokenizer
        self._interleaved_heads: dict[str, int] = {}
        if rope_layout is RopeLayout.INTERLEAVED:
            query, key = config.n_heads, config.n_kv_heads
            self._interleaved_heads = {"wq": query, "bq": query, "wk": key, "bk": key}

    @cached_property
    def tokenizer(self) -> TokenizerSpec:
        """Raises ModelFileError if the tokeniser in the file is damaged or of an unknown kind."""
        return self._read_tokenizer()

    def tensor_names(self) -> Sequence[str]:
        return list(self._tensors)

    def stored(self, name: str) -> StoredTensor:
        """Where and how a tensor is stored.

        Raises:
            ModelFileError: there is no such tensor.
        """
        try:
            return self._tensors[name]
        except KeyError:
            raise ModelFileError(
                self.path, Text("tensor {name}", name=name), "is not in the file"
            ) from None

    @property
    def file_bytes(self) -> int:
        """Bytes of all files that hold weights."""
        return sum(file.size for file in self._files)

    @property
    def stored_bytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(tensor.size for tensor in self._tensors.values())

    def tensor(self, name: str) -> NDArray[np.float32]:
        values = dequantise(self.stored(name))
        heads = self._interleaved_heads.get(name.rsplit(".", 1)[-1])
        return values if heads is None else _half_split(values, heads)

    def scan(self, name: str) -> bool:
        """Read a tensor without converting it; False if every byte is zero (a hole in the file).

        Raises:
            ModelFileError: cut short, or a NaN or infinity.
        """
        seen = [bool(blocks.any()) for blocks in read_blocks(self.stored(name))]  # to the end
        return any(seen)

    def close(self) -> None:
        for file in self._files:
            file.close()


def _half_split(rows: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """INTERLEAVED -> HALF_SPLIT: the inverse of `permute` in convert_hf_to_gguf.py of llama.cpp."""
    pairs = rows.reshape(n_heads, rows.shape[0] // n_heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
