# SPDX-License-Identifier: Apache-2.0
"""The engine child's place in the queue for the processor: behind the threads that answer the keyboard."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Final

NICENESS: Final = 5
# Since Linux 6.12 a thread that wakes ends the turn of one that asked for longer turns than itself. Without
# that it waits for the end of a turn, some 3 ms, whatever the niceness (sched(7), EEVDF).
SLICE_NS: Final = 100_000_000  # the longest there is
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}  # number of the system call
_SCHED_OTHER: Final = 0


def give_way() -> None:
    """Let others go first: this thread, and those that it starts from now on. Not on Windows."""
    os.nice(NICENESS)
    number = _SCHED_SETATTR.get(os.uname().machine) if sys.platform == "linux" else None
    if number is None:
        return
    # struct sched_attr, first version: size, policy, flags, nice, priority, runtime, deadline, period.
    attributes = struct.pack(
        "=IIQiIQQQ", 48, _SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, SLICE_NS, 0, 0
    )
    # Older systems ignore the length of a turn, or refuse; then the niceness has to do.
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)
