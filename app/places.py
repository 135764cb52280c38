# SPDX-License-Identifier: Apache-2.0
"""The pages of the settings window by name. Imports nothing slow: commands check names before they open it."""

from __future__ import annotations

import enum

ASK = "ask"  # the status page, ready to type a question
FIRST_STEPS = "first-steps"  # the assistant, over the window


class Place(enum.StrEnum):
    """The pages of the window, in the order of its list: those of the settings, and three that hold none."""

    STATUS = "status"
    KEYBOARD = "keyboard"
    COMPANION = "companion"
    ENGINE = "engine"
    DISPLAY = "display"
    PRIVACY = "privacy"
    PROFILES = "profiles"
    HOTKEYS = "hotkeys"
    GENERAL = "general"
    DIAGNOSTICS = "diagnostics"
    ABOUT = "about"


PAGES = (*map(str, Place), ASK, FIRST_STEPS)
"""Everything that can be asked for."""


def known_page(name: str) -> str:
    """`name` if it can be asked for.

    Raises:
        ValueError: it cannot; says what can.
    """
    if name not in PAGES:
        raise ValueError(f"there is no page {name!r}; there are {', '.join(PAGES)}")
    return name
