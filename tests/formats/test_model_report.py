# SPDX-License-Identifier: Apache-2.0
"""check_model: the report on a sound model, and what it finds only by reading the weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import ModelFileError
from engine.formats.check import check_model
from engine.formats.source import TokenizerKind
from tests.helpers.gguf_image import GgufImage
from tests.helpers.gguf_writer import make_tiny_gguf, make_tiny_hf


def test_report_on_a_gguf_file(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf", quant="Q8_0", tied=True)
    calls: list[tuple[int, int]] = []
    report = check_model(written.path, lambda done, total: calls.append((done, total)))
    assert (report.format, report.architecture, report.name) == ("GGUF v3", "llama", "tiny")
    assert report.tensor_types == {"Q8_0": 15, "F32": 5}
    assert report.parameters == sum(values.size for values in written.weights.values())
    assert report.file_bytes == written.path.stat().st_size
    assert (report.context_length, report.vocab_size) == (256, 286)
    assert (report.tokenizer_kind, report.tokenizer_pre) == (TokenizerKind.BPE, "gpt-2")
    assert report.has_chat_template
    assert report.warnings == ()
    assert len(calls) == len(written.weights)
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]


def test_report_on_a_sharded_folder(tmp_path: Path) -> None:
    written = make_tiny_hf(tmp_path / "tiny", dtype="bfloat16", shards=2)
    report = check_model(written.path)
    assert (report.format, report.tensor_types) == ("safetensors", {"BF16": 21})
    files = written.path.glob("*.safetensors")
    assert report.file_bytes == sum(file.stat().st_size for file in files)


def test_warnings(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf")
    image = GgufImage.read(written.path)
    image.set("tokenizer.chat_template", None)
    image.set("tokenizer.ggml.pre", None)
    info = image.tensor("blk.1.ffn_up.weight")
    image.data[info.offset : info.offset + 64 * 128 * 4] = bytes(64 * 128 * 4)
    warnings = check_model(image.write(tmp_path / "hole.gguf")).warnings
    assert len(warnings) == 3
    assert warnings[0].startswith("tensor blk.1.ffn_up.weight holds zeros only")
    assert warnings[1].startswith("there is no chat template")
    assert "tokenizer.ggml.pre" in warnings[2]


def test_nan_in_the_last_weight_is_found(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf")
    content = bytearray(written.path.read_bytes())
    content[-4:] = b"\x00\x00\xc0\x7f"
    written.path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"tensor output\.weight: holds NaN"):
        check_model(written.path)


def test_progress_may_stop_the_check(tmp_path: Path) -> None:
    written = make_tiny_gguf(tmp_path / "m.gguf")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_model(written.path, stop)
