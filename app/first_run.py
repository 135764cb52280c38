# SPDX-License-Identifier: Apache-2.0
"""Whether the first steps are still to be taken on this computer."""

from __future__ import annotations

import logging
from pathlib import Path

from app.config.paths import state_folder

_log = logging.getLogger(__name__)


class FirstRun:
    """Remembers in a file that somebody took or closed them. `folder` is made when that is noted."""

    def __init__(self, folder: Path | None = None) -> None:
        self._mark = (folder or state_folder()) / "first-steps"

    @property
    def is_due(self) -> bool:
        """Nobody did, or it cannot be known."""
        try:
            return not self._mark.exists()
        except OSError:
            return True

    def note(self) -> None:
        """Somebody did. A disk that takes no file only means that they come again."""
        try:
            self._mark.parent.mkdir(parents=True, exist_ok=True)
            self._mark.touch()
        except OSError as error:
            _log.info("the first steps will come again: %s", error.strerror or error)
