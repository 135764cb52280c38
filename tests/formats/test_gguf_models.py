# SPDX-License-Identifier: Apache-2.0
"""Sound GGUF files: settings, row order, weights and tokenisers are read as they were written."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from engine.config import RopeScaling, RopeScalingKind
from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats import open_model
from engine.formats.source import TokenizerKind, TokenType
from tests.helpers.gguf_image import BOOL, GgufImage, f32, strings, text_value, u32
from tests.helpers.gguf_writer import QUANTS, make_tiny_gguf
from tests.helpers.tiny_model import CHAT_TEMPLATE, TinyModel, bpe_vocabulary

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


@pytest.mark.parametrize("arch", ["llama", "qwen2"])
@pytest.mark.parametrize("quant", QUANTS)
def test_every_quantisation(arch: str, quant: str, tmp_path: Path) -> None:
    wide = quant.endswith("_K")
    assert_reads_back(
        make_tiny_gguf(
            tmp_path / "m.gguf",
            arch=arch,
            quant=quant,
            dim=256 if wide else 64,
            ffn_dim=256 if wide else 96,
            n_layers=1,
        )
    )


@pytest.mark.parametrize(
    ("n_heads", "n_kv_heads", "head_dim"), [(4, 4, None), (4, 1, None), (9, 3, 8), (3, 1, 32)]
)
def test_head_counts(n_heads: int, n_kv_heads: int, head_dim: int | None, tmp_path: Path) -> None:
    written = make_tiny_gguf(
        tmp_path / "m.gguf",
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        bias=True,
        tied=True,
    )
    assert_reads_back(written)


def test_rows_of_interleaved_files_are_reordered_per_head(tmp_path: Path) -> None:
    """File row 2i of a head is our row i, file row 2i+1 our row i + head_dim/2; K has fewer heads."""
    written = make_tiny_gguf(tmp_path / "m.gguf", n_heads=4, n_kv_heads=2, dim=64, bias=True)
    image = GgufImage.read(written.path)
    with_rows = {"attn_q": 4, "attn_k": 2, "attn_v": 2}
    for part, heads in with_rows.items():
        for suffix, width in (("weight", 64), ("bias", 1)):
            info = image.tensor(f"blk.1.{part}.{suffix}")
            rows = np.repeat(np.arange(heads * 16, dtype=np.float32), width).tobytes()
            image.data[info.offset : info.offset + len(rows)] = rows
    model = open_model(image.write(tmp_path / "rows.gguf"))
    for name, heads in (("q", 4), ("k", 2)):
        expected = [
            head * 16 + (2 * i if i < 8 else 2 * (i - 8) + 1)
            for head in range(heads)
            for i in range(16)
        ]
        assert model.tensor(f"layers.1.w{name}")[:, 63].tolist() == expected
        assert model.tensor(f"layers.1.b{name}").tolist() == expected
    assert model.tensor("layers.1.wv")[:, 0].tolist() == list(range(32))
    assert model.tensor("layers.1.bv").tolist() == list(range(32))


def test_qwen2_rows_keep_their_order(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf", arch="qwen2")
    image = GgufImage.read(written.path)
    info = image.tensor("blk.0.attn_k.bias")
    raw = np.frombuffer(image.data, np.float32, 32, info.offset)
    np.testing.assert_array_equal(open_model(written.path).tensor("layers.0.bk"), raw)


@pytest.mark.parametrize("scaling", [LINEAR, LLAMA3])
def test_rope_scaling(scaling: RopeScaling, tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf", rope_scaling=scaling)
    assert_reads_back(written)
    kind = open_model(written.path).config.rope_scaling.kind
    carries_factors = scaling.kind is RopeScalingKind.LLAMA3
    assert kind is (RopeScalingKind.NONE if carries_factors else RopeScalingKind.LINEAR)
    assert ("rope_factors" in open_model(written.path).tensor_names()) is carries_factors


@pytest.fixture
def image(tmp_path: Path) -> GgufImage:
    return GgufImage.read(make_tiny_gguf(tmp_path / "sound.gguf").path)


def test_defaults_of_missing_keys(image: GgufImage, tmp_path: Path) -> None:
    for key in ("attention.head_count_kv", "rope.freq_base", "rope.dimension_count", "vocab_size"):
        image.set(f"llama.{key}", None)
    image.set("general.name", None)
    for layer in range(2):
        image.tensor(f"blk.{layer}.attn_k.weight").dims = (64, 64)
        image.tensor(f"blk.{layer}.attn_v.weight").dims = (64, 64)
    # K and V grew; lay all tensors out anew over zeros
    place = 0
    for info in image.tensors:
        info.offset = place
        place += (int(np.prod(info.dims)) * 4 + 31) // 32 * 32
    image.data = bytearray(place)
    config = open_model(image.write(tmp_path / "defaults.gguf")).config
    assert (config.n_kv_heads, config.rope_theta, config.head_dim) == (4, 10_000.0, 16)
    assert (config.name, config.vocab_size) == ("defaults", 286)


def test_version_2_and_other_alignment(image: GgufImage, tmp_path: Path) -> None:
    image.version = 2
    image.alignment = 64
    image.set("general.alignment", u32(64))
    place, data = 0, bytearray()
    for info in image.tensors:
        size = int(np.prod(info.dims)) * 4
        data += bytes(-len(data) % 64)
        place = len(data)
        data += image.data[info.offset : info.offset + size]
        info.offset = place
    image.data = data
    model = open_model(image.write(tmp_path / "v2.gguf"))
    assert model.format_name == "GGUF v2"
    sound = open_model(tmp_path / "sound.gguf")
    for name in sound.tensor_names():
        np.testing.assert_array_equal(model.tensor(name), sound.tensor(name))


def test_one_value_per_layer_counts_as_one(image: GgufImage, tmp_path: Path) -> None:
    image.set("llama.attention.head_count_kv", (9, struct.pack("<IQII", 4, 2, 2, 2)))
    assert open_model(image.write(tmp_path / "m.gguf")).config.n_kv_heads == 2
    image.set("llama.attention.head_count_kv", (9, struct.pack("<IQII", 4, 2, 2, 1)))
    with pytest.raises(ModelFileError, match="differs between layers"):
        open_model(image.write(tmp_path / "m2.gguf"))


def test_context_is_bounded_by_a_sliding_window(image: GgufImage, tmp_path: Path) -> None:
    image.set("llama.attention.sliding_window", u32(100))
    assert open_model(image.write(tmp_path / "m.gguf")).config.context_length == 100


UNSUPPORTED = {
    "general.architecture": text_value("gemma3"),
    "llama.expert_count": u32(8),
    "split.count": (2, struct.pack("<H", 3)),
    "general.type": text_value("adapter"),
    "llama.rope.scaling.type": text_value("yarn"),
    "llama.rope.dimension_count": u32(8),
    "llama.attention.scale": f32(0.5),
    "llama.attention.causal": (BOOL, b"\0"),
    "tokenizer.ggml.model": text_value("bert"),
}


@pytest.mark.parametrize("key", UNSUPPORTED)
def test_unsupported_models_are_refused_by_name(key: str, image: GgufImage, tmp_path: Path) -> None:
    image.set(key, UNSUPPORTED[key])
    with pytest.raises(UnsupportedModelError) as caught:
        open_model(image.write(tmp_path / "m.gguf")).tokenizer  # noqa: B018
    assert caught.value.field == key
    if UNSUPPORTED[key][0] == 8:
        assert UNSUPPORTED[key][1][8:].decode() in caught.value.reason


@pytest.mark.parametrize(("number", "name"), [(20, "IQ4_NL"), (10, "Q2_K"), (999, "number 999")])
def test_unsupported_tensor_types_are_named(
    number: int, name: str, image: GgufImage, tmp_path: Path
) -> None:
    image.tensor("blk.0.ffn_up.weight").type = number
    with pytest.raises(UnsupportedModelError, match=name) as caught:
        open_model(image.write(tmp_path / "m.gguf"))
    assert caught.value.field == "tensor blk.0.ffn_up.weight"


def test_a_foreign_tensor_is_refused(image: GgufImage, tmp_path: Path) -> None:
    image.tensor("blk.1.ffn_norm.weight").name = "blk.1.post_ffw_norm.weight"
    with pytest.raises(UnsupportedModelError, match=r"post_ffw_norm"):
        open_model(image.write(tmp_path / "m.gguf"))


def test_a_layer_too_many_is_refused(image: GgufImage, tmp_path: Path) -> None:
    image.set("llama.block_count", u32(1))
    with pytest.raises(ModelFileError, match=r"blk\.1\.\S+: is not part of the model"):
        open_model(image.write(tmp_path / "m.gguf"))


def test_bpe_tokenizer(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf", vocab=300)
    spec = open_model(written.path).tokenizer
    tokens, merges = bpe_vocabulary(300)
    assert (spec.kind, spec.pre, spec.vocab_size) == (TokenizerKind.BPE, "gpt-2", 300)
    assert list(spec.tokens) == tokens
    assert list(spec.merges) == merges
    assert (spec.bos_id, spec.eos_ids, spec.unknown_id) == (1, (2, 0), None)
    assert (spec.add_bos, spec.add_eos, spec.add_space_prefix) == (False, False, False)
    assert spec.chat_template == CHAT_TEMPLATE
    assert [spec.token_types[i] for i in (0, 3, 299)] == [
        TokenType.CONTROL,
        TokenType.NORMAL,
        TokenType.UNUSED,
    ]
    assert CHAT_TEMPLATE not in repr(spec)


def test_sentencepiece_tokenizer(tmp_path: Path) -> None:
    spec = open_model(make_tiny_gguf(tmp_path / "m.gguf", tokenizer_model="llama").path).tokenizer
    assert spec.kind is TokenizerKind.SENTENCEPIECE
    assert len(spec.tokens) == len(spec.scores) == len(spec.token_types) == spec.vocab_size
    assert (spec.tokens[0], spec.tokens[3 + 0x41]) == ("<unk>", "<0x41>")
    assert spec.scores[260] == -1.0
    assert (spec.bos_id, spec.eos_ids, spec.unknown_id) == (1, (2,), 0)
    assert (spec.add_bos, spec.add_eos, spec.add_space_prefix) == (True, False, True)
    assert spec.chat_template is None


@pytest.mark.parametrize(
    ("pre", "explicit", "expected"),
    [
        ("llama-bpe", None, True),
        ("tekken", None, True),
        ("qwen2", None, False),
        ("smollm", None, False),
        ("llama-bpe", False, False),
        ("smollm", True, True),
    ],
)
def test_add_bos_defaults_follow_the_pre_tokeniser(
    pre: str, explicit: bool | None, expected: bool, image: GgufImage, tmp_path: Path
) -> None:
    image.set("tokenizer.ggml.pre", text_value(pre))
    value = None if explicit is None else (BOOL, bytes([explicit]))
    image.set("tokenizer.ggml.add_bos_token", value)
    assert open_model(image.write(tmp_path / "m.gguf")).tokenizer.add_bos is expected


def test_special_ids(image: GgufImage, tmp_path: Path) -> None:
    image.set("tokenizer.ggml.eos_token_id", u32(0))
    image.set("tokenizer.ggml.eot_token_id", u32(2))
    image.set("tokenizer.ggml.bos_token_id", u32(0xFFFF_FFFF))  # -1: none
    spec = open_model(image.write(tmp_path / "m.gguf")).tokenizer
    assert (spec.eos_ids, spec.bos_id) == ((0, 2), None)


def test_a_model_without_tokenizer_still_opens(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf", tokenizer=False, vocab=50)
    model = open_model(written.path)
    assert model.config.vocab_size == 50
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.model: is missing"):
        model.tokenizer  # noqa: B018


BROKEN_TOKENIZERS = {
    "tokenizer.ggml.merges": None,
    "tokenizer.ggml.merges[1]": ("tokenizer.ggml.merges", strings(["a b", "ab"])),
    "tokenizer.ggml.tokens": strings(["only", "two"]),
    "tokenizer.ggml.token_type[0]": (
        "tokenizer.ggml.token_type",
        (9, struct.pack("<IQ", 5, 286) + struct.pack("<i", 77) * 286),
    ),
    "tokenizer.ggml.bos_token_id": u32(286),
}


@pytest.mark.parametrize("field", BROKEN_TOKENIZERS)
def test_broken_tokenizers_name_the_field(field: str, image: GgufImage, tmp_path: Path) -> None:
    change = BROKEN_TOKENIZERS[field]
    if change is not None and isinstance(change[0], str):
        image.set(*change)
    else:
        image.set(field, change)
    model = open_model(image.write(tmp_path / "m.gguf"))
    with pytest.raises(ModelFileError) as caught:
        model.tokenizer  # noqa: B018
    assert caught.value.field == field


def test_reading_after_close_is_an_error(tmp_path: Path) -> None:
    model = open_model(make_tiny_gguf(tmp_path / "m.gguf").path)
    model.close()
    model.close()
    with pytest.raises(ModelFileError, match="closed"):
        model.tensor("embed")
    with pytest.raises(ModelFileError, match="is not in the file"):
        model.tensor("nonsense")
