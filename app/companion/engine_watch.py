# SPDX-License-Identifier: Apache-2.0
"""What the companion knows of its engine: its state, its model, what went wrong last, and what it owes."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from app.companion.messages import EngineChanged
from app.companion.modes.base import Desk
from engine.client import EngineState
from engine.messages import Failed, Forget, ModelLoaded
from engine.texts import Text, first_line

# Requests that ended with the engine: its state tells the same, and more.
_ENDED_WITH_ENGINE = ("engine-died", "engine-stopped")

_log = logging.getLogger(__name__)


class EngineWatch:
    """Follows the engine child, and keeps `Desk.engine_ready` true to whether it takes requests."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._forget_owed = False
        self.state = EngineState.STOPPED
        self.detail = ""
        self.model = ""
        self.error = ""

    def changed(self, change: EngineChanged) -> bool:
        """The child is in another state; whether it takes requests now and did not before."""
        was_ready = self._desk.engine_ready
        self.state = change.state
        self.detail = _brief(change.detail, self._desk.settings.model)
        self._desk.engine_ready = change.state is EngineState.READY
        self._forget_owed = False  # another child has nothing to forget
        return self._desk.engine_ready and not was_ready

    def loaded(self, event: ModelLoaded) -> None:
        """The child has a model; `detail` says why it is not where it should be, or what it lacks."""
        self.model = event.name
        self.detail = _brief(event.note, self._desk.settings.model)
        self.error = ""

    def answered(self) -> bool:
        """A request ended; whether requests go through again since.

        The engine refuses a command when too many are open. Now one of them is not any more.
        """
        if self.state is not EngineState.READY or self._desk.engine_ready:
            return False
        self._desk.engine_ready = True
        if self._forget_owed:
            self.forget_content()
        return True

    def failed(self, event: Failed) -> str:
        """A request failed: its code where the person should know of it, else empty."""
        if event.code in _ENDED_WITH_ENGINE:
            return ""
        _log.warning("the engine could not answer: %s: %s", event.code, event.message)
        self.error = event.message
        return event.code

    def forget_content(self) -> None:
        """Have the engine overwrite what it holds: now, or when it takes requests again."""
        self._forget_owed = self._desk.request(lambda n: Forget(request=n)) is None


def _brief(detail: str, model: Path | None) -> str:
    """What fits a display: the first line (the child's log follows it), the model without its folder."""
    line = first_line(detail)
    if model is None:
        return line
    folder = f"{model.absolute().parent}{os.sep}"
    if isinstance(line, Text):
        return line.renamed(lambda name: name.replace(folder, ""))
    return line.replace(folder, "")
