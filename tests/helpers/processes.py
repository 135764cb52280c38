# SPDX-License-Identifier: Apache-2.0
"""Looking at processes that may end while they are looked at."""

from __future__ import annotations

import psutil


def command_line(process: psutil.Process) -> list[str]:
    """Empty if the process is no more, or is one that has not been waited for yet."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # ZombieProcess is one
        return []


def is_zombie(process: psutil.Process) -> bool:
    """Whether it ended and nobody has waited for it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
