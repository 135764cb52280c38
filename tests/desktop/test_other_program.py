# SPDX-License-Identifier: Apache-2.0
"""Another program has the keyboard: the person is told who, in their language, and can say when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import main
from app.companion.away import Away
from app.i18n import Catalog, Language, translation
from app.lifecycle.followers import Notifier
from app.tray.actions import TrayActions
from app.tray.menu import Action, Row, Shape, keyboard_text, menu, shape
from firmware_bridge.events import LinkLost, LinkReady
from firmware_bridge.neighbours import QuietTimes
from tests.helpers.companion import board
from tests.helpers.running_host import RunningHost

CHINESE = "VIA 正在使用键盘。请关闭它，然后点“继续”。"
ENGLISH = "VIA is using the keyboard. Close it, then resume."


def left_open() -> Away:
    """What the link says where nobody tells whether VIA is still open."""
    quiet = QuietTimes()
    quiet.notice(b"\x01\0\x0c" + bytes(29), 10)
    quiet.notice(b"\x12\0\0\x1c" + bytes(28), 11)
    return Away(quiet.told, quiet.is_left_open)


def waited_for() -> Away:
    """The same for a program that only sends."""
    quiet = QuietTimes()
    quiet.notice(b"\x21" + bytes(31), 10)
    quiet.notice(b"\x21" + bytes(31), 11)
    return Away(quiet.told, quiet.is_left_open)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHost]:
    monkeypatch.setattr("app.ipc.client.runtime_folder", lambda: tmp_path)
    with RunningHost(tmp_path) as host:
        assert host.wait(lambda: host.companion.state.keyboard is not None)
        yield host


def lose(running: RunningHost, away: Away) -> None:
    running.away = away
    running.hear(LinkLost("VIA is using the keyboard"))
    assert running.wait(lambda: running.companion.state.keyboard is None)


def find_back(running: RunningHost) -> None:
    running.hear(LinkReady(board()))
    assert running.wait(lambda: running.companion.state.keyboard is not None)


@pytest.mark.parametrize(("language", "text"), [(Language.EN, ENGLISH), (Language.ZH_CN, CHINESE)])
def test_status_and_resume(
    running: RunningHost, language: Language, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tr = translation(language, Catalog.COMMANDS)
    monkeypatch.setattr("app.commands.speech.speech", lambda: tr)
    runner = CliRunner()
    assert text not in runner.invoke(main, ["status"]).output
    lose(running, left_open())
    assert text in runner.invoke(main, ["status"]).output
    assert runner.invoke(main, ["resume"]).exit_code == 0
    assert running.away is None
    find_back(running)
    assert "Test board" in runner.invoke(main, ["status"]).output


def test_the_tray_offers_to_resume(running: RunningHost) -> None:
    tr = translation(Language.ZH_CN, Catalog.DESKTOP)
    lose(running, left_open())
    state = running.host.state
    assert state is not None
    assert keyboard_text(state, tr) == CHINESE
    assert menu(state, str)[0] == Row(ENGLISH)
    assert Row("Resume", Action.RESUME) in menu(state, str)
    assert shape(state) is Shape.PAUSED
    TrayActions(running.host, lambda _text: None)(Action.RESUME)
    assert running.away is None
    state = running.host.state
    assert state is not None
    assert Row("Resume", Action.RESUME) not in menu(state, str)


def test_a_program_that_is_waited_for_needs_nobody(running: RunningHost) -> None:
    lose(running, waited_for())
    state = running.host.state
    assert state is not None
    assert keyboard_text(state, str) == "SignalRGB is using the keyboard. Thock goes on after it."
    assert Row("Resume", Action.RESUME) not in menu(state, str)
    assert shape(state) is Shape.NO_KEYBOARD


def test_the_pause_key_of_the_computer_resumes_too(running: RunningHost) -> None:
    lose(running, left_open())
    running.host.toggle_pause()
    assert running.away is None
    assert not running.companion.state.is_paused


def test_a_notification_says_who_it_is(running: RunningHost) -> None:
    notes: list[tuple[str, str]] = []
    tr = translation(Language.ZH_CN, Catalog.DESKTOP)
    running.host.listen(Notifier(lambda title, text: notes.append((title, text)), lambda _: tr))
    running.host.change_settings({"mode": "chat"})  # a state with the keyboard
    lose(running, left_open())
    assert running.wait(lambda: bool(notes))
    assert notes == [("Thock", CHINESE)]


def test_who_listens_is_told_of_a_keyboard_that_never_was_ready(running: RunningHost) -> None:
    running.hear(LinkLost("it went away"))
    assert running.wait(lambda: running.companion.state.keyboard is None)
    told: list[Away | None] = []
    running.host.listen(lambda state: told.append(state.away))
    running.away = left_open()
    running.host.keyboard_moved()
    running.host.keyboard_moved()  # nothing new
    assert told == [left_open()]
    running.away = None  # it was pulled out
    running.host.keyboard_moved()
    assert told == [left_open(), None]
    running.host.close()
    running.away = left_open()  # the tray is gone
    running.host.keyboard_moved()
    assert len(told) == 2
