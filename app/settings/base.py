# SPDX-License-Identifier: Apache-2.0
"""What the groups of settings are made of: names, pages, choices."""

from __future__ import annotations

import enum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from firmware_bridge.keys.layout import load_layout


class ModeName(enum.StrEnum):
    """The three ways to answer."""

    SUGGEST = "suggest"
    CHAT = "chat"
    REACT = "react"


class Page(enum.StrEnum):
    """The pages of the settings window that hold settings."""

    KEYBOARD = "keyboard"
    COMPANION = "companion"
    ENGINE = "engine"
    DISPLAY = "display"
    PRIVACY = "privacy"
    PROFILES = "profiles"
    HOTKEYS = "hotkeys"
    GENERAL = "general"


class Appearance(enum.StrEnum):
    """Colours of the settings window."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class TextSize(enum.StrEnum):
    """Of text in pixel fonts: 12 pixels high, 10, or whichever suits the display."""

    AUTO = "auto"
    LARGE = "large"
    SMALL = "small"


class TrayInk(enum.StrEnum):
    """Colour of the icon in the panel."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class LogLevel(enum.StrEnum):
    """What the log holds; no level holds anything that was typed or answered."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LOOPBACK = r"^(?:127(?:\.[0-9]{1,3}){3}|localhost)$"
TIME_OF_DAY = r"^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9])?$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]


def known_layout(name: str) -> str:
    """For a validator: `name` if there is a layout of that name, else ValueError."""
    load_layout(name)  # raises ValueError with the names that there are
    return name


class Group(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
