# SPDX-License-Identifier: Apache-2.0
"""Random weights and a small byte-level BPE tokeniser, the same for every file format.

The same knobs and seed give the same weights in a GGUF file and in a Hugging Face folder, so that
the two can be compared with each other and with `transformers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig, RopeScaling, RopeScalingKind

Weights = dict[str, NDArray[np.float32]]

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
BOS, EOS = "<|im_start|>", "<|im_end|>"
MERGES = (
    ("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("in", "g"), ("e", "r"), ("a", "n"),
    ("an", "d"), ("Ġ", "and"), ("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"),
    ("Ġ", "hello"), ("Ġ", "a"), ("o", "u"), ("y", "ou"), ("Ġ", "you"), ("o", "r"), ("Ġ", "w"),
    ("Ġw", "or"), ("l", "d"), ("Ġwor", "ld"), ("Ã", "©"), ("ð", "Ł"), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ"),
)  # fmt: skip


@dataclass(frozen=True)
class TinyModel:
    """What was written: `weights` are the values as stored (after rounding or quantisation).

    Names, shapes and row order are those of `engine.formats.source` (HALF_SPLIT).
    """

    path: Path
    config: ModelConfig
    weights: Weights


def byte_alphabet() -> list[str]:
    """The printable character for each byte, in byte order (GPT-2 `bytes_to_unicode`)."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(shifted)) for b in range(256)]


def bpe_vocabulary(size: int | None) -> tuple[list[str], list[str]]:
    """(tokens, merges "a b"): special tokens, 256 bytes, merges, then [PADn] up to `size`."""
    tokens = [*SPECIAL_TOKENS, *byte_alphabet(), *("".join(pair) for pair in MERGES)]
    if size is not None:
        if size < len(tokens):
            raise ValueError(f"the tokeniser alone has {len(tokens)} tokens, vocab={size}")
        tokens += [f"[PAD{i}]" for i in range(len(tokens), size)]
    return tokens, [" ".join(pair) for pair in MERGES]


def sentencepiece_vocabulary(size: int | None) -> tuple[list[str], list[float], list[int]]:
    """(tokens, scores, types) in the layout of Llama-2: <unk>, <s>, </s>, 256 bytes, pieces."""
    pieces = ["▁t", "he", "▁the", "in", "▁a", "er", "▁w", "or", "ld", "▁wor", "▁world", "ll"]
    pieces += ["llo", "hello", "▁hello"]
    letters = ["▁", *"etaoinshrdlcumwfgypbvkjxqzETAOINSHRDLCUMWFGYPBVKJXQZ0123456789.,!?'-é日本"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *pieces, *letters]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(pieces) + len(letters))
    scores = [0.0] * 259 + [-float(i) for i in range(len(pieces) + len(letters))]
    padding = 0 if size is None else size - len(tokens)
    if padding < 0:
        raise ValueError(f"the tokeniser alone has {len(tokens)} tokens, vocab={size}")
    tokens += [f"[PAD{i}]" for i in range(padding)]
    return tokens, scores + [-1000.0] * padding, types + [5] * padding


def llama3_factors(config: ModelConfig) -> NDArray[np.float32]:
    """Divisors of the rotary frequencies, shape (head_dim/2,), by the formula of Llama 3.1.

    Source: `_compute_llama3_parameters` in transformers; llama.cpp stores its result as
    `rope_freqs.weight`.
    """
    scaling = config.rope_scaling
    index = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    wavelength = 2 * math.pi * config.rope_theta**index
    low = scaling.original_context / scaling.low_freq_factor
    high = scaling.original_context / scaling.high_freq_factor
    smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    between = 1 / ((1 - smooth) / scaling.factor + smooth)
    factors = np.where(wavelength > low, scaling.factor, between)
    return np.where(wavelength < high, 1.0, factors).astype(np.float32)


def tiny_config(
    arch: str,
    vocab_size: int,
    *,
    dim: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int | None,
    ffn_dim: int,
    tied: bool,
    bias: bool,
    rope_scaling: RopeScaling | None,
    context: int,
) -> ModelConfig:
    """The ModelConfig that a reader must find in the file."""
    return ModelConfig(
        architecture=arch,
        vocab_size=vocab_size,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim or dim // n_heads,
        ffn_dim=ffn_dim,
        context_length=context,
        norm_eps=float(np.float32(1e-5)),  # GGUF holds it as float32
        rope_theta=10_000.0,
        rope_scaling=rope_scaling or RopeScaling(),
        tied_head=tied,
        attention_bias=bias or arch == "qwen2",
        name="tiny",
    )


def tiny_weights(config: ModelConfig, seed: int) -> Weights:
    """Random float32 weights, scaled so that activations neither vanish nor explode."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return (rng.standard_normal((rows, columns)) / math.sqrt(columns)).astype(np.float32)

    def vector(length: int, centre: float) -> NDArray[np.float32]:
        return (centre + 0.1 * rng.standard_normal(length)).astype(np.float32)

    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    weights: Weights = {"embed": matrix(config.vocab_size, config.dim)}
    for i in range(config.n_layers):
        layer = f"layers.{i}"
        weights[f"{layer}.attn_norm"] = vector(config.dim, 1.0)
        weights[f"{layer}.wq"] = matrix(q, config.dim)
        weights[f"{layer}.wk"] = matrix(kv, config.dim)
        weights[f"{layer}.wv"] = matrix(kv, config.dim)
        weights[f"{layer}.wo"] = matrix(config.dim, q)
        if config.attention_bias:
            weights[f"{layer}.bq"] = vector(q, 0.0)
            weights[f"{layer}.bk"] = vector(kv, 0.0)
            weights[f"{layer}.bv"] = vector(kv, 0.0)
        weights[f"{layer}.ffn_norm"] = vector(config.dim, 1.0)
        weights[f"{layer}.w_gate"] = matrix(config.ffn_dim, config.dim)
        weights[f"{layer}.w_up"] = matrix(config.ffn_dim, config.dim)
        weights[f"{layer}.w_down"] = matrix(config.dim, config.ffn_dim)
    weights["final_norm"] = vector(config.dim, 1.0)
    if not config.tied_head:
        weights["head"] = matrix(config.vocab_size, config.dim)
    if config.rope_scaling.kind is RopeScalingKind.LLAMA3:
        weights["rope_factors"] = llama3_factors(config)
    return weights


def encode(
    values: NDArray[np.float32], quant: str, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """(stored bytes or floats, the float32 values that they mean).

    gguf-py cannot quantise to K-quants. For those the blocks are random, with scales that keep the
    weights near 1/sqrt(columns).
    """
    kind = gguf.GGMLQuantizationType[quant]
    if quant in ("Q4_K", "Q5_K", "Q6_K"):
        stored = _random_k_blocks(values.shape, quant, rng)
    else:
        stored = gguf.quants.quantize(values, kind)
    return stored, gguf.quants.dequantize(stored, kind).astype(np.float32)


def _random_k_blocks(
    shape: tuple[int, ...], quant: str, rng: np.random.Generator
) -> NDArray[np.uint8]:
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[quant]]
    rows, columns = shape
    if columns % block:
        raise ValueError(f"{quant} needs rows of a multiple of {block} weights, not {columns}")
    blocks = rng.integers(0, 256, (rows, columns // block, size), dtype=np.uint8)
    # (offset of d, typical product of sub-scale and quant, ratio dmin/d that centres on zero)
    offset, typical, ratio = {
        "Q4_K": (0, 32 * 5, 7.5),
        "Q5_K": (0, 32 * 10, 15.5),
        "Q6_K": (208, 64 * 18, 0.0),
    }[quant]
    d = np.float16(1 / np.sqrt(columns) / typical)
    blocks[..., offset : offset + 2] = np.frombuffer(d.tobytes(), np.uint8)
    if ratio:
        dmin = np.float16(float(d) * ratio)
        blocks[..., 2:4] = np.frombuffer(dmin.tobytes(), np.uint8)
    return blocks.reshape(rows, -1)
