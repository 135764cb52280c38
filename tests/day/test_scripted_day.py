# SPDX-License-Identifier: Apache-2.0
"""Two hours at a keyboard: all modes, layouts, both languages, other programs, pauses, a cable pulled out.

The pictures in tests/golden/oled/day are what the panel held at each named moment, as the firmware core
drew it. What was typed while nobody was to read it must be nowhere afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.lifecycle.pauses import PauseReason
from app.settings import ModeName
from engine.client import EngineState
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.usage import Usage
from tests.helpers.day_desk import DayDesk
from tests.helpers.golden import assert_sheet

TWO_HOURS_S = 7200
CANARY = "zq7canary"
PROFILES = {
    "work": {"applications": ["editor"], "mode": "chat", "persona": "duck"},
    "game": {"applications": ["quake*"], "off": True},
    "letter": {"applications": ["mailer"], "layout": "de"},
}


class Album:
    """Named pictures of the panel."""

    def __init__(self, desk: DayDesk) -> None:
        self._desk = desk
        self.pictures: dict[str, BitmapFrame] = {}

    def take(self, name: str) -> None:
        assert name not in self.pictures
        self.pictures[name] = self._desk.panel


@contextmanager
def unread(desk: DayDesk) -> Iterator[None]:
    """Keys are typed that nobody may read."""
    desk.pass_time(1)
    asked = len(desk.engine.asked)
    yield
    desk.type(CANARY + " ")
    desk.pass_time(2)
    assert desk.engine.asked[asked:] == [], "something was asked while no keys were read"


def morning(desk: DayDesk, album: Album) -> None:
    """The model loads; words are suggested, one is typed by the keyboard; a question from in between."""
    desk.pass_time(1)
    desk.engine_is(EngineState.LOADING)
    desk.type("Good")
    desk.pass_time(1)
    album.take("loading")
    desk.engine_is(EngineState.READY)
    desk.type(" mor")
    desk.pass_time(0.5)
    album.take("suggest")
    desk.change({"suggest": {"accept": True}, "profiles": PROFILES})
    desk.type("It is mor")
    desk.pass_time(0.5)
    desk.macro(4)
    assert desk.typed_by_board == "ning of the"
    desk.pass_time(3)
    album.take("accepted")
    desk.capture("why is the sky blue?\n")
    desk.pass_time(0.3)
    album.take("asked")
    desk.pass_time(3)
    album.take("answer")
    desk.pass_time(15)
    album.take("last page")
    desk.press(Usage.DOWN)
    desk.pass_time(1)
    assert desk.state.mode is ModeName.SUGGEST
    for _ in range(8):
        desk.type("the people of the town ask a question. ", gap_s=0.3)
        desk.pass_time(40)
    album.take("typed on")


def work(desk: DayDesk, album: Album) -> None:
    """A profile brings chat and another persona; a password is typed in a pause; moods of lines and macros."""
    desk.front("Editor")
    assert desk.state.mode is ModeName.CHAT
    desk.type("fix my loop")
    album.take("duck asked")
    desk.type("\n")
    desk.pass_time(4)
    album.take("duck")
    desk.front("terminal")
    assert desk.state.mode is ModeName.SUGGEST
    desk.macro(2)
    with unread(desk):
        album.take("paused")
    desk.macro(2)
    desk.type("ls ")
    desk.pass_time(1)
    album.take("resumed")
    desk.macro(0)
    desk.macro(0)
    assert desk.state.mode is ModeName.REACT
    desk.pass_time(3)
    desk.type("great, it works!\n")
    desk.pass_time(1)
    album.take("mood of a line")
    desk.macro(7)
    desk.pass_time(2)
    album.take("mood of a macro")
    for number in range(12):
        desk.type(f"line number {number}\n", gap_s=0.2)
        desk.pass_time(45)
    desk.macro(0)


def noon(desk: DayDesk, album: Album) -> None:
    """The screen is locked, the person is away long enough that all is forgotten; a game is left alone."""
    desk.type("before lunch ")
    desk.host.pauses.begin(PauseReason.LOCKED)
    with unread(desk):
        album.take("locked")
    desk.host.pauses.end(PauseReason.LOCKED)
    desk.pass_time(1)
    desk.type("back ")
    desk.pass_time(130)
    album.take("dark")
    assert not desk.lab.core.display_taken
    desk.pass_time(1500)
    desk.type("x")
    desk.pass_time(1)
    assert desk.state.lines[0].strip("_ ") == "x", "what was typed before the rest is forgotten"
    desk.front("Quake III")
    with unread(desk):
        album.take("game")
    desk.front("browser")
    desk.pass_time(1)


def afternoon(desk: DayDesk, album: Album) -> None:
    """Another language, other layouts, an engine that dies, a cable that is pulled out."""
    desk.change({"language": "zh_CN"})
    desk.pass_time(3)
    desk.macro(0)
    desk.pass_time(3)
    album.take("chat in Chinese")
    desk.type("hello\n")
    desk.pass_time(4)
    album.take("answer in Chinese")
    desk.macro(0)
    desk.type("so tired\n")
    desk.pass_time(3)
    album.take("mood in Chinese")
    desk.change({"mode": "suggest", "language": "en"})
    desk.macro(0)
    desk.front("Mailer")
    assert desk.companion_layout == "de"
    desk.type("schöne Grüße ")
    desk.pass_time(3)
    album.take("German layout")
    desk.front("other")
    for layout, text in (("fr", "déjà vu, ça va "), ("es", "¿qué tal? "), ("dvorak", "the same ")):
        desk.change({"layout": layout})
        desk.type(text)
        desk.pass_time(3)
        album.take(f"{layout} layout")
    desk.change({"layout": "us"})
    desk.type("and now ")
    desk.engine_is(EngineState.RESTARTING, "it ended")
    desk.pass_time(3)
    album.take("engine died")
    desk.engine_is(EngineState.READY)
    desk.type("on we go ")
    desk.pass_time(1)
    desk.replug(20)
    album.take("plugged in again")
    desk.type("after ")
    desk.pass_time(3)
    album.take("typed after it")


def evening(desk: DayDesk, album: Album) -> None:
    """Until two hours are over, then the end."""
    while desk.now < TWO_HOURS_S - 60:
        desk.type("a few words more ", gap_s=0.25)
        desk.pass_time(50)
    desk.pass_time(TWO_HOURS_S - desk.now)
    album.take("evening")


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("128x64", BoardConfig(panel_width=128, panel_height=64)),
        ("128x32", BoardConfig(panel_width=128, panel_height=32)),
    ],
)
def test_two_hours_at_the_keyboard(
    name: str, board: BoardConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), DayDesk(tmp_path, board) as desk:
        album = Album(desk)
        for part in (morning, work, noon, afternoon, evening):
            part(desk, album)
        assert desk.now == pytest.approx(TWO_HOURS_S, abs=60)
        assert desk.state.dropped == 0
        assert desk.state.error == ""
        state = desk.state
    assert_sheet(album.pictures, f"day/{name}", across=4)
    assert CANARY not in caplog.text
    assert CANARY not in repr(state) + state.reply + "".join(state.lines)
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.name for file in written] == ["settings.toml"]
    assert CANARY not in written[0].read_text()
