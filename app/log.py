# SPDX-License-Identifier: Apache-2.0
"""Logging to stderr, and how an unexpected exception is named without its values.

The rule about content is kept where records are made, not by a filter: no key, prompt or reply is
ever given to a logger. tests/companion/test_privacy.py types a canary in every mode to hold it.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

OUR_LOGGERS = ("app", "engine", "firmware_bridge")
_HANDLER_NAME = "thock"
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def forbid_core_dumps() -> None:
    """A core file of this process would write what was typed lately to the disk."""
    if sys.platform != "win32":
        import resource

        # 1, not 0: Linux does not hold a limit of 0 against a core_pattern that pipes to a program, and
        # takes 1 for "no core at all" there (fs/coredump.c). For files 1 byte is too little as well.
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))


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
