# SPDX-License-Identifier: Apache-2.0
"""Write a tiny but complete GGUF file with random weights. For a folder, see `hf_writer`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeScaling, RopeScalingKind
from tests.helpers.hf_writer import make_tiny_hf
from tests.helpers.tiny_model import (
    BOS,
    CHAT_TEMPLATE,
    EOS,
    SPECIAL_TOKENS,
    TinyModel,
    bpe_vocabulary,
    encode,
    sentencepiece_vocabulary,
    tiny_config,
    tiny_weights,
)

__all__ = ["QUANTS", "gguf_name", "interleave", "make_tiny_gguf", "make_tiny_hf"]

QUANTS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")

_GGUF_NAMES = {
    "embed": "token_embd.weight",
    "final_norm": "output_norm.weight",
    "head": "output.weight",
    "rope_factors": "rope_freqs.weight",
}
_GGUF_LAYER_NAMES = {
    "attn_norm": "attn_norm.weight",
    "ffn_norm": "ffn_norm.weight",
    "wq": "attn_q.weight",
    "wk": "attn_k.weight",
    "wv": "attn_v.weight",
    "wo": "attn_output.weight",
    "bq": "attn_q.bias",
    "bk": "attn_k.bias",
    "bv": "attn_v.bias",
    "w_gate": "ffn_gate.weight",
    "w_up": "ffn_up.weight",
    "w_down": "ffn_down.weight",
}


def gguf_name(name: str) -> str:
    """Our tensor name -> its name in a GGUF file."""
    if not name.startswith("layers."):
        return _GGUF_NAMES[name]
    _, layer, part = name.split(".")
    return f"blk.{layer}.{_GGUF_LAYER_NAMES[part]}"


def interleave(rows: NDArray[np.float32], n_heads: int) -> NDArray[np.float32]:
    """HALF_SPLIT rows -> INTERLEAVED rows, as `LlamaModel.permute` of convert_hf_to_gguf.py."""
    halves = rows.reshape(n_heads, 2, rows.shape[0] // n_heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def make_tiny_gguf(
    path: Path,
    *,
    arch: str = "llama",
    dim: int = 64,
    n_layers: int = 2,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int | None = None,
    ffn_dim: int = 128,
    vocab: int | None = None,
    quant: str = "F32",
    tied: bool = False,
    bias: bool = False,
    rope_scaling: RopeScaling | None = None,
    context: int = 256,
    seed: int = 0,
    tokenizer: bool = True,
    tokenizer_model: str = "gpt2",
    pre: str = "gpt-2",
) -> TinyModel:
    """Write a GGUF v3 file. Matrices are stored as `quant`, vectors as F32, as llama.cpp does.

    `vocab` None means as many tokens as the tokeniser has. `tokenizer_model` is "gpt2" or "llama".
    """
    bpe = tokenizer_model == "gpt2"
    size = len(
        (bpe_vocabulary if bpe else sentencepiece_vocabulary)(vocab if tokenizer else None)[0]
    )
    config = tiny_config(
        arch,
        size if tokenizer or vocab is None else vocab,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        ffn_dim=ffn_dim,
        tied=tied,
        bias=bias,
        rope_scaling=rope_scaling,
        context=context,
    )
    weights = tiny_weights(config, seed)
    writer = gguf.GGUFWriter(path, arch)
    _add_gguf_config(writer, config)
    if tokenizer:
        _add_gguf_tokenizer(writer, config.vocab_size, pre if bpe else None)
    rng = np.random.default_rng(seed + 1)
    stored = {
        name: _add_gguf_tensor(writer, config, name, weights[name], quant, rng) for name in weights
    }
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if config.rope_scaling.kind is RopeScalingKind.LLAMA3:
        config = replace(
            config, rope_scaling=RopeScaling()
        )  # the file carries rope_factors instead
    return TinyModel(path, config, stored)


def _add_gguf_tensor(
    writer: gguf.GGUFWriter,
    config: ModelConfig,
    name: str,
    values: NDArray[np.float32],
    quant: str,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Add one tensor; returns its values as stored, in HALF_SPLIT order."""
    if values.ndim == 1:
        quant = "F32"
    part = name.rsplit(".", 1)[-1]
    heads = {
        "wq": config.n_heads,
        "bq": config.n_heads,
        "wk": config.n_kv_heads,
        "bk": config.n_kv_heads,
    }
    raw, meant = encode(values, quant, rng)
    if config.architecture == "llama" and part in heads:
        raw = interleave(raw, heads[part])  # whole rows move, so quantised rows stay intact
    writer.add_tensor(
        gguf_name(name), np.ascontiguousarray(raw), raw_dtype=gguf.GGMLQuantizationType[quant]
    )
    return meant


def _add_gguf_config(writer: gguf.GGUFWriter, config: ModelConfig) -> None:
    writer.add_name(config.name)
    writer.add_block_count(config.n_layers)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.dim)
    writer.add_feed_forward_length(config.ffn_dim)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.head_dim)
    if config.head_dim * config.n_heads != config.dim:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if config.rope_scaling.kind is RopeScalingKind.LINEAR:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(config.rope_scaling.factor)


def _add_gguf_tokenizer(writer: gguf.GGUFWriter, size: int, pre: str | None) -> None:
    if pre is None:
        tokens, scores, types = sentencepiece_vocabulary(size)
        writer.add_tokenizer_model("llama")
        writer.add_token_scores(scores)
        bos, eos = tokens.index("<s>"), tokens.index("</s>")
        writer.add_unk_token_id(0)
    else:
        tokens, merges = bpe_vocabulary(size)
        types = [3 if t in SPECIAL_TOKENS else 5 if t.startswith("[PAD") else 1 for t in tokens]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_merges(merges)
        writer.add_add_bos_token(False)
        bos, eos = tokens.index(BOS), tokens.index(EOS)
        writer.add_chat_template(CHAT_TEMPLATE)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_bos_token_id(bos)
    writer.add_eos_token_id(eos)
