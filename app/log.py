# SPDX-License-Identifier: Apache-2.0
"""Logging to stderr and to a file, and how an unexpected exception is named without its values.

The rule about content is kept where records are made, not by a filter: no key, prompt or reply is
ever given to a logger. tests/companion/test_privacy.py types a canary in every mode to hold it.
"""

from __future__ import annotations

import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

OUR_LOGGERS = ("app", "engine", "firmware_bridge")
LOG_FILE = "thock.log"
_HANDLER_NAME = "thock"
_FILE_HANDLER_NAME = "thock-file"
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_FILE_BYTES = 512 * 1024
_OLD_FILES = 3


class HomelessFormatter(logging.Formatter):
    """Writes `~` for the person's folder: a log that is handed on should not name the person."""

    def __init__(self, fmt: str, home: Path | None = None) -> None:
        super().__init__(fmt)
        self._home = str(home or Path.home())

    def format(self, record: logging.LogRecord) -> str:
        return without_home(super().format(record), self._home)


class _PrivateFile(RotatingFileHandler):
    """Nobody else may read it, also the next file after a rotation."""

    def _open(self) -> TextIOWrapper:
        def private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=private)  # type: ignore[return-value]


def without_home(text: str, home: str) -> str:
    """`text` with `~` for `home`, which may be `/` for a system account: then nothing is replaced."""
    return text.replace(home, "~") if len(home) > 1 else text


def forbid_core_dumps() -> None:
    """A core file of this process would write what was typed lately to the disk."""
    if sys.platform != "win32":
        import resource

        # 1, not 0: Linux does not hold a limit of 0 against a core_pattern that pipes to a program, and
        # takes 1 for "no core at all" there (fs/coredump.c). For files 1 byte is too little as well.
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))


def set_up_logging(level: int | str = logging.WARNING, stream: TextIO | None = None) -> None:
    """Print records to `stream` (stderr if None). Calling it again replaces the earlier set-up.

    Raises:
        ValueError: `level` is no level name.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(_FORMAT))
    set_log_level(level)
    _replace_handler(_HANDLER_NAME, handler)


def set_up_file_logging(folder: Path) -> Path:
    """Write records to a file in `folder` too, 2 MiB with the older ones. Returns the newest file.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / LOG_FILE
    handler = _PrivateFile(path, "a", _FILE_BYTES, _OLD_FILES, encoding="utf-8")
    handler.setFormatter(HomelessFormatter(_FORMAT))
    _replace_handler(_FILE_HANDLER_NAME, handler)
    return path


def set_log_level(level: int | str) -> None:
    """From now on. Only our own loggers get it: a library at DEBUG could print the data that it is given.

    Raises:
        ValueError: `level` is no level name.
    """
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(level)


def _replace_handler(name: str, handler: logging.Handler) -> None:
    handler.set_name(name)
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == name]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
