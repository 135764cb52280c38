# SPDX-License-Identifier: Apache-2.0
"""Profiles on a running companion: another program in front, another mode; and off means off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import ModeName
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import KeyPressed, LinkLost, LinkReady
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import board
from tests.helpers.running_host import RunningHost

PROFILES = {
    "game": {"applications": ["quake*"], "off": True},
    "code": {"applications": ["editor"], "mode": "chat"},
    "board": {"keyboards": ["Test*"], "lights": False},
}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningHost]:
    with RunningHost(tmp_path) as host:
        host.host.change_settings({"profiles": PROFILES})
        assert host.wait(lambda: profile_of(host) == "board")
        yield host


def profile_of(running: RunningHost) -> str | None:
    state = running.host.state
    return None if state is None else state.profile


def is_paused(running: RunningHost) -> bool:
    return running.companion.state.is_paused


def test_a_program_in_front_brings_its_profile_and_takes_it_along(running: RunningHost) -> None:
    running.host.application_changed("Editor")
    assert profile_of(running) == "code"
    assert running.wait(lambda: running.companion.state.mode is ModeName.CHAT)
    running.host.application_changed("")
    assert profile_of(running) == "board"
    assert running.wait(lambda: running.companion.state.mode is ModeName.SUGGEST)


def test_off_pauses_and_the_next_program_resumes(running: RunningHost) -> None:
    running.host.application_changed("Quake3")
    assert running.wait(lambda: is_paused(running))
    running.host.application_changed("mail")
    assert running.wait(lambda: not is_paused(running))


def test_the_persons_own_pause_outlives_the_game(running: RunningHost) -> None:
    running.host.pauses.pause()
    running.host.application_changed("Quake3")
    running.host.application_changed("mail")
    assert running.wait(lambda: is_paused(running))
    running.host.pauses.resume()
    assert running.wait(lambda: not is_paused(running))


def test_another_keyboard_takes_its_profile_along(running: RunningHost) -> None:
    running.hear(LinkLost("unplugged"))
    assert running.wait(lambda: profile_of(running) == "")
    running.hear(LinkReady(board()))
    assert running.wait(lambda: profile_of(running) == "board")


def test_a_change_of_the_profiles_holds_at_once(running: RunningHost) -> None:
    running.host.application_changed("mail")
    running.host.change_settings({"profiles": {"mail": {"applications": ["mail"], "off": True}}})
    assert running.wait(lambda: is_paused(running) and profile_of(running) == "mail")
    running.host.change_settings({"profiles": None})
    assert running.wait(lambda: not is_paused(running) and profile_of(running) == "")


def test_what_was_typed_in_one_program_is_not_seen_in_the_next(running: RunningHost) -> None:
    def shows_ab() -> bool:
        frame = running.keyboard.frame
        return isinstance(frame, TextFrame) and any("ab" in row for row in frame.rows)

    for usage in (Usage.A, Usage.B):
        running.hear(KeyPressed(usage, 0, 0, device_ms=0, host_s=0.0))
    assert running.wait(shows_ab)
    running.host.application_changed("mail")
    assert running.wait(lambda: not shows_ab())
