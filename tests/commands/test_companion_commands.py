# SPDX-License-Identifier: Apache-2.0
"""The commands that talk to a running companion, and what they say when there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import main
from app.companion.messages import (
    MAX_ASK_CHARS,
    Ask,
    CancelReply,
    EngineChanged,
    Forget,
    Message,
    Pause,
)
from app.models.store import ModelStore
from app.settings import ModeName
from engine.client import EngineState
from engine.messages import Chat, Command, Failed, ReplyFinished, ReplyGrew
from tests.helpers.running_host import RunningHost

SLOW = {"torch", "numpy", "PIL", "PySide6", "pydantic", "pystray", "tomlkit", "transformers"}


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    monkeypatch.setattr("app.ipc.client.runtime_folder", lambda: tmp_path)
    with RunningHost(tmp_path) as host:
        assert host.wait(lambda: host.companion.state.engine.value == "ready")
        yield host


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("app.ipc.client.runtime_folder", lambda: tmp_path)
    monkeypatch.setattr("app.config.store.settings_file", lambda: tmp_path / "settings.toml")
    return tmp_path


def thock(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.usefixtures("running")
def test_status_is_for_people_and_for_scripts() -> None:
    result = thock("status")
    assert result.exit_code == 0, result.output
    assert "mode       suggest\n" in result.output
    assert "keyboard   Test board, 126x32, 68 LEDs\n" in result.output
    assert json.loads(thock("status", "--json").output)["engine"] == "ready"


def test_pause_mode_and_their_like(running: RunningHost) -> None:
    assert thock("pause", "--minutes", "15").exit_code == 0
    assert running.wait(lambda: running.companion.state.is_paused)
    result = thock("status")
    assert result.exit_code == 1
    assert "paused, 15 min left" in result.output
    assert "is paused" in thock("ask", "why?").output
    thock("resume")
    assert running.wait(lambda: not running.companion.state.is_paused)
    assert thock("mode", "react").exit_code == 0
    assert running.wait(lambda: running.companion.state.mode is ModeName.REACT)
    assert thock("mode").output == "react\n"
    assert thock("mode", "sing").exit_code == 2
    for command in ("cancel", "forget", "quit"):
        assert thock(command).exit_code == 0
    assert running.quits == 1


def test_an_answer_is_printed_as_it_grows(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = running.engine.send

    def answer(command: Command) -> None:
        send(command)
        if isinstance(command, Chat):
            for piece in ("Because ", "it can."):
                running.mailbox.post(ReplyGrew(request=command.request, text=piece))
            running.mailbox.post(
                ReplyFinished(
                    request=command.request, reason="stop", tokens=4, first_token_ms=1,
                    milliseconds=2,
                )
            )  # fmt: skip

    monkeypatch.setattr(running.engine, "send", answer)
    for _ in range(2):
        result = thock("ask", "why", "so?")
        assert result.exit_code == 0, result.output
        assert result.output == "Because it can.\n"
    assert thock("mode").output == "suggest\n"


def test_a_profile_is_chosen_and_given_back(running: RunningHost) -> None:
    assert thock("profile").output == "none (automatic)\n"
    assert "profile" not in thock("status").output
    assert "no profile 'work'; there are: none" in thock("profile", "work").output
    running.host.change_settings({"profiles": {"work": {"mode": "chat"}}})
    assert thock("profile", "work").exit_code == 0
    assert thock("profile").output == "work (chosen)\n"
    assert "profile    work\n" in thock("status").output
    assert running.wait(lambda: thock("mode").output == "chat\n")
    result = thock("profile", "works")
    assert result.exit_code == 1
    assert "no profile 'works'; there are: work" in result.output
    assert thock("profile", "work", "--automatic").exit_code == 2
    assert thock("profile", "--automatic").exit_code == 0
    assert thock("profile").output == "none (automatic)\n"


def begins_then(running: RunningHost, monkeypatch: pytest.MonkeyPatch, *then: Message) -> None:
    """Every question gets the beginning of an answer, and then something else happens."""
    send = running.engine.send

    def answer(command: Command) -> None:
        send(command)
        if isinstance(command, Chat):
            running.mailbox.post(ReplyGrew(request=command.request, text="Because"))
            for message in then or (failed(command.request),):
                running.mailbox.post(message)

    monkeypatch.setattr(running.engine, "send", answer)


def failed(request: int) -> Failed:
    return Failed(request=request, code="engine-died", message="the engine ended")


ENDS = {
    "the engine ended": (),
    "the engine ended in the middle": (EngineChanged(EngineState.RESTARTING, "it was killed"),),
    "it was cancelled": (CancelReply(),),
    "Thock is paused": (Pause(),),
    "everything was forgotten": (Forget(),),
    "another question took its place": (Ask("and who?", number=99),),
}


@pytest.mark.parametrize("why", ENDS)
@pytest.mark.parametrize("mode", ModeName)
def test_an_answer_that_is_cut_short_is_an_error_with_its_reason_and_the_mode_stays(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch, why: str, mode: ModeName
) -> None:
    running.host.set_mode(mode)
    begins_then(running, monkeypatch, *ENDS[why])
    result = thock("ask", "why?")
    assert result.exit_code == 1
    assert why in result.stderr
    assert result.stdout in ("", "Because\n")  # events tell of the newest moment only
    assert thock("mode").output == f"{mode.value}\n"


def test_a_pause_between_the_look_and_the_question_is_told(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = running.host.ask

    def late(text: str) -> int:
        running.host.pauses.pause()
        return ask(text)

    monkeypatch.setattr(running.host, "ask", late)
    result = thock("ask", "why?")
    assert result.exit_code == 1
    assert "Thock is paused" in result.stderr


@pytest.mark.parametrize("question", ["\udcff\udcfe?", b"\xff\xfe?"])
def test_a_question_that_is_no_text_arrives_without_what_is_none(
    running: RunningHost, question: str | bytes
) -> None:
    if isinstance(question, str):
        result = thock("ask", "--no-wait", question)
    else:
        result = CliRunner().invoke(main, ("ask", "--no-wait"), input=question)
    assert result.exit_code == 0, result.output
    assert running.wait(lambda: any(isinstance(c, Chat) for c in running.engine.commands))


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("count", "limit"),
    [
        (MAX_ASK_CHARS + 1, f"At most {MAX_ASK_CHARS} characters fit."),
        (80_000, "too long: Thock takes 64 KiB"),
    ],
)
def test_a_question_that_is_too_long_is_refused_with_the_limit(count: int, limit: str) -> None:
    result = thock("ask", "x" * count)
    assert result.exit_code == 1
    assert limit in result.output


@pytest.mark.usefixtures("running")
def test_an_answer_that_never_comes_is_waited_for_no_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.commands.ask._LIMIT_S", 0.3)
    result = thock("ask", "why?")
    assert result.exit_code == 1
    assert "did not end" in result.output


def test_models_are_loaded_and_unloaded(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = running.folder / "models"
    monkeypatch.setattr("app.commands.model.ModelStore", lambda: ModelStore(models))
    models.mkdir()
    (models / "small.gguf").write_bytes(b"")
    assert thock("model", "load", "small").exit_code == 0
    assert running.wait(lambda: running.engine.switched == ["start small.gguf 2048"])
    assert thock("model", "unload").exit_code == 0
    assert running.wait(lambda: running.engine.switched[-1:] == ["stop"])
    assert thock("model", "load").exit_code == 0
    assert running.wait(lambda: running.engine.switched[-1:] == ["start small.gguf 2048"])
    result = thock("model", "load", "smal")
    assert result.exit_code == 1
    assert "Installed: small." in result.output
    assert str(running.host.settings.model) == "small"


def test_a_model_given_by_its_path_is_loaded_whatever_folder_the_companion_runs_in(
    running: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.commands.model.ModelStore", lambda: ModelStore(running.folder / "no"))
    (running.folder / "own.gguf").write_bytes(b"")
    monkeypatch.chdir(running.folder)
    assert thock("model", "load", "own.gguf").exit_code == 0
    assert running.host.settings.model == running.folder / "own.gguf"


def test_settings_go_through_the_running_companion(running: RunningHost) -> None:
    assert thock("settings", "set", "suggest.count", "2").exit_code == 0
    assert running.host.settings.suggest.count == 2
    assert thock("settings", "get", "suggest.count").output == "2\n"
    result = thock("settings", "set", "suggest.count", "9")
    assert result.exit_code == 1
    assert "suggest.count" in result.output
    thock("settings", "reset", "suggest")
    assert running.host.settings.suggest.count == 3
    assert thock("settings", "--page", "privacy").exit_code == 0
    assert running.pages == ["privacy"]


def test_settings_without_a_companion_are_those_of_the_file(nobody: Path) -> None:
    assert thock("settings", "set", "mode", "chat").exit_code == 0
    assert 'mode = "chat"' in (nobody / "settings.toml").read_text()
    assert thock("settings", "get", "mode").output == "chat\n"
    assert "suggest.count = 3" in thock("settings", "get").output
    assert json.loads(thock("settings", "get", "suggest", "--json").output)["count"] == 3
    assert "no setting 'nonsense'" in thock("settings", "get", "nonsense").output
    assert thock("settings", "set", "layout", "klingon").exit_code == 1
    assert "nonsense: There is no such setting." in thock("settings", "set", "nonsense", "1").output
    assert "no setting 'nonsense'" in thock("settings", "reset", "nonsense").output
    below = thock("settings", "set", "idle_wipe_s", "-1")
    assert "idle_wipe_s: At least 10" in below.output


@pytest.mark.usefixtures("nobody")
def test_without_a_companion_each_says_how_to_start_it() -> None:
    assert thock("status").exit_code == 3
    for words in (("status",), ("ask", "why?"), ("pause",), ("mode",), ("quit",), ("forget",)):
        assert "Thock does not run: start it with `thock`." in thock(*words).output


@pytest.mark.parametrize(
    "command", ["status", "ask", "pause", "mode", "profile", "settings", "quit"]
)
def test_they_import_nothing_slow(command: str) -> None:
    script = (
        f"import sys, app.cli, app.commands.{command};print(','.join({SLOW!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
