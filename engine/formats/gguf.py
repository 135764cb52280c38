# SPDX-License-Identifier: Apache-2.0
"""Open a GGUF file (architectures llama and qwen2) as a ModelSource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.dequantise import dequantise
from engine.formats.gguf_config import ARCHITECTURES, read_architecture, read_config
from engine.formats.gguf_header import read_header
from engine.formats.gguf_tokenizer import read_tokenizer
from engine.formats.mapped_file import MappedFile
from engine.formats.stored_model import StoredModel, check_tensors
from engine.formats.tensors import StoredTensor

# gguf.constants.TENSOR_NAMES, for the parts of a llama or qwen2 model
_NAMES = {
    "token_embd.weight": "embed",
    "output_norm.weight": "final_norm",
    "output.weight": "head",
    "rope_freqs.weight": "rope_factors",
}
_LAYER_NAMES = {
    "attn_norm.weight": "attn_norm",
    "ffn_norm.weight": "ffn_norm",
    "attn_q.weight": "wq",
    "attn_k.weight": "wk",
    "attn_v.weight": "wv",
    "attn_output.weight": "wo",
    "attn_q.bias": "bq",
    "attn_k.bias": "bk",
    "attn_v.bias": "bv",
    "ffn_gate.weight": "w_gate",
    "ffn_up.weight": "w_up",
    "ffn_down.weight": "w_down",
}
_LAYER = re.compile(r"blk\.(0|[1-9][0-9]{0,4})\.(.+)")


def open_gguf(path: Path) -> StoredModel:
    """Map the file and check its header; weights and tokeniser are read when asked for.

    Raises:
        ModelFileError: the file is damaged; the error names the field.
        UnsupportedModelError: a model that Thock does not compute.
    """
    file = MappedFile(path)
    try:
        header = read_header(file)
        arch = read_architecture(header.metadata)
        config = read_config(header.metadata, header.tensors)
        tensors = _by_our_names(path, header.tensors)
        check_tensors(path, config, tensors, file_name)
        _check_rope_factors(tensors)
    except ModelFileError:
        file.close()
        raise
    return StoredModel(
        path,
        f"GGUF v{header.version}",
        config,
        tensors,
        rope_layout=ARCHITECTURES[arch],
        files=[file],
        read_tokenizer=lambda: read_tokenizer(header.metadata, config.vocab_size),
    )


def file_name(name: str) -> str:
    """Our name of a tensor -> its name in a GGUF file."""
    if not name.startswith("layers."):
        return next(theirs for theirs, ours in _NAMES.items() if ours == name)
    _, layer, part = name.split(".")
    return f"blk.{layer}." + next(t for t, ours in _LAYER_NAMES.items() if ours == part)


def _by_our_names(path: Path, tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """A tensor that we do not know would change the model's output, so it is refused."""
    ours: dict[str, StoredTensor] = {}
    for name, tensor in tensors.items():
        match = _LAYER.fullmatch(name)
        part = _LAYER_NAMES.get(match[2]) if match else _NAMES.get(name)
        if part is None:
            raise UnsupportedModelError(path, tensor.field, "is a part that Thock does not compute")
        ours[f"layers.{match[1]}.{part}" if match else part] = tensor
    return ours


def _check_rope_factors(tensors: Mapping[str, StoredTensor]) -> None:
    """The factors divide frequencies, so none may be zero or negative."""
    tensor = tensors.get("rope_factors")
    if tensor is not None and not (dequantise(tensor) > np.float32(0)).all():
        raise ModelFileError(tensor.file.path, tensor.field, "holds a factor that is not positive")
