# SPDX-License-Identifier: Apache-2.0
"""What the engine child prints to stderr, and which of it the parent may keep.

Our own records hold no key content. Other libraries may print the text that they work on (a Rust panic
quotes it), so once the child hears commands, its parent keeps only lines that are known to be clean.
"""

from __future__ import annotations

import faulthandler
import logging
import re
import sys
import threading
from types import TracebackType

from engine.failures import stack_of_error

LOG_PREFIX = "thock-engine"
# Our records, and the stacks that faulthandler prints when the process crashes: files and functions.
_SAFE_LINE = re.compile(
    rf"{LOG_PREFIX} |Fatal Python error: |(Current t|T)hread 0x|  File \"|Extension modules: "
)

_log = logging.getLogger(__name__)


def is_safe_line(line: str) -> bool:
    """True if `line` cannot hold key content."""
    return _SAFE_LINE.match(line) is not None


def set_up_child_logging() -> None:
    """Send our records, crashes of native code and uncaught exceptions, these without values, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"{LOG_PREFIX} %(levelname)s %(name)s: %(message)s"))
    ours = logging.getLogger("engine")
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False
    faulthandler.enable()
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda args: log_error("a thread ended", args.exc_value)


def log_error(what: str, error: BaseException | None) -> None:
    """Log `what` happened and where `error` came from: no message, no values."""
    stack = stack_of_error(error) if error is not None else []
    _log.error("%s", "\n".join([what, *stack]).replace("\n", f"\n{LOG_PREFIX}   "))


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    log_error("the engine ended", error)
