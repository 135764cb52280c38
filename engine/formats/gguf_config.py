# SPDX-License-Identifier: Apache-2.0
"""ModelConfig from the metadata of a GGUF file.

Keys and defaults: llama-model.cpp of llama.cpp (`load_hparams`) and docs/gguf.md of ggml.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.config import ModelConfig, RopeLayout, RopeScaling, RopeScalingKind
from engine.errors import UnsupportedModelError
from engine.formats import bounds
from engine.formats.gguf_metadata import Metadata
from engine.formats.tensors import StoredTensor
from engine.texts import Text

# The order of the rows of W_q and W_k in the file: llama_model_rope_type of llama.cpp
# (NORM is interleaved, NEOX is half-split).
ARCHITECTURES = {"llama": RopeLayout.INTERLEAVED, "qwen2": RopeLayout.HALF_SPLIT}
_SCALES_OF_OTHER_MODELS = ("attention.scale", "embedding_scale", "residual_scale", "logit_scale")
_MAX_TEXT_BYTES = 256


def read_config(metadata: Metadata, tensors: Mapping[str, StoredTensor]) -> ModelConfig:
    """The shape of the model; `tensors` by their names in the file.

    Raises:
        ModelFileError: a key is missing, of the wrong type, out of range, or contradicts another.
        UnsupportedModelError: an architecture or a variant that Thock does not compute.
    """
    arch = read_architecture(metadata)
    _refuse_variants(metadata, arch)
    dim = metadata.integer(f"{arch}.embedding_length", 1, bounds.MAX_DIM)
    heads_key, kv_heads_key = f"{arch}.attention.head_count", f"{arch}.attention.head_count_kv"
    n_heads = metadata.integer(heads_key, 1, bounds.MAX_HEADS)
    head_dim_key = f"{arch}.attention.key_length"
    if head_dim_key not in metadata and dim % n_heads:
        raise metadata.error(
            heads_key,
            Text("{dim} columns do not split into {n_heads} heads", dim=dim, n_heads=n_heads),
        )
    config = ModelConfig(
        architecture=arch,
        vocab_size=_vocab_size(metadata, arch, tensors),
        dim=dim,
        n_layers=metadata.integer(f"{arch}.block_count", 1, bounds.MAX_LAYERS),
        n_heads=n_heads,
        n_kv_heads=metadata.integer(kv_heads_key, 1, bounds.MAX_HEADS, n_heads),
        head_dim=metadata.integer(head_dim_key, 2, bounds.MAX_HEAD_DIM, dim // n_heads),
        ffn_dim=metadata.integer(f"{arch}.feed_forward_length", 1, bounds.MAX_FFN_DIM),
        context_length=_context_length(metadata, arch),
        norm_eps=metadata.real(f"{arch}.attention.layer_norm_rms_epsilon", 0.0, 0.1),
        rope_theta=metadata.real(f"{arch}.rope.freq_base", 1.0, bounds.MAX_ROPE_THETA, 10_000.0),
        rope_scaling=_rope_scaling(metadata, arch),
        tied_head="output.weight" not in tensors,
        attention_bias=arch == "qwen2" or "blk.0.attn_q.bias" in tensors,
        name=bounds.printable(metadata.text("general.name", 1 << 12, metadata.path.stem)),
    )
    bounds.check_heads(
        metadata.path, config, bounds.FieldNames(heads_key, kv_heads_key, head_dim_key)
    )
    _check_head_dim(metadata, config)
    return config


def read_architecture(metadata: Metadata) -> str:
    """`general.architecture`, if Thock computes it.

    Raises:
        ModelFileError: it is missing.
        UnsupportedModelError: another architecture, or only one part of a split file.
    """
    if metadata.integer("split.count", 0, 1 << 16, 0) > 1:
        raise UnsupportedModelError(
            metadata.path,
            "split.count",
            "the model is split over several files; join them with `llama-gguf-split --merge`",
        )
    key = "general.architecture"
    arch = metadata.text(key, _MAX_TEXT_BYTES)
    if arch not in ARCHITECTURES:
        reason = Text(
            "is {bounds}; Thock computes {architectures}",
            bounds=repr(bounds.printable(arch)),
            architectures=" and ".join(ARCHITECTURES),
        )
        raise UnsupportedModelError(metadata.path, key, reason)
    return arch


def _refuse_variants(metadata: Metadata, arch: str) -> None:
    """Refuse what would load, but compute something else than the model's authors meant."""
    kind = metadata.text("general.type", _MAX_TEXT_BYTES, "model")
    if kind != "model":
        reason = Text(
            "is {bounds}; Thock loads whole models only", bounds=repr(bounds.printable(kind))
        )
        raise UnsupportedModelError(metadata.path, "general.type", reason)
    experts = f"{arch}.expert_count"
    if metadata.integer(experts, 0, 1 << 16, 0):
        reason = Text("mixture-of-experts models are not supported")
        raise UnsupportedModelError(metadata.path, experts, reason)
    causal = f"{arch}.attention.causal"
    if not metadata.flag(causal, True):
        reason = Text("is false; Thock loads models that write text, not those that embed it")
        raise UnsupportedModelError(metadata.path, causal, reason)
    for suffix in _SCALES_OF_OTHER_MODELS:
        key = f"{arch}.{suffix}"
        if key in metadata:
            raise UnsupportedModelError(metadata.path, key, "this scale is not supported")


def _vocab_size(metadata: Metadata, arch: str, tensors: Mapping[str, StoredTensor]) -> int:
    """Rows of the embedding. The tokeniser and `vocab_size`, where present, must agree with it."""
    embedding = tensors.get("token_embd.weight")
    if embedding is None:
        raise metadata.error("tensor token_embd.weight", "is missing")
    rows = embedding.shape[0]
    if rows > bounds.MAX_VOCAB:
        raise metadata.error(
            embedding.field,
            Text("has {rows} rows, allowed are {max_vocab}", rows=rows, max_vocab=bounds.MAX_VOCAB),
        )
    key = f"{arch}.vocab_size"
    if metadata.integer(key, 1, bounds.MAX_VOCAB, rows) != rows:
        raise metadata.error(
            key, Text("does not match the {rows} rows of token_embd.weight", rows=rows)
        )
    return rows


def _context_length(metadata: Metadata, arch: str) -> int:
    """Positions the model was trained for.

    Inside a sliding window attention is the same as full attention, so the window is the limit.
    """
    context = metadata.integer(f"{arch}.context_length", 1, bounds.MAX_CONTEXT)
    window = metadata.integer(f"{arch}.attention.sliding_window", 0, bounds.MAX_CONTEXT, 0)
    return min(context, window) if window else context


def _rope_scaling(metadata: Metadata, arch: str) -> RopeScaling:
    """Linear scaling or none. Llama 3 scaling comes as the tensor rope_freqs.weight instead."""
    key = f"{arch}.rope.scaling.type"
    kind = metadata.text(key, _MAX_TEXT_BYTES, "linear")
    if kind == "none":
        return RopeScaling()
    if kind != "linear":
        reason = Text(
            "is {bounds}; Thock knows none, linear and rope_freqs.weight",
            bounds=repr(bounds.printable(kind)),
        )
        raise UnsupportedModelError(metadata.path, key, reason)
    old = metadata.real(f"{arch}.rope.scale_linear", 0.0, bounds.MAX_ROPE_FACTOR, 0.0)
    factor = metadata.real(f"{arch}.rope.scaling.factor", 0.0, bounds.MAX_ROPE_FACTOR, old)
    # llama.cpp takes 0 for "not set".
    return RopeScaling(RopeScalingKind.LINEAR, factor) if factor else RopeScaling()


def _check_head_dim(metadata: Metadata, config: ModelConfig) -> None:
    """Values as wide as keys, and rotary embedding over the whole head."""
    for suffix in ("attention.value_length", "rope.dimension_count"):
        key = f"{config.architecture}.{suffix}"
        width = metadata.integer(key, 1, bounds.MAX_HEAD_DIM, config.head_dim)
        if width != config.head_dim:
            reason = Text(
                "is {width}; Thock supports the head size ({head_dim}) only",
                width=width,
                head_dim=config.head_dim,
            )
            raise UnsupportedModelError(metadata.path, key, reason)
