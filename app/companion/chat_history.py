# SPDX-License-Identifier: Apache-2.0
"""The questions and answers of the chat so far: in memory, and on disk only if the person wants that."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from app.config.atomic import write_atomically
from app.settings import ChatSettings
from engine.failures import name_of_error

_MOST_BYTES = 1 << 18

_log = logging.getLogger(__name__)


class ChatHistory:
    """Bounded as `ChatSettings` says; the oldest goes first. `file`: where it is kept, None: nowhere.

    Content is never in `repr`.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._pairs: deque[tuple[str, str]] = deque()
        self._turns = self._chars = 0
        self._keeps = False
        self._is_loaded = False

    def __repr__(self) -> str:
        return f"ChatHistory({len(self._pairs)} questions)"

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Questions with their answers, the oldest first."""
        if self._keeps and not self._is_loaded:
            self._load()
        return iter(tuple(self._pairs))

    def configure(self, settings: ChatSettings) -> None:
        """Remember and keep as the settings say. What is no longer to be kept is deleted."""
        if self._keeps and not settings.keep_history:
            self._delete()
        self._keeps = settings.keep_history and self._file is not None
        self._turns, self._chars = settings.history_turns, settings.history_chars
        self._trim()

    def add(self, question: str, answer: str) -> None:
        """An answer has ended."""
        if self._keeps and not self._is_loaded:
            self._load()
        self._pairs.append((question, answer))
        self._trim()
        if self._keeps:
            self._write()

    def wipe(self) -> None:
        """Nothing stays in memory; what is kept on disk is read again when it is needed."""
        self._pairs.clear()
        self._is_loaded = False

    def forget(self) -> None:
        """Nothing stays in memory nor on disk."""
        self.wipe()
        self._delete()

    def _trim(self) -> None:
        pairs = self._pairs
        while pairs and (
            len(pairs) > self._turns or sum(len(q) + len(a) for q, a in pairs) > self._chars
        ):
            pairs.popleft()

    def _load(self) -> None:
        self._is_loaded = True
        if self._file is None:
            return
        try:
            with self._file.open("rb") as file:
                data = json.loads(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("the kept chat was not read: %s", name_of_error(error))
            return
        pairs = data if isinstance(data, list) else []
        for pair in pairs:
            match pair:
                case [str(question), str(answer)]:
                    self._pairs.append((question, answer))
        self._trim()

    def _write(self) -> None:
        if self._file is None:
            return
        try:
            write_atomically(self._file, json.dumps(list(self._pairs)).encode())
        except OSError as error:
            _log.warning("the chat was not written: %s", name_of_error(error))

    def _delete(self) -> None:
        if self._file is None:
            return
        try:
            self._file.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the kept chat was not deleted: %s", name_of_error(error))
