# SPDX-License-Identifier: Apache-2.0
"""Shortcuts: what can be used, what conflicts, and who is started when the settings change."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.hotkey.bindings import (
    MODIFIERS,
    Combination,
    CombinationError,
    HotkeyAction,
    bindings,
    parse,
)
from app.hotkey.follower import HotkeyActions, HotkeyFollower
from app.hotkey.portal import DESCRIPTIONS, trigger
from app.hotkey.source import Bindings, HotkeysUnavailableError, Press
from app.lifecycle.host import HostState
from app.settings import HotkeySettings, ModeName, Settings
from tests.helpers.companion import Desk
from tests.helpers.running_host import RunningHost
from tests.helpers.waiting import wait_until


@pytest.mark.parametrize(
    "text", ["<ctrl>+<alt>+a", "<cmd>+<shift>+<f5>", "<f12>", "<ctrl>++", "<alt>+<space>"]
)
def test_what_is_a_combination(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "from your typing"),
        ("<shift>+a", "from your typing"),
        ("<ctrl>", "a key is missing"),
        ("<ctrl>+<alt>", "a key is missing"),
        ("<ctrl>+abc", "is no key"),
        ("<super>+a", "is no modifier"),
        ("ctrl+a", "is no modifier"),
        ("+", "from your typing"),
        ("", "looks like"),
        ("<ctrl>+++a", "looks like"),
    ],
)
def test_what_is_none_is_explained(text: str, reason: str) -> None:
    with pytest.raises(CombinationError, match=reason):
        parse(text)


@given(st.text(max_size=20))
def test_any_text_is_a_combination_or_explained(text: str) -> None:
    with contextlib.suppress(CombinationError):
        assert parse(str(parse(text))) == parse(text)


def test_two_of_one_combination_conflict_and_the_first_keeps_it() -> None:
    used, problems = bindings(
        HotkeySettings(ask="<ctrl>+<alt>+a", pause="<alt>+<ctrl>+A", cancel="x", next_mode="")
    )
    assert list(used) == [HotkeyAction.ASK]
    assert "is that of 'ask' already" in problems["pause"]
    assert set(problems) == {"pause", "cancel"}


def test_every_action_has_its_setting_and_its_description() -> None:
    assert {action.value for action in HotkeyAction} == set(HotkeySettings.model_fields) - {
        "enabled"
    }
    assert set(DESCRIPTIONS) == set(HotkeyAction)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<ctrl>+<alt>+a", "CTRL+ALT+a"),
        ("<cmd>+<page_up>", "LOGO+Prior"),
        ("<f5>", "F5"),
        ("<ctrl>++", "CTRL+plus"),
    ],
)
def test_triggers_of_the_portal(text: str, expected: str) -> None:
    assert trigger(parse(text)) == expected


class FakeSource:
    """Writes down what it is told."""

    log: list[str]

    def __init__(self, log: list[str], refuses: bool = False) -> None:
        self.log = log
        self.refuses = refuses

    def start(self, wanted: Bindings, press: Press) -> None:
        if self.refuses:
            raise HotkeysUnavailableError("not on this desktop")
        self.log.append("start " + " ".join(f"{a.value}={c}" for a, c in wanted.items()))
        press(HotkeyAction.ASK)

    def stop(self) -> None:
        self.log.append("stop")


def state(**hotkeys: object) -> HostState:
    return HostState(Desk().state, Settings.model_validate({"hotkeys": hotkeys}))


def test_the_source_follows_the_settings() -> None:
    log: list[str] = []
    pressed: list[HotkeyAction] = []
    follower = HotkeyFollower(pressed.append, lambda: FakeSource(log))
    follower(state())
    follower(state(enabled=True, pause=""))
    wait_until(lambda: log == ["start ask=<ctrl>+<alt>+a"])
    follower(state(enabled=True, pause=""))
    follower(state(enabled=False))
    wait_until(lambda: log[-1:] == ["stop"])
    follower(state(enabled=True, ask="<f9>", pause=""))
    wait_until(lambda: log[-1:] == ["start ask=<f9>"])
    follower.close()
    assert log[-1:] == ["stop"]
    assert pressed == [HotkeyAction.ASK] * 2


@pytest.mark.expected_log("no shortcuts: not on this desktop")
def test_a_system_that_does_not_tell_is_no_crash() -> None:
    log: list[str] = []
    follower = HotkeyFollower(lambda _action: None, lambda: FakeSource(log, refuses=True))
    follower(state(enabled=True))
    follower.close()
    assert log == []


@pytest.mark.expected_log("shortcut pause")
def test_a_conflict_is_told() -> None:
    log: list[str] = []
    follower = HotkeyFollower(lambda _action: None, lambda: FakeSource(log))
    follower(state(enabled=True, pause="<ctrl>+<alt>+a"))
    follower.close()
    assert log == ["start ask=<ctrl>+<alt>+a", "stop"]


def test_shortcuts_do_what_the_commands_do(tmp_path: Path) -> None:
    with RunningHost(tmp_path) as running:
        press = HotkeyActions(running.host)
        press(HotkeyAction.ASK)
        assert running.pages == ["ask"]
        press(HotkeyAction.NEXT_MODE)
        assert running.wait(lambda: running.companion.state.mode is ModeName.CHAT)
        press(HotkeyAction.PAUSE)
        assert running.wait(lambda: running.companion.state.is_paused)
        press(HotkeyAction.PAUSE)
        assert running.wait(lambda: not running.companion.state.is_paused)
        press(HotkeyAction.CANCEL)


def test_a_combination_reads_as_it_is_written() -> None:
    assert str(Combination(frozenset(MODIFIERS), "f1")) == "<ctrl>+<alt>+<shift>+<cmd>+<f1>"
