# SPDX-License-Identifier: Apache-2.0
"""Which first steps are needed here: only those that something is missing for."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from firmware_bridge.discovery.candidates import Candidate


class Step(enum.Enum):
    """In the order in which they come."""

    WELCOME = "welcome"
    PERMISSION = "permission"
    KEYBOARD = "keyboard"
    MODEL = "model"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Situation:
    """What there is. `locked` are keyboards that this person may not open."""

    locked: tuple[Candidate, ...] = ()
    is_connected: bool = False
    has_model: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps to show."""
        needed = {
            Step.WELCOME: True,
            Step.PERMISSION: bool(self.locked),
            Step.KEYBOARD: not self.is_connected,
            Step.MODEL: not self.has_model,
            Step.TEST: True,
        }
        return tuple(step for step, is_needed in needed.items() if is_needed)


def locked_among(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Keyboards for Thock whose device node this person may not read and write (Linux only)."""
    if not sys.platform.startswith("linux"):
        return ()  # only opening one would tell
    return tuple(c for c in candidates if c.matches and not os.access(c.path, os.R_OK | os.W_OK))
