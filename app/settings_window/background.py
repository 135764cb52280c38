# SPDX-License-Identifier: Apache-2.0
"""Work that takes longer than a person should wait for a window: on a thread, with signals back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine.failures import name_of_error

_log = logging.getLogger(__name__)


class CancelledError(Exception):
    """The person called the work off."""


class Task(QObject):
    """One piece of work. Exactly one of `done` and `failed` comes at the end, on the owner's thread.

    The work gets a function to tell its progress with, which raises CancelledError once it was called off.
    """

    done = Signal(object)
    failed = Signal(object)  # what to tell the person; empty when it was called off
    progressed = Signal(object)

    def __init__(
        self,
        work: Callable[[Callable[[object], None]], object],
        expected: tuple[type[Exception], ...] = (),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._work = work
        self._expected = expected
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settings-task", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Have the work end at its next report of progress."""
        self._cancelled.set()

    def _report(self, progress: object) -> None:
        if self._cancelled.is_set():
            raise CancelledError
        self.progressed.emit(progress)

    def _run(self) -> None:
        result: Any = None
        try:
            result = self._work(self._report)
        except CancelledError:
            self._tell(self.failed, "")
        except self._expected as error:
            self._tell(self.failed, str(error))
        except Exception as error:  # noqa: BLE001  the thread's top
            name = name_of_error(error)
            _log.error("unexpected %s in a task of the settings window", name)
            self._tell(self.failed, name)
        else:
            self._tell(self.done, result)

    def _tell(self, signal: Any, value: object) -> None:
        try:
            signal.emit(value)
        except RuntimeError:
            _log.info("a task ended after its window")
