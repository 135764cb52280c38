# SPDX-License-Identifier: Apache-2.0
"""Settings that name something that is not there, or cannot be used: refused when set, told when read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.choices import Choices
from app.cli import main
from app.config.problems import SettingsError
from app.config.store import SettingsStore
from app.doctor.folders import check_settings
from app.doctor.report import CheckStatus
from app.ipc.protocol import IpcError
from app.models.store import ModelStore
from app.settings_window.companion_link import CompanionLink
from app.settings_window.edits import Edits
from tests.helpers.running_host import RunningHost

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "chat.persona": ({"chat": {"persona": "nobody"}}, "no persona 'nobody'; there are"),
    "profiles.work.persona": ({"profiles": {"work": {"persona": "nobody"}}}, "no persona 'nobody'"),
    "model": ({"model": "nothing.gguf"}, "no model 'nothing.gguf'"),
    "hotkeys.ask": ({"hotkeys": {"ask": "<ctrl>+"}}, ""),
    "hotkeys.cancel": ({"hotkeys": {"cancel": "x"}}, "it would take a key from your typing"),
    "hotkeys.next_mode": ({"hotkeys": {"next_mode": "<hyper>+x"}}, "is no modifier"),
    "hotkeys.pause": ({"hotkeys": {"ask": "<ctrl>+<alt>+p"}}, "is that of 'ask' already"),
}


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    choices = Choices(ModelStore(tmp_path / "models"), tmp_path / "personas")
    return SettingsStore(tmp_path / "settings.toml", choices)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    monkeypatch.setattr("app.ipc.client.runtime_folder", lambda: tmp_path)
    with RunningHost(tmp_path) as host:
        assert host.wait(lambda: host.host.state is not None)
        yield host


def thock(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize("place", WRONG)
def test_a_change_to_it_is_refused_and_nothing_is_stored(store: SettingsStore, place: str) -> None:
    changes, reason = WRONG[place]
    with pytest.raises(SettingsError) as refused:
        store.change(changes)
    (problem,) = refused.value.problems
    assert problem.place == place
    assert reason in problem.text
    assert not store.path.exists()


@pytest.mark.parametrize("place", WRONG)
def test_from_the_file_it_is_told_and_other_settings_can_still_be_changed(
    store: SettingsStore, place: str
) -> None:
    free = SettingsStore(store.path)
    free.change(WRONG[place][0])
    (problem,) = store.load().problems
    assert problem.place == place
    assert store.change({"mode": "chat"}).mode.value == "chat"
    found = check_settings(store)
    assert found.status is CheckStatus.WARNING
    assert place in found.text


def test_what_is_there_is_taken(store: SettingsStore, tmp_path: Path) -> None:
    assert check_settings(store).status is CheckStatus.OK
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "small.gguf").touch()
    (tmp_path / "personas").mkdir()
    (tmp_path / "personas" / "bard.toml").write_text('colour = [1, 2, 3]\n[en]\nprompt = "Sing."')
    store.change({"model": "small", "chat": {"persona": "bard"}, "hotkeys": {"ask": "<ctrl>+<f5>"}})
    assert store.load().problems == ()


@pytest.mark.parametrize("place", WRONG)
def test_the_running_companion_refuses_it_on_the_command_line_and_beside_the_field(
    running: RunningHost, place: str
) -> None:
    changes, reason = WRONG[place]
    name, value = "", changes
    while isinstance(value, dict):
        (key, value), *_ = value.items()
        name = f"{name}.{key}" if name else key
    result = thock("settings", "set", name, json.dumps(value))
    assert result.exit_code == 1
    assert reason in result.output
    link = CompanionLink(running.folder, running.store)
    try:
        edits = Edits(link)
        path = tuple(name.split("."))
        if path[0] == "profiles":
            path, value = ("profiles",), {"work": {"persona": "nobody"}}
        problem = edits.change(path, Path(value) if path == ("model",) else value)
        assert problem is not None
        assert problem.path == path
        assert reason in problem.text
    finally:
        link.close()


def test_the_status_names_what_is_wrong_until_it_is_mended(running: RunningHost) -> None:
    SettingsStore(running.store.path).change({"chat": {"persona": "nobody"}})
    running.host.change_settings({"mode": "chat"})
    assert "chat.persona: there is no persona 'nobody'" in thock("status").output
    assert json.loads(thock("status", "--json").output)["settings_problems"][0][0] == "chat.persona"
    thock("settings", "reset", "chat.persona")
    assert "nobody" not in thock("status").output


@pytest.mark.parametrize("words", [("settings", "--page"), ("settings", "open", "--page")])
def test_a_page_that_there_is_not_is_refused_with_those_that_there_are(
    running: RunningHost, words: tuple[str, ...]
) -> None:
    result = thock(*words, "foo")
    assert result.exit_code == 2
    assert "'status'" in result.output
    assert "'first-steps'" in result.output
    assert running.pages == []
    with running.visitor() as visitor, pytest.raises(IpcError):
        visitor.request("show", page="foo")
    assert running.pages == []
    assert thock(*words, "first-steps").exit_code == 0
    assert running.pages == ["first-steps"]
