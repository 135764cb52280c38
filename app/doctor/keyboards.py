# SPDX-License-Identifier: Apache-2.0
"""The keyboard check of `thock doctor`: is one there, and may it be opened?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from app.doctor.report import CheckStatus, Finding
from engine.texts import Text
from firmware_bridge.discovery.candidates import HID, Candidate


def check_keyboards(candidates: Sequence[Candidate]) -> Finding:
    """No keyboard is no error: the virtual one works without. Nothing is opened here."""
    boards = [c for c in candidates if c.matches]
    if not boards:
        return Finding(
            "keyboard", CheckStatus.OK, "none that Thock could use; `thock demo` needs none"
        )
    locked = [c for c in boards if not _may_open(c)]
    names = ", ".join(c.identity.product or c.path for c in boards)
    if not locked:
        return Finding("keyboard", CheckStatus.OK, names)
    fix = "Run `thock doctor --install-udev`."
    if any(c.identity.transport != HID for c in locked):
        fix = "Join the group that owns the port (dialout or uucp), then log in again."
    if not sys.platform.startswith("linux"):
        fix = "Close other programs that use the keyboard."
    return Finding(
        "keyboard", CheckStatus.ERROR, Text("{names}: you may not open it", names=names), fix
    )


def _may_open(candidate: Candidate) -> bool:
    if not sys.platform.startswith("linux"):
        return True  # only opening it would tell
    return os.access(candidate.path, os.R_OK | os.W_OK)
