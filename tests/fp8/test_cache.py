# SPDX-License-Identifier: Apache-2.0
"""The disk cache: what is written comes back, and nothing damaged is believed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError, UnsupportedModelError
from engine.fp8 import cache
from engine.fp8.model import load, open_cached, quantise_model, save
from engine.fp8.quantise import Grouping
from tests.helpers.random_source import RandomSource, tiny_config

ARRAYS = {
    "a": np.arange(300, dtype=np.uint8).reshape(3, 100),
    "b": np.linspace(0, 1, 7, dtype=np.float32),
    "c": np.zeros((0, 4), dtype=np.float16),
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "model.fp8"
    cache.write(path, "digest", {"n": 1}, ARRAYS)
    return path


def test_arrays_come_back(written: Path) -> None:
    found = cache.read(written, "digest")
    assert found.facts == {"n": 1}
    assert set(found.arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    assert [p.name for p in written.parent.iterdir()] == ["model.fp8"]


def test_another_model_file_is_refused(written: Path) -> None:
    with pytest.raises(ModelFileError, match="another model file"):
        cache.read(written, "other")


def test_every_truncation_is_refused(written: Path) -> None:
    whole = written.read_bytes()
    for size in [0, 1, 15, 16, 40, 200, 256, 300, len(whole) - 257]:
        written.write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            cache.read(written)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(position=st.integers(0, 900), value=st.integers(0, 255))
def test_a_changed_byte_is_noticed_or_harmless(written: Path, position: int, value: int) -> None:
    whole = bytearray(written.read_bytes())
    before, whole[position % len(whole)] = whole[position % len(whole)], value
    damaged = written.parent / "damaged"
    damaged.write_bytes(whole)
    try:
        found = cache.read(damaged, "digest")
    except ModelFileError:
        assert before != value
        return
    for name in set(found.arrays) & set(ARRAYS):
        assert found.arrays[name].tobytes() == ARRAYS[name].tobytes()


def test_a_failed_write_leaves_the_old_file(written: Path) -> None:
    before = written.read_bytes()
    with pytest.raises(ValueError, match="int64"):
        cache.write(written, "x", {}, {"a": np.zeros(3, dtype=np.int64)})
    assert written.read_bytes() == before


def test_source_digest_follows_content(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"one")
    first = cache.source_digest(file)
    file.write_bytes(b"two")
    assert cache.source_digest(file) != first
    assert cache.source_digest(tmp_path) != cache.source_digest(file)


@pytest.mark.parametrize("grouping", list(Grouping))
def test_a_model_survives_the_disk(tmp_path: Path, grouping: Grouping) -> None:
    model = quantise_model(RandomSource(tiny_config(bias=True, tied=False)), grouping)
    path = tmp_path / "m.fp8"
    save(model, path, "d")
    found = load(path, "d")
    assert found.config == model.config
    assert found.grouping is grouping
    for matrix, packed in model.matrices.items():
        np.testing.assert_array_equal(found.matrices[matrix].codes, packed.codes)
        np.testing.assert_array_equal(found.matrices[matrix].scales, packed.scales)
    assert found.bias is not None
    np.testing.assert_array_equal(found.norms, model.norms)
    assert found.nbytes == model.nbytes


def test_open_cached_quantises_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = RandomSource(tiny_config())
    source.path = tmp_path / "m.gguf"
    source.path.write_bytes(b"a model")
    path = tmp_path / "cache" / "m.fp8"
    first = open_cached(source, path)
    monkeypatch.setattr("engine.fp8.model.quantise_model", lambda *_: pytest.fail("again"))
    again = open_cached(source, path)
    np.testing.assert_array_equal(first.embed, again.embed)


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    source = RandomSource(tiny_config())
    source.path = tmp_path / "m.gguf"
    source.path.write_bytes(b"a model")
    path = tmp_path / "m.fp8"
    open_cached(source, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert open_cached(source, path).config == source.config
    assert path.stat().st_size == len(whole)


@pytest.mark.parametrize(
    "shape", [{"dim": 72}, {"ffn": 100}, {"head_dim": 24}, {"heads": (1, 1), "head_dim": 16}]
)
def test_widths_that_do_not_fit_tiles_are_refused(shape: dict[str, int]) -> None:
    with pytest.raises(UnsupportedModelError, match="multiple of"):
        quantise_model(RandomSource(tiny_config(**shape)))  # type: ignore[arg-type]
