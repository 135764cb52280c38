# SPDX-License-Identifier: Apache-2.0
"""A keyboard, an engine and a companion between them, from start to stop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from app.companion.core import Companion, Mailbox, Subscriber
from app.companion.cycles import pass_over_what_lives
from app.companion.ports import EnginePort, KeyboardPort
from app.settings import Settings
from engine.messages import DEFAULT_WINDOW, Device, RemoteServer

# On Windows a thread that waits without a limit does not see Ctrl+C.
_LOOK_UP_S = 0.5 if sys.platform == "win32" else None


class StartableKeyboard(KeyboardPort, Protocol):
    """A `firmware_bridge.link.Link`, whose listener is `mailbox.post`."""

    def start(self) -> None: ...

    def stop(self) -> bool: ...


class StartableEngine(EnginePort, Protocol):
    """An `engine.client.EngineClient` that reports to `mailbox.post` and `mailbox.engine_changed`."""

    def start(
        self,
        model: Path | str,
        max_context: int = 2048,
        device: Device = Device.AUTO,
        server: RemoteServer | None = None,
        window: int = DEFAULT_WINDOW,
    ) -> None: ...

    def stop(self) -> None: ...


def run_companion(
    mailbox: Mailbox,
    keyboard: StartableKeyboard,
    engine: StartableEngine,
    settings: Settings,
    stop: threading.Event,
    subscribers: Sequence[Subscriber] = (),
) -> None:
    """Start everything, wait until `stop` is set or a Stop was posted, and end everything again.

    Without a model in `settings` the engine is not started, and the display says so.

    Raises:
        ValueError: there is no keyboard layout of the name in `settings`.
    """
    companion = Companion(mailbox, keyboard, engine, settings)
    for subscriber in (pass_over_what_lives(), *subscribers):
        companion.subscribe(subscriber)
    companion.start(on_end=stop.set)
    try:
        keyboard.start()
        if settings.model is not None:
            engine.start(
                settings.model, settings.max_context, settings.engine, settings.remote.server(),
                settings.suggest.context_tokens,
            )  # fmt: skip
        while not stop.wait(_LOOK_UP_S):
            pass
    finally:
        companion.stop()
        keyboard.stop()
        engine.stop()
