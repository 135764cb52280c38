# SPDX-License-Identifier: Apache-2.0
"""A companion that runs, with its host and its visitors' door, on a fake keyboard and a fake engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from app.choices import Choices
from app.companion.away import Away
from app.companion.core import Companion, Mailbox
from app.companion.messages import EngineChanged
from app.config.store import SettingsStore
from app.ipc.client import IpcClient
from app.ipc.server import IpcServer
from app.ipc.service import IpcService
from app.lifecycle.engine_switch import EngineSwitch, chosen_model
from app.lifecycle.host import CompanionHost
from app.models.store import ModelStore
from engine.client import EngineState
from engine.messages import Device, RemoteServer, Residency
from firmware_bridge.events import BridgeEvent, LinkReady
from tests.helpers.companion import FakeEngine, FakeKeyboard, board


class SwitchedEngine(FakeEngine):
    """Notes which model it was told to start."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(log)
        self.switched: list[str] = []
        self.device = Device.AUTO
        self.server: RemoteServer | None = None

    def start(
        self,
        model: Path | str,
        max_context: int = 2048,
        device: Device = Device.AUTO,
        server: RemoteServer | None = None,
        window: int = 128,
        *,
        residency: Residency = Residency.LAUNCH,
        title: str = "",
    ) -> None:
        self.switched.append(f"start {Path(model).name} {max_context}")
        self.device, self.server, self.window = device, server, window
        self.residency, self.title = residency, title

    def stop(self) -> None:
        self.switched.append("stop")


class RunningHost:
    """Use it with `with`. `folder` holds the settings, the models and the runtime files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mailbox = Mailbox()
        self.keyboard = FakeKeyboard()
        self.engine = SwitchedEngine([])
        self.pages: list[str] = []
        self.quits = 0
        self.away: Away | None = None  # another program has the keyboard
        models = ModelStore(folder / "models")
        choices = Choices(models, folder / "personas")
        self.store = SettingsStore(folder / "settings.toml", choices)
        switch = EngineSwitch(
            self.engine, self.mailbox.engine_changed, lambda s: chosen_model(s, models)
        )
        self.switch = switch
        self.host = CompanionHost(
            self.mailbox.post, switch, self.store, {},
            keyboard_name=lambda: "Test board",
            show_page=self.pages.append,
            quit_=self._quit,
            keyboard_away=lambda: self.away,
            keyboard_back=self._come_back,
        )  # fmt: skip
        self.companion = Companion(
            self.mailbox, self.keyboard, self.engine, self.host.settings, time.monotonic
        )
        self.service = IpcService(self.host, self.store.path)
        self.server = IpcServer(folder, self.service)
        self.service.server = self.server
        self.host.listen(self.service.changed)
        self.companion.subscribe(self.host.observe)

    def __enter__(self) -> RunningHost:
        self.companion.start()
        self.server.start()
        self.hear(LinkReady(board()))
        self.mailbox.post(EngineChanged(EngineState.READY))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.server.close()
        self.host.close()
        self.companion.stop()
        self.switch.close()

    def _come_back(self) -> None:
        self.away = None

    def hear(self, event: BridgeEvent) -> None:
        """An event of the keyboard."""
        self.service.heard(event)
        self.mailbox.post(event)

    def visitor(self, client: str = "command") -> IpcClient:
        """A connection of its own."""
        return IpcClient(self.folder, client)

    def wait(self, done: Callable[[], bool], limit_s: float = 30.0) -> bool:
        """Until `done`; False after `limit_s`."""
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def _quit(self) -> None:
        self.quits += 1
