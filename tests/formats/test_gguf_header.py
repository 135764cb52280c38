# SPDX-License-Identifier: Apache-2.0
"""Header and metadata, against files that gguf-py writes and against arbitrary bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.formats import open_model
from engine.formats.gguf_header import read_header
from engine.formats.gguf_metadata import Metadata
from engine.formats.mapped_file import MappedFile
from tests.helpers.gguf_image import GgufImage, f32, strings, text_value, u32

INTEGERS = {
    gguf.GGUFValueType.UINT8: (0, 2**8 - 1),
    gguf.GGUFValueType.INT8: (-(2**7), 2**7 - 1),
    gguf.GGUFValueType.UINT16: (0, 2**16 - 1),
    gguf.GGUFValueType.INT16: (-(2**15), 2**15 - 1),
    gguf.GGUFValueType.UINT32: (0, 2**32 - 1),
    gguf.GGUFValueType.INT32: (-(2**31), 2**31 - 1),
    gguf.GGUFValueType.UINT64: (0, 2**64 - 1),
    gguf.GGUFValueType.INT64: (-(2**63), 2**63 - 1),
}
integers = st.sampled_from(list(INTEGERS)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.integers(*INTEGERS[kind]))
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def write(folder: Path, values: dict[str, tuple[gguf.GGUFValueType, Any]]) -> MappedFile:
    writer = gguf.GGUFWriter(folder / "m.gguf", "llama")
    for key, (kind, value) in values.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, kind)
    writer.add_tensor("t", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return MappedFile(folder / "m.gguf")


@settings(deadline=None)  # writes files; the machine may be busy
@given(
    st.lists(integers, max_size=8), st.lists(texts, min_size=1, max_size=30), texts, st.booleans()
)
def test_values_come_back(
    numbers: list[tuple[gguf.GGUFValueType, int]], words: list[str], word: str, flag: bool
) -> None:
    values: dict[str, tuple[gguf.GGUFValueType, Any]] = {
        f"n.{i}": pair for i, pair in enumerate(numbers)
    }
    values["words"] = (gguf.GGUFValueType.ARRAY, words)
    values["word"] = (gguf.GGUFValueType.STRING, word)
    values["flag"] = (gguf.GGUFValueType.BOOL, flag)
    values["real"] = (gguf.GGUFValueType.FLOAT64, 0.1)
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), values)
        metadata = read_header(file).metadata
        for key, (_, number) in values.items():
            if key.startswith("n."):
                assert metadata.integer(key, -(2**63), 2**64) == number
        assert metadata.texts("words") == words
        assert metadata.count("words") == len(words)
        # gguf-py leaves an empty string out
        assert metadata.text("word", 1000, "") == word
        assert metadata.flag("flag", not flag) is flag
        assert metadata.real("real", 0.0, 1.0) == 0.1
        file.close()


@settings(deadline=None)
@given(st.binary(max_size=400), st.integers(0, 2), st.integers(0, 3))
def test_arbitrary_bytes_are_refused(noise: bytes, n_tensors: int, n_keys: int) -> None:
    head = b"GGUF" + (3).to_bytes(4, "little")
    counts = n_tensors.to_bytes(8, "little") + n_keys.to_bytes(8, "little")
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate((noise, head + noise, head + counts + noise)):
            path = Path(folder) / f"{number}.gguf"
            path.write_bytes(content)
            with pytest.raises(ModelFileError) as caught:
                open_model(path)
            assert caught.value.field
            assert str(path) in str(caught.value)


@pytest.fixture
def metadata(tmp_path: Path) -> Metadata:
    image = GgufImage([], [], bytearray())
    image.set("number", u32(7)).set("real", f32(0.5)).set("text", text_value("word"))
    image.set("texts", strings(["a"]))
    return read_header(MappedFile(image.write(tmp_path / "m.gguf"))).metadata


def test_defaults_and_membership(metadata: Metadata) -> None:
    assert list(metadata) == ["number", "real", "text", "texts"]
    assert metadata.integer("none", 0, 9, 3) == 3
    assert metadata.real("none", 0, 9, 0.25) == 0.25
    assert metadata.real("number", 0, 9) == 7.0
    assert metadata.text("none", 9, "x") == "x"
    assert metadata.count("none") == 0
    assert "none" not in metadata


def test_wrong_types_and_ranges_name_the_key(metadata: Metadata) -> None:
    with pytest.raises(ModelFileError, match="number: is 7, allowed"):
        metadata.integer("number", 0, 6)
    with pytest.raises(ModelFileError, match="real: is of type FLOAT32"):
        metadata.integer("real", 0, 6)
    with pytest.raises(ModelFileError, match="none: is missing"):
        metadata.integer("none", 0, 6)
    with pytest.raises(ModelFileError, match=r"real: is 0\.5, allowed"):
        metadata.real("real", 1.0, 2.0)
    with pytest.raises(ModelFileError, match="text: is 4 bytes long"):
        metadata.text("text", 3)
    with pytest.raises(ModelFileError, match="number: is of type UINT32, not a string"):
        metadata.text("number", 3)
    with pytest.raises(ModelFileError, match="text: is of type STRING"):
        metadata.flag("text", False)
    with pytest.raises(ModelFileError, match="text: is of type STRING, not an array"):
        metadata.texts("text")
    with pytest.raises(ModelFileError, match="texts: is an array of STRING, not of numbers"):
        metadata.numbers("texts")
