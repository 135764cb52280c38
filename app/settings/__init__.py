# SPDX-License-Identifier: Apache-2.0
"""Everything that a person can set: names, help, limits, units and defaults, in one place.

Each field carries its English title and help; `page` in its extra says where the settings window shows it
(the fields of a group stand on the group's page), `unit` what its number counts. `app.config` reads and
writes these models as a file.
"""

from app.settings.base import Appearance, LogLevel, ModeName, Page, TextSize, TrayInk
from app.settings.devices import (
    DisplaySettings,
    GeneralSettings,
    HotkeySettings,
    LightsSettings,
)
from app.settings.engine import RemoteSettings
from app.settings.modes import ChatSettings, ReactSettings, ReadySettings, SuggestSettings
from app.settings.tree import ProfileSettings, Settings

__all__ = [
    "Appearance",
    "ChatSettings",
    "DisplaySettings",
    "GeneralSettings",
    "HotkeySettings",
    "LightsSettings",
    "LogLevel",
    "ModeName",
    "Page",
    "ProfileSettings",
    "ReactSettings",
    "ReadySettings",
    "RemoteSettings",
    "Settings",
    "SuggestSettings",
    "TextSize",
    "TrayInk",
]
