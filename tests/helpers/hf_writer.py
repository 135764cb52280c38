# SPDX-License-Identifier: Apache-2.0
"""Write a tiny but complete Hugging Face folder with random weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import TensorSpec, serialize_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from engine.config import ModelConfig, RopeScaling, RopeScalingKind
from tests.helpers.tiny_model import (
    BOS,
    CHAT_TEMPLATE,
    EOS,
    SPECIAL_TOKENS,
    TinyModel,
    Weights,
    bpe_vocabulary,
    encode,
    tiny_config,
    tiny_weights,
)

_HF_NAMES = {
    "embed": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "head": "lm_head.weight",
}
_HF_LAYER_NAMES = {
    "attn_norm": "input_layernorm.weight",
    "ffn_norm": "post_attention_layernorm.weight",
    "wq": "self_attn.q_proj.weight",
    "wk": "self_attn.k_proj.weight",
    "wv": "self_attn.v_proj.weight",
    "wo": "self_attn.o_proj.weight",
    "bq": "self_attn.q_proj.bias",
    "bk": "self_attn.k_proj.bias",
    "bv": "self_attn.v_proj.bias",
    "w_gate": "mlp.gate_proj.weight",
    "w_up": "mlp.up_proj.weight",
    "w_down": "mlp.down_proj.weight",
}


def hf_name(name: str) -> str:
    """Our tensor name -> its name in a Hugging Face checkpoint."""
    if not name.startswith("layers."):
        return _HF_NAMES[name]
    _, layer, part = name.split(".")
    return f"model.layers.{layer}.{_HF_LAYER_NAMES[part]}"


def make_tiny_hf(
    folder: Path,
    *,
    arch: str = "llama",
    dim: int = 64,
    n_layers: int = 2,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int | None = None,
    ffn_dim: int = 128,
    vocab: int | None = None,
    tied: bool = False,
    rope_scaling: RopeScaling | None = None,
    context: int = 256,
    seed: int = 0,
    tokenizer: bool = True,
    dtype: str = "float32",
    shards: int = 1,
) -> TinyModel:
    """Write config.json, tokenizer.json and safetensors. `arch` is "llama", "qwen2" or "mistral".

    There is no `bias` knob: of the three, qwen2 always has attention bias and the others never.
    """
    tokens, _ = bpe_vocabulary(vocab if tokenizer else None)
    config = tiny_config(
        arch,
        len(tokens) if tokenizer or vocab is None else vocab,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        ffn_dim=ffn_dim,
        tied=tied,
        bias=False,
        rope_scaling=rope_scaling,
        context=context,
    )
    folder.mkdir(parents=True, exist_ok=True)
    weights = {n: w for n, w in tiny_weights(config, seed).items() if n != "rope_factors"}
    stored = _write_safetensors(folder, weights, dtype, shards)
    _write_json(folder / "config.json", hf_config(config, dtype))
    _write_json(
        folder / "generation_config.json",
        {"bos_token_id": tokens.index(BOS), "eos_token_id": [tokens.index(EOS), 0]},
    )
    if tokenizer:
        tiny_tokenizer(vocab).save(str(folder / "tokenizer.json"))
        settings: dict[str, object] = {
            "bos_token": BOS,
            "eos_token": EOS,
            "chat_template": CHAT_TEMPLATE,
        }
        settings |= {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
        }
        _write_json(folder / "tokenizer_config.json", settings)
    return TinyModel(folder, replace(config, name=folder.name), stored)


def hf_config(config: ModelConfig, dtype: str = "float32") -> dict[str, Any]:
    """config.json as transformers 4 wrote it."""
    kind = {"llama": "Llama", "qwen2": "Qwen2", "mistral": "Mistral"}[config.architecture]
    out: dict[str, Any] = {
        "architectures": [f"{kind}ForCausalLM"],
        "model_type": config.architecture,
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "intermediate_size": config.ffn_dim,
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tied_head,
        "hidden_act": "silu",
        "bos_token_id": SPECIAL_TOKENS.index(BOS),
        "eos_token_id": SPECIAL_TOKENS.index(EOS),
        "torch_dtype": dtype,
    }
    if config.architecture != "qwen2":
        out["head_dim"] = config.head_dim
    if config.architecture == "mistral":
        out["sliding_window"] = None
    scaling = config.rope_scaling
    if scaling.kind is RopeScalingKind.LINEAR:
        out["rope_scaling"] = {"rope_type": "linear", "factor": scaling.factor}
    elif scaling.kind is RopeScalingKind.LLAMA3:
        out["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_context,
        }
    return out


def tiny_tokenizer(vocab: int | None = None) -> Tokenizer:
    """The tokeniser of every tiny BPE model, as the `tokenizers` library runs it (GPT-2 pattern)."""
    tokens, merges = bpe_vocabulary(vocab)
    bpe = models.BPE(
        {t: i for i, t in enumerate(tokens)},
        [(a, b) for a, _, b in (m.partition(" ") for m in merges)],
    )
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL_TOKENS])
    return tokenizer


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def _to_dtype(values: NDArray[np.float32], dtype: str) -> tuple[NDArray[Any], NDArray[np.float32]]:
    if dtype == "bfloat16":
        raw, meant = encode(values, "BF16", np.random.default_rng(0))
        return raw.view(np.uint16), meant
    raw = values.astype(dtype)
    return raw, raw.astype(np.float32)


def _write_safetensors(folder: Path, weights: Weights, dtype: str, shards: int) -> Weights:
    """One model.safetensors, or `shards` files and their index. Returns the values as stored."""
    raw, stored = {}, {}
    for name, values in weights.items():
        raw[hf_name(name)], stored[name] = _to_dtype(values, dtype)
    files: dict[str, list[str]] = {}
    for number, name in enumerate(raw):
        part = number * shards // len(raw) + 1
        file = "model.safetensors" if shards == 1 else f"model-{part:05}-of-{shards:05}.safetensors"
        files.setdefault(file, []).append(name)
    for file, names in files.items():
        specs = {
            n: TensorSpec(
                dtype=dtype,
                shape=raw[n].shape,
                data_ptr=raw[n].ctypes.data,
                data_len=raw[n].nbytes,
            )
            for n in names
        }
        serialize_file(specs, folder / file, metadata={"format": "pt"})
    if shards > 1:
        total = sum(v.nbytes for v in raw.values())
        weight_map = {n: file for file, names in files.items() for n in names}
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        _write_json(folder / "model.safetensors.index.json", index)
    return stored
