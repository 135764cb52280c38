# SPDX-License-Identifier: Apache-2.0
"""The model store: what is added is there, what fails leaves nothing behind."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from app.models.errors import ModelExistsError, ModelStoreError, UnknownModelError
from app.models.store import ModelStore


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny.Q8_0.gguf"
    path.write_bytes(b"GGUF" + bytes(60))
    return path


def names(store: ModelStore) -> list[str]:
    return [model.name for model in store.list()]


def leftovers(store: ModelStore) -> list[str]:
    return [p.name for p in store.folder.iterdir() if p.name.startswith(".")]


def test_empty_store_lists_nothing_and_creates_nothing(store: ModelStore) -> None:
    assert store.list() == []
    assert not store.folder.exists()


@pytest.mark.parametrize("copy", [False, True])
def test_added_file_is_found_by_name(store: ModelStore, gguf: Path, copy: bool) -> None:
    added = store.add_path(gguf, copy=copy)
    assert added.name == "tiny.q8_0"
    assert added.linked is not copy
    found = store.find("tiny.q8_0")
    assert found.target.read_bytes() == gguf.read_bytes()
    assert found.size == 64
    assert leftovers(store) == []


@pytest.mark.parametrize("copy", [False, True])
def test_added_folder_is_found_by_name(store: ModelStore, tmp_path: Path, copy: bool) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    store.add_path(folder, copy=copy)
    assert (store.find("my-model").path / "config.json").is_file()
    assert names(store) == ["my-model"]


def test_paths_are_found_too(store: ModelStore, gguf: Path) -> None:
    assert store.find(str(gguf)).path == gguf


def test_unknown_name_says_what_there_is(store: ModelStore, gguf: Path) -> None:
    store.add_path(gguf, name="one")
    with pytest.raises(UnknownModelError, match="Installed: one"):
        store.find("two")


def test_taken_name_is_refused(store: ModelStore, gguf: Path) -> None:
    store.add_path(gguf, name="one")
    with pytest.raises(ModelExistsError, match="one"):
        store.add_path(gguf, name="ONE")


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "", "x" * 65, "a b"])
def test_names_that_could_leave_the_folder_are_refused(
    store: ModelStore, gguf: Path, name: str
) -> None:
    with pytest.raises(ModelStoreError):
        store.add_path(gguf, name=name) if name else store.place_for_file(name)
    assert not store.folder.exists() or names(store) == []


def test_other_files_and_folders_are_refused(store: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"x")
    with pytest.raises(ModelStoreError, match=r"not a \.gguf"):
        store.add_path(tmp_path / "x.bin")
    with pytest.raises(ModelStoreError, match=r"config\.json"):
        store.add_path(tmp_path)
    with pytest.raises(UnknownModelError, match="no such file"):
        store.add_path(tmp_path / "nothing.gguf")


def test_links_in_a_circle_and_pipes_are_refused(store: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").symlink_to(tmp_path / "b.gguf")
    (tmp_path / "b.gguf").symlink_to(tmp_path / "a.gguf")
    with pytest.raises(UnknownModelError, match="no such file"):
        store.add_path(tmp_path / "a.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelStoreError, match="neither a file nor a folder"):
        store.add_path(tmp_path / "pipe.gguf")


@pytest.mark.parametrize("path", ["", "/", "/dev/null"])
def test_what_is_no_model_is_not_found(store: ModelStore, path: str) -> None:
    with pytest.raises(UnknownModelError):
        store.find(path)


def test_a_model_that_cannot_be_removed_stays(
    store: ModelStore, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add_path(gguf, name="one")

    def fail(_self: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(ModelStoreError, match="was not removed"):
        store.remove("one")


def test_broken_link_is_listed_and_explained(store: ModelStore, gguf: Path) -> None:
    store.add_path(gguf, name="one")
    gguf.unlink()
    assert [m.broken for m in store.list()] == [True]
    with pytest.raises(UnknownModelError, match="which is gone"):
        store.find("one")
    store.remove("one")
    assert store.list() == []


def test_remove_takes_the_link_and_leaves_the_file(store: ModelStore, gguf: Path) -> None:
    store.add_path(gguf, name="one")
    store.remove("one")
    assert gguf.is_file()
    with pytest.raises(UnknownModelError):
        store.remove("one")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_failing_disk_leaves_no_model(
    store: ModelStore, gguf: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(source: Path, target: Path) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("shutil.copyfile", fail)
    with pytest.raises(ModelStoreError, match="Nothing was changed"):
        store.add_path(gguf, copy=True)
    assert names(store) == []
    assert leftovers(store) == []


def test_what_a_killed_download_left_is_swept_after_a_day(store: ModelStore, gguf: Path) -> None:
    for name, age_s in ((".partial-old", 100_000), (".partial-new", 60)):
        (store.folder / name).mkdir(parents=True)
        (store.folder / name / "model.gguf").write_bytes(b"half")
        began = time.time() - age_s
        os.utime(store.folder / name, (began, began))
    store.add_path(gguf, name="one")
    assert leftovers(store) == [".partial-new"]  # somebody may be at it
    assert names(store) == ["one"]


def test_unwritable_folder_is_explained(tmp_path: Path, gguf: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with pytest.raises(ModelStoreError, match="permissions"):
        ModelStore(blocker / "models").add_path(gguf)
