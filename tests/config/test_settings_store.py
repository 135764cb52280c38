# SPDX-License-Identifier: Apache-2.0
"""The settings file: what is read of it, what a change leaves in it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from app.config.migrations import SCHEMA_VERSION, migrate
from app.config.problems import SettingsError
from app.config.store import SettingsStore
from app.i18n import Language
from app.settings import Appearance, ModeName, Settings

GOLDEN = Path(__file__).parents[1] / "golden" / "config"


def test_without_a_file_the_defaults_hold_and_nothing_is_written(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.toml")
    loaded = store.load()
    assert loaded.settings == Settings()
    assert loaded.problems == ()
    assert list(tmp_path.iterdir()) == []


def test_a_change_is_stored_and_only_it(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "folder" / "settings.toml")
    changed = store.change({"suggest": {"count": 2}, "mode": "chat"})
    assert (changed.suggest.count, changed.mode) == (2, ModeName.CHAT)
    assert store.load().settings == changed
    stored = tomllib.loads(store.path.read_text())
    assert stored == {"schema_version": SCHEMA_VERSION, "suggest": {"count": 2}, "mode": "chat"}


def test_none_sets_the_default_again(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.toml")
    store.change({"suggest": {"count": 2}, "model": "some.gguf"})
    assert store.change({"suggest": {"count": None}, "model": None}) == Settings()
    assert tomllib.loads(store.path.read_text()) == {"schema_version": SCHEMA_VERSION}


def test_values_are_stored_in_the_type_of_the_setting(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "settings.toml")
    store.change({"suggest": {"count": "2"}, "idle_wipe_s": 60})
    stored = tomllib.loads(store.path.read_text())
    assert stored["suggest"]["count"] == 2
    assert isinstance(stored["idle_wipe_s"], float)


def test_comments_order_and_spacing_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(
        "# my file\nlayout = 'us'   # at home\n\nmode = 'chat' # for now\n\n[chat] # talk\n"
        "# few\nhistory_turns = 1\n"
    )
    SettingsStore(path).change({"mode": "react", "chat": {"max_tokens": 7}})
    assert path.read_text() == (
        "# my file\nlayout = 'us'   # at home\n\nmode = \"react\" # for now\nschema_version = 1\n\n"
        "[chat] # talk\n# few\nhistory_turns = 1\nmax_tokens = 7\n"
    )


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"suggest": {"count": 4}}, "suggest.count"),
        ({"layout": "klingon"}, "layout"),
        ({"no_such": 1}, "no_such"),
        ({"suggest": 3}, "suggest"),
        ({"general": {"appearance": "pink"}}, "general.appearance"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    tmp_path: Path, changes: dict[str, object], place: str
) -> None:
    store = SettingsStore(tmp_path / "settings.toml")
    store.change({"mode": "chat"})
    before = store.path.read_bytes()
    with pytest.raises(SettingsError) as caught:
        store.change(changes)
    assert [problem.place for problem in caught.value.problems] == [place]
    assert store.path.read_bytes() == before


def test_only_what_is_wrong_is_left_out_and_the_file_is_backed_up_once(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    text = "mode = 'chat'\ncontext_chars = 1\nnonsense\n[suggest]\ncount = 2\ninterval_s = 'x'\n"
    path.write_text(text)
    loaded = SettingsStore(path).load()
    assert (loaded.settings.mode, loaded.settings.suggest.count) == (ModeName.CHAT, 2)
    assert loaded.settings.context_chars == Settings().context_chars
    assert [p.place for p in loaded.problems] == ["line 3", "context_chars", "suggest.interval_s"]
    assert loaded.backup is not None
    assert loaded.backup.read_text() == text
    assert SettingsStore(path).load().backup == loaded.backup
    assert len(list(tmp_path.iterdir())) == 2
    SettingsStore(path).change({"layout": "us"})
    assert SettingsStore(path).load().problems == ()


def test_a_file_of_a_newer_version_is_read_and_never_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"schema_version = {SCHEMA_VERSION + 1}\nmode = 'chat'\nfuture = 1\n")
    store = SettingsStore(path)
    before = path.read_bytes()
    assert store.load().settings.mode is ModeName.CHAT
    with pytest.raises(SettingsError, match="newer Thock"):
        store.change({"mode": "react"})
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SettingsStore(tmp_path / "file" / "settings.toml")
    assert store.load().settings == Settings()
    with pytest.raises(SettingsError, match="cannot be written"):
        store.change({"mode": "chat"})


def test_there_is_a_golden_file_for_every_version() -> None:
    assert sorted(p.name for p in GOLDEN.iterdir()) == [
        f"v{version}.toml" for version in range(1, SCHEMA_VERSION + 1)
    ]


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda p: p.stem)
def test_files_of_all_versions_are_read_without_a_problem(path: Path) -> None:
    loaded = SettingsStore(path).load()
    assert loaded.problems == ()
    settings = loaded.settings
    assert (settings.mode, settings.language) == (ModeName.CHAT, Language.ZH_CN)
    assert (settings.suggest.count, settings.chat.reading_speed) == (2, 20.5)
    assert settings.general.appearance is Appearance.DARK
    assert str(settings.model) == "smollm2"


def test_migrations_run_one_after_the_other() -> None:
    steps = {
        1: lambda data: {"b": data["a"]},
        2: lambda data: {"c": data["b"] + 1},
    }
    assert migrate({"schema_version": 1, "a": 1}, steps, newest=3) == {"c": 2}
    assert migrate({"schema_version": 2, "b": 1}, steps, newest=3) == {"c": 2}
    assert migrate({"schema_version": 9, "z": 1}, steps, newest=3) == {"z": 1}
