# SPDX-License-Identifier: Apache-2.0
"""Sound Hugging Face folders, and the variants that are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, processors

from engine.config import RopeScaling, RopeScalingKind
from engine.errors import EngineError, ModelFileError, ModelNotFoundError, UnsupportedModelError
from engine.formats import open_model
from engine.formats.source import TokenizerKind
from tests.helpers.hf_writer import hf_name, make_tiny_hf
from tests.helpers.tiny_model import CHAT_TEMPLATE, TinyModel

LINEAR = RopeScaling(RopeScalingKind.LINEAR, 4.0)
LLAMA3 = RopeScaling(RopeScalingKind.LLAMA3, 8.0, 1.0, 4.0, 64)


def assert_reads_back(written: TinyModel) -> None:
    model = open_model(written.path)
    try:
        assert model.config == written.config
        assert sorted(model.tensor_names()) == sorted(written.weights)
        for name, values in written.weights.items():
            np.testing.assert_array_equal(model.tensor(name), values, err_msg=name)
    finally:
        model.close()


def edit(path: Path, **changes: Any) -> None:
    """Change fields of a JSON file; None removes one."""
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_tiny_hf(tmp_path / "tiny", n_layers=1).path


@pytest.mark.parametrize("arch", ["llama", "qwen2", "mistral"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_type_single_and_sharded(arch: str, dtype: str, tmp_path: Path) -> None:
    assert_reads_back(make_tiny_hf(tmp_path / "one", arch=arch, dtype=dtype))
    assert_reads_back(make_tiny_hf(tmp_path / "three", arch=arch, dtype=dtype, shards=3, tied=True))


def test_head_dim_and_names(tmp_path: Path) -> None:
    written = make_tiny_hf(tmp_path / "wide-heads", n_heads=3, n_kv_heads=1, head_dim=40)
    assert_reads_back(written)
    assert open_model(written.path).config.name == "wide-heads"


@pytest.mark.parametrize("scaling", [LINEAR, LLAMA3])
def test_rope_scaling_in_all_spellings(scaling: RopeScaling, tmp_path: Path) -> None:
    written = make_tiny_hf(tmp_path / "tiny", rope_scaling=scaling)
    assert_reads_back(written)
    config = json.loads((written.path / "config.json").read_text())
    rope = config["rope_scaling"]
    old = {"type" if key == "rope_type" else key: value for key, value in rope.items()}
    edit(written.path / "config.json", rope_scaling=old)
    assert_reads_back(written)
    edit(  # transformers 5
        written.path / "config.json",
        rope_scaling=None,
        rope_theta=None,
        rope_parameters={**rope, "rope_theta": 10_000.0},
    )
    assert_reads_back(written)


def test_rope_parameters_hold_the_base(folder: Path) -> None:
    edit(
        folder / "config.json",
        rope_theta=None,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )
    config = open_model(folder).config
    assert (config.rope_theta, config.rope_scaling) == (5e5, RopeScaling())


def test_a_tied_head_in_the_file_is_not_used(tmp_path: Path) -> None:
    written = make_tiny_hf(tmp_path / "tiny")
    edit(written.path / "config.json", tie_word_embeddings=True)
    assert "head" not in open_model(written.path).tensor_names()


def test_rotary_frequencies_of_old_checkpoints_are_ignored(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(8, np.float32)
    save_file(tensors, folder / "model.safetensors")
    assert "layers.0.wq" in open_model(folder).tensor_names()


@pytest.mark.parametrize(
    ("arch", "changes", "context"),
    [
        ("mistral", {}, 256),
        ("mistral", {"sliding_window": 64}, 64),
        ("mistral", {"max_position_embeddings": 9000, "sliding_window": None}, 4096),
        ("qwen2", {"sliding_window": 64}, 256),
        ("qwen2", {"sliding_window": 64, "use_sliding_window": True}, 64),
        ("llama", {"sliding_window": 64}, 256),
    ],
)
def test_context_is_bounded_by_a_sliding_window(
    arch: str, changes: dict[str, Any], context: int, tmp_path: Path
) -> None:
    written = make_tiny_hf(tmp_path / "tiny", arch=arch, n_layers=1)
    edit(written.path / "config.json", **changes)
    assert open_model(written.path).config.context_length == context


UNSUPPORTED: list[tuple[str, dict[str, Any]]] = [
    ("architectures", {"architectures": ["GemmaForCausalLM"]}),
    ("quantization_config", {"quantization_config": {"quant_method": "gptq"}}),
    ("hidden_act", {"hidden_act": "gelu"}),
    ("attention_bias", {"attention_bias": True}),
    ("mlp_bias", {"mlp_bias": True}),
    ("rope_scaling.rope_type", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}),
    ("rope_scaling.type", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    ("partial_rotary_factor", {"partial_rotary_factor": 0.5}),
    ("layer_types", {"layer_types": ["linear_attention"]}),
]


@pytest.mark.parametrize(("field", "changes"), UNSUPPORTED)
def test_unsupported_models_are_refused_by_name(
    field: str, changes: dict[str, Any], folder: Path
) -> None:
    edit(folder / "config.json", **changes)
    with pytest.raises(UnsupportedModelError) as caught:
        open_model(folder)
    assert (caught.value.field, caught.value.path) == (field, folder / "config.json")


def test_foreign_tensors_and_types_are_refused(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    bias = {"model.layers.0.self_attn.o_proj.bias": np.zeros(64, np.float32)}
    save_file(tensors | bias, folder / "model.safetensors")
    with pytest.raises(UnsupportedModelError, match=r"o_proj\.bias"):
        open_model(folder)
    norm = hf_name("final_norm")
    save_file(tensors | {norm: tensors[norm].astype(np.float64)}, folder / "model.safetensors")
    with pytest.raises(UnsupportedModelError, match="has type F64"):
        open_model(folder)


def test_pickle_files_are_refused_with_advice(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnsupportedModelError, match=r"pytorch_model\.bin: pickle files can run"):
        open_model(folder)
    with pytest.raises(UnsupportedModelError, match="pickle files can run"):
        open_model(folder / "pytorch_model.bin")


def test_advice_for_other_paths(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        open_model(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="name the folder"):
        open_model(folder / "model.safetensors")
    (folder / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"config\.json: is missing"):
        open_model(folder)
    (folder / "some.gguf").write_bytes(b"")
    with pytest.raises(ModelFileError, match=r"name it: some\.gguf"):
        open_model(folder)
    with pytest.raises(ModelFileError, match="is empty"):
        open_model(folder / "some.gguf")
    with pytest.raises(EngineError):
        open_model("x" * 5000)


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "/etc/model.safetensors", "a/b.safetensors"]
)
def test_an_index_cannot_name_files_elsewhere(name: str, tmp_path: Path) -> None:
    written = make_tiny_hf(tmp_path / "tiny", shards=2)
    path = written.path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.norm.weight"] = name
    path.write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match="no plain name") as caught:
        open_model(written.path)
    assert caught.value.field == "weight_map.model.norm.weight"


def test_tokenizer(folder: Path) -> None:
    spec = open_model(folder).tokenizer
    assert (spec.kind, spec.json_path) == (TokenizerKind.TOKENIZER_JSON, folder / "tokenizer.json")
    assert (spec.bos_id, spec.eos_ids, spec.unknown_id) == (1, (2, 0), None)
    assert (spec.add_bos, spec.add_eos, spec.vocab_size) == (False, False, 286)
    assert spec.chat_template == CHAT_TEMPLATE


def test_a_template_in_its_own_file_wins(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("own file")
    assert open_model(folder).tokenizer.chat_template == "own file"


def test_the_default_of_named_templates(folder: Path) -> None:
    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    edit(folder / "tokenizer_config.json", chat_template=named)
    assert open_model(folder).tokenizer.chat_template == "d"
    edit(folder / "tokenizer_config.json", chat_template=named[:1])
    assert open_model(folder).tokenizer.chat_template is None


def test_bos_from_the_post_processor_unless_the_settings_overrule_it(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start = "<|im_start|>"
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(),
            processors.TemplateProcessing(
                single=f"{start} $A", pair=None, special_tokens=[(start, 1)]
            ),
        ]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    spec = open_model(folder).tokenizer
    assert (spec.add_bos, spec.add_eos) == (True, False)
    edit(folder / "tokenizer_config.json", add_bos_token=False)
    assert not open_model(folder).tokenizer.add_bos


def test_special_tokens_as_objects(folder: Path) -> None:
    token = {"content": "<|endoftext|>", "special": True}
    edit(folder / "tokenizer_config.json", bos_token=token, unk_token="<|endoftext|>")
    spec = open_model(folder).tokenizer
    assert (spec.bos_id, spec.unknown_id) == (0, 0)


def test_a_sentencepiece_file_alone_gets_advice(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "tokenizer.model")
    with pytest.raises(UnsupportedModelError, match="SentencePiece file alone") as caught:
        open_model(folder).tokenizer  # noqa: B018
    assert caught.value.field == "tokenizer.model"
    (folder / "tokenizer.model").unlink()
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: is missing"):
        open_model(folder).tokenizer  # noqa: B018
