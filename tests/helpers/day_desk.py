# SPDX-License-Identifier: Apache-2.0
"""A whole working place in invented time: settings file, profiles, pauses, companion, link, firmware core.

Made up are the wire, the clock, and what the model answers. The settings file is real.
"""

from __future__ import annotations

from pathlib import Path

from app.companion.core import Companion, Mailbox
from app.companion.messages import EngineChanged, Message
from app.companion.own_files import OwnFiles
from app.companion.state import CompanionState
from app.config.store import Changes, SettingsStore
from app.lifecycle.engine_switch import EngineSwitch
from app.lifecycle.host import CompanionHost
from engine.client import EngineState
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.events import LinkLost
from firmware_bridge.firmware.virtual_board import ACCEPT_KEY
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from tests.helpers.board_desk import BoardPort
from tests.helpers.day_engine import DayEngine
from tests.helpers.running_host import SwitchedEngine
from tests.helpers.session_lab import SessionLab

_FINE_S = 0.005
_COARSE_S = 0.25


class DayDesk:
    """`now` in seconds since the board was plugged in. Use it with `with`."""

    def __init__(self, folder: Path, board: BoardConfig) -> None:
        self.lab = SessionLab(board)
        self._began = self.lab.now
        self._given = 0
        self._inbox: list[Message] = []
        self.typed_by_board = ""
        self.engine = DayEngine(lambda: self.lab.now)
        self.store = SettingsStore(folder / "settings.toml")
        self.switch = EngineSwitch(SwitchedEngine([]), lambda _state, _detail: None)
        self.host = CompanionHost(
            self._inbox.append, self.switch, self.store, {},
            keyboard_name=lambda: "Desk board", show_page=lambda _page: None, quit_=lambda: None,
        )  # fmt: skip
        own = OwnFiles(
            folder / "words.txt", folder / "chat.json", folder / "personas", folder / "moods.toml"
        )
        self.companion = Companion(
            Mailbox(), BoardPort(self.lab), self.engine, self.host.settings,
            lambda: self.lab.now, own,
        )  # fmt: skip
        self.companion.subscribe(self.host.observe)

    def __enter__(self) -> DayDesk:
        return self

    def __exit__(self, *_: object) -> None:
        self.host.close()
        self.switch.close()

    @property
    def now(self) -> float:
        return self.lab.now - self._began

    @property
    def state(self) -> CompanionState:
        return self.companion.state

    @property
    def panel(self) -> BitmapFrame:
        """What the panel shows, turned to how a person sees it."""
        return self.lab.core.picture()

    def post(self, message: Message) -> None:
        """A message of another part of the program."""
        self._inbox.append(message)
        self._settle()

    def engine_is(self, state: EngineState, detail: str = "") -> None:
        if state is not EngineState.READY:
            self.engine.die()
        self.post(EngineChanged(state, detail))

    def change(self, changes: Changes) -> None:
        """Somebody changes settings in the window."""
        self.host.change_settings(changes)
        self._settle()

    def front(self, application: str) -> None:
        """Another program comes to the front."""
        self.host.application_changed(application)
        self._settle()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, finely at first: for so long answers and pages may come."""
        fine = min(seconds, 3.0)
        self._advance(fine, _FINE_S)
        self._advance(seconds - fine, _COARSE_S)

    def type(self, text: str, gap_s: float = 0.12, *, captured: bool = False) -> None:
        """Type `text` as the layout in the settings has it."""
        for stroke in keys_for(text, load_layout(self.companion_layout)):
            for usage, is_down in stroke.actions():
                self._key(usage, is_down, captured=captured)
            self._advance(gap_s, _FINE_S * 4)

    def press(self, usage: int, *, captured: bool = False) -> None:
        for is_down in (True, False):
            self._key(usage, is_down, captured=captured)
        self._advance(0.1, _FINE_S * 4)

    def macro(self, number: int) -> None:
        """A companion key."""
        self.lab.core.macro_event(number, True, self.lab.ms)
        if number == ACCEPT_KEY:
            self.lab.core.panel()  # a real panel has been drawn long before a finger comes down
            self.typed_by_board += self.lab.core.accept(self.lab.ms)
        self.lab.core.task(self.lab.ms)
        self._settle()

    def capture(self, text: str) -> None:
        """Hold the capture key and type."""
        assert self.lab.core.begin_capture(self.lab.ms), "captures are not allowed"
        self._settle()
        self.type(text, captured=True)
        self.lab.core.end_capture(self.lab.ms)
        self._settle()

    def replug(self, seconds: float) -> None:
        """The cable is out for so long."""
        self.post(LinkLost("unplugged"))
        self._advance(seconds, _COARSE_S)  # the old session speaks to a board that is gone
        self.lab.power_cycle()
        self.lab.connect()
        self._given = len(self.lab.events)
        self.pass_time(1.0)

    @property
    def companion_layout(self) -> str:
        """The layout that holds now, a profile's too."""
        return self.companion._machine._desk.settings.layout

    def _key(self, usage: int, is_down: bool, *, captured: bool) -> None:
        core, place = self.lab.core, (usage >> 4, usage & 15)
        send = core.captured_key_event if captured else core.key_event
        send(*place, usage, is_down, self.lab.ms)
        core.task(self.lab.ms)
        self._settle()

    def _advance(self, seconds: float, step_s: float) -> None:
        end = self.lab.now + seconds
        while self.lab.now < end - 1e-9:
            self.lab.run(min(step_s, end - self.lab.now), step_s)
            self._settle()

    def _settle(self) -> None:
        """Carry everything that waits to where it goes, until nothing does."""
        while True:
            self.lab.settle()
            new = self.lab.events[self._given :]
            self._given += len(new)
            messages = [*self._inbox, *new, *self.engine.due(self.lab.now)]
            self._inbox.clear()
            for message in messages:
                self.companion.step(message)
            wait = self.companion.wait_s()
            if wait is not None and wait <= 0:
                self.companion.step(None)
            elif not messages:
                return
