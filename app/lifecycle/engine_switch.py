# SPDX-License-Identifier: Apache-2.0
"""Loads, changes and unloads the model, one after the other, on a thread of its own.

Starting an engine waits for the old one to end, seconds at worst: nobody else should.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from app.models.catalogue import title_of
from app.models.errors import ModelStoreError
from app.models.store import ModelStore
from app.settings import Settings
from engine.client import EngineState
from engine.failures import name_of_error
from engine.messages import DEFAULT_WINDOW, Device, RemoteServer, Residency
from engine.texts import Text

_NO_FILE = Path("remote")  # the server has its own

_log = logging.getLogger(__name__)


class Engine(Protocol):
    """The part of `engine.client.EngineClient` that is used here."""

    def start(
        self,
        model: Path | str,
        max_context: int = 2048,
        device: Device = Device.AUTO,
        server: RemoteServer | None = None,
        window: int = DEFAULT_WINDOW,
        *,
        residency: Residency = Residency.LAUNCH,
        title: str = "",
    ) -> None: ...

    def stop(self) -> None: ...


FindModel = Callable[[Settings], Path]


def chosen_model(settings: Settings, store: ModelStore | None = None) -> Path:
    """The file or folder of the model in the settings: a name, a path, or the first one installed.

    Raises:
        ModelStoreError: there is none; says how to get one.
    """
    store = store or ModelStore()
    if settings.model is not None:
        return store.find(str(settings.model)).target
    installed = [model for model in store.list() if not model.broken]
    return store.find(installed[0].name if installed else "smollm2").target


class EngineSwitch:
    """`on_state` hears why no engine could be started; all else the engine tells by itself.

    `find_model` raises ModelStoreError when there is none.
    """

    def __init__(
        self,
        engine: Engine,
        on_state: Callable[[EngineState, str], None],
        find_model: FindModel = chosen_model,
    ) -> None:
        self._engine = engine
        self._on_state = on_state
        self._find_model = find_model
        self._wishes: queue.SimpleQueue[Settings | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="engine-switch", daemon=True)
        self._thread.start()

    def load(self, settings: Settings) -> None:
        """Start the engine with the model of `settings`, in place of the one that runs."""
        self._wishes.put(settings)

    def unload(self) -> None:
        """End the engine."""
        self._wishes.put(None)

    def close(self) -> None:
        """End the thread, then the engine."""
        self._closing.set()
        self._wishes.put(None)
        self._thread.join()
        self._engine.stop()

    def _work(self) -> None:
        while True:
            wish = self._wishes.get()
            while not self._wishes.empty():
                wish = self._wishes.get()  # only the last one counts
            if self._closing.is_set():
                return
            try:
                self._do(wish)
            except Exception as error:  # noqa: BLE001  the thread's top
                _log.error("the engine could not be changed: %s", name_of_error(error))
                self._on_state(
                    EngineState.FAILED, Text("unexpected {error}", error=name_of_error(error))
                )

    def _do(self, settings: Settings | None) -> None:
        if settings is None:
            self._engine.stop()
            return
        try:
            is_remote = settings.engine is Device.REMOTE
            model = _NO_FILE if is_remote else self._find_model(settings)
        except ModelStoreError as error:
            self._engine.stop()
            self._on_state(EngineState.FAILED, str(error))
            return
        self._engine.start(
            model, settings.max_context, settings.engine, settings.remote.server(),
            settings.suggest.context_tokens,
            residency=settings.residency, title=title_of(model),
        )  # fmt: skip
