# SPDX-License-Identifier: Apache-2.0
"""Logging to stderr, and how an unexpected exception is named without its values.

The rule about content is kept where records are made, not by a filter: no key, prompt or reply is
ever given to a logger. tests/companion/test_privacy.py types a canary in every mode to hold it.
"""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TextIO

OUR_LOGGERS = ("app", "engine", "firmware_bridge")
_HANDLER_NAME = "thock"
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def forbid_core_dumps() -> None:
    """A core file of this process would write what was typed lately to the disk."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def set_up_logging(level: int | str = logging.WARNING, stream: TextIO | None = None) -> None:
    """Print records to `stream` (stderr if None). Calling it again replaces the earlier set-up.

    Only our own loggers get `level`: a library at DEBUG could print the data that it is given.

    Raises:
        ValueError: `level` is no level name.
    """
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(logging.Formatter(_FORMAT))
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == _HANDLER_NAME]:
        root.removeHandler(old)
    root.addHandler(handler)


def name_of_error(error: BaseException) -> str:
    """Type and place, as in `KeyError at chat.py:57 in commit`: an exception's text may hold content."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    last = frames[-1]
    file = last.filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{type(error).__name__} at {file}:{last.lineno} in {last.name}"
