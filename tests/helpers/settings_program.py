# SPDX-License-Identifier: Apache-2.0
"""The whole companion, as `thock` runs it, on a virtual keyboard and a scripted engine, in a thread."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import TracebackType

from app.companion.state import CompanionState
from app.config.store import SettingsStore
from app.lifecycle.program import ProgramOptions, run_program
from engine.client import FAKE_ENGINE
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport


class RunningProgram:
    """Use it with `with`. `states` are all that the companion published, with the newest at the end."""

    def __init__(self, folder: Path, board: BoardConfig | None = None) -> None:
        self.folder = folder
        self.keyboard = VirtualKeyboard(board or BoardConfig())
        self.store = SettingsStore(folder / "settings.toml")
        self.states: list[CompanionState] = []
        self.said: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="program", daemon=True)
        script = folder / "script.json"
        script.write_text(json.dumps({"replies": ["A keyboard has keys."], "token_ms": 1}))
        self._model = script

    def __enter__(self) -> RunningProgram:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def state(self) -> CompanionState | None:
        return self.states[-1] if self.states else None

    def stop(self) -> None:
        """End it as a signal would. Safe to call twice."""
        self._stop.set()
        self._thread.join(15)
        assert not self._thread.is_alive()

    def type(self, text: str) -> None:
        """On the virtual keyboard."""
        for stroke in keys_for(text, load_layout("us")):
            for usage, is_down in stroke.actions():
                (self.keyboard.press if is_down else self.keyboard.release)(usage)

    def _run(self) -> None:
        options = ProgramOptions(
            runtime=self.folder,
            make_keyboard=lambda hear: Link(lambda: VirtualTransport(self.keyboard), hear),
            keyboard_name=lambda: "Virtual board",
            store=self.store,
            overrides={},
            engine_argv=FAKE_ENGINE,
            with_tray=False,
            say=self.said.append,
            find_model=lambda _: self._model,
            subscribers=(self.states.append,),
        )
        run_program(options, self._stop)
