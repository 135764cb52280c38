# SPDX-License-Identifier: Apache-2.0
"""ModelConfig from the config.json of a Hugging Face folder.

Field names and defaults: LlamaConfig, Qwen2Config and MistralConfig of transformers, in the
spelling of version 4 (`rope_theta`, `rope_scaling`) and of version 5 (`rope_parameters`).
"""

from __future__ import annotations

from engine.config import ModelConfig, RopeScaling, RopeScalingKind
from engine.errors import UnsupportedModelError
from engine.formats import bounds
from engine.formats.json_file import JsonObject
from engine.texts import Text

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "MistralForCausalLM": "mistral",
}
_MISTRAL_WINDOW = 4096  # of a config.json without the field; null means no window
_FIELDS = bounds.FieldNames("num_attention_heads", "num_key_value_heads", "head_dim")


def read_config(settings: JsonObject, *, has_head: bool) -> ModelConfig:
    """The shape of the model; `has_head` tells whether the weights hold an output matrix.

    Raises:
        ModelFileError: a field is missing, of the wrong type, out of range, or contradicts another.
        UnsupportedModelError: an architecture or a variant that Thock does not compute.
    """
    arch = read_architecture(settings)
    _refuse_variants(settings, arch)
    dim = settings.integer("hidden_size", 1, bounds.MAX_DIM)
    n_heads = settings.integer("num_attention_heads", 1, bounds.MAX_HEADS)
    if "head_dim" not in settings and dim % n_heads:
        raise settings.error(
            "num_attention_heads",
            Text("{dim} columns do not split into {n_heads} heads", dim=dim, n_heads=n_heads),
        )
    theta, scaling = _rope(settings)
    config = ModelConfig(
        architecture=arch,
        vocab_size=settings.integer("vocab_size", 1, bounds.MAX_VOCAB),
        dim=dim,
        n_layers=settings.integer("num_hidden_layers", 1, bounds.MAX_LAYERS),
        n_heads=n_heads,
        n_kv_heads=settings.integer("num_key_value_heads", 1, bounds.MAX_HEADS, n_heads),
        head_dim=settings.integer("head_dim", 2, bounds.MAX_HEAD_DIM, dim // n_heads),
        ffn_dim=settings.integer("intermediate_size", 1, bounds.MAX_FFN_DIM),
        context_length=_context_length(settings, arch),
        norm_eps=settings.real("rms_norm_eps", 0.0, 0.1, 1e-6),
        rope_theta=theta,
        rope_scaling=scaling,
        tied_head=settings.flag("tie_word_embeddings", not has_head),
        attention_bias=arch == "qwen2",
        name=bounds.printable(settings.path.parent.resolve().name),
    )
    bounds.check_heads(settings.path, config, _FIELDS)
    return config


def read_architecture(settings: JsonObject) -> str:
    """The family of the model.

    Raises:
        ModelFileError: config.json names no architecture.
        UnsupportedModelError: one that Thock does not compute.
    """
    names = settings.items("architectures")
    if not names:
        raise settings.error("architectures", "is missing")
    name = names[0]
    if not isinstance(name, str) or name not in ARCHITECTURES:
        reason = Text(
            "is {bounds}; Thock computes {architectures}",
            bounds=bounds.printable(str(name)),
            architectures=", ".join(ARCHITECTURES),
        )
        raise UnsupportedModelError(settings.path, "architectures", reason)
    return ARCHITECTURES[name]


def _refuse_variants(settings: JsonObject, arch: str) -> None:
    """Refuse what would load, but compute something else than the model's authors meant."""
    path = settings.path
    if "quantization_config" in settings:
        reason = "quantised folders are not supported; use the original weights or a GGUF file"
        raise UnsupportedModelError(path, "quantization_config", reason)
    activation = settings.text("hidden_act", "silu")
    if activation != "silu":
        reason = Text("is {bounds}; Thock computes silu", bounds=repr(bounds.printable(activation)))
        raise UnsupportedModelError(path, "hidden_act", reason)
    for field in ("mlp_bias", "attention_bias"):
        # attention_bias of a Llama also means a bias behind W_o, which the engine does not have.
        if arch != "qwen2" and settings.flag(field, False):
            raise UnsupportedModelError(path, field, "is true, which is not supported")


def _context_length(settings: JsonObject, arch: str) -> int:
    """Positions the model was trained for.

    Inside a sliding window attention is the same as full attention, so the window is the limit.
    """
    context = settings.integer("max_position_embeddings", 1, bounds.MAX_CONTEXT)
    layers = settings.items("layer_types")
    strange = [t for t in layers if t not in ("full_attention", "sliding_attention")]
    if strange:
        reason = Text(
            "holds {bounds}, which is not supported", bounds=bounds.printable(str(strange[0]))
        )
        raise UnsupportedModelError(settings.path, "layer_types", reason)
    slides = arch == "mistral" or (arch == "qwen2" and settings.flag("use_sliding_window", False))
    if not (slides or "sliding_attention" in layers):
        return context
    if arch == "mistral" and "sliding_window" not in settings.values:
        return min(context, _MISTRAL_WINDOW)
    return min(context, settings.integer("sliding_window", 1, bounds.MAX_CONTEXT, context))


def _rope(settings: JsonObject) -> tuple[float, RopeScaling]:
    """(base, scaling) of the rotary embedding."""
    rope = settings.object("rope_parameters")  # transformers 5; holds the base as well
    if not rope.values:
        rope = settings.object("rope_scaling")
    base = rope if "rope_theta" in rope else settings
    theta = base.real("rope_theta", 1.0, bounds.MAX_ROPE_THETA, 10_000.0)
    for holder in (rope, settings):
        if holder.real("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0:
            field = holder.field("partial_rotary_factor")
            raise UnsupportedModelError(settings.path, field, "is not 1")
    return theta, _rope_scaling(rope)


def _rope_scaling(rope: JsonObject) -> RopeScaling:
    key = "rope_type" if "rope_type" in rope else "type"
    kind = rope.text(key, "default")
    if kind == "default":
        return RopeScaling()
    if kind not in ("linear", "llama3"):
        reason = Text(
            "is {bounds}; Thock knows default, linear and llama3",
            bounds=repr(bounds.printable(kind)),
        )
        raise UnsupportedModelError(rope.path, rope.field(key), reason)
    factor = rope.real("factor", 1.0, bounds.MAX_ROPE_FACTOR)
    if kind == "linear":
        return RopeScaling(RopeScalingKind.LINEAR, factor)
    scaling = RopeScaling(
        RopeScalingKind.LLAMA3,
        factor,
        low_freq_factor=rope.real("low_freq_factor", 1e-3, bounds.MAX_ROPE_FACTOR),
        high_freq_factor=rope.real("high_freq_factor", 1e-3, bounds.MAX_ROPE_FACTOR),
        original_context=rope.integer("original_max_position_embeddings", 1, bounds.MAX_CONTEXT),
    )
    if scaling.low_freq_factor >= scaling.high_freq_factor:
        raise rope.error("low_freq_factor", "is not below high_freq_factor")
    return scaling
