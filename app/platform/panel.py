# SPDX-License-Identifier: Apache-2.0
"""Whether the panel with the tray is dark, as far as the system tells."""

from __future__ import annotations

import sys
from typing import Any

_THEMES = r"Software\Microsoft\Windows\CurrentVersion\Themes\Personalize"


def panel_is_dark() -> bool:
    """True where nothing tells: most panels are dark. macOS colours the icon by itself."""
    if sys.platform == "win32":
        import winreg

        return windows_panel_is_dark(winreg)
    return True


def windows_panel_is_dark(registry: Any) -> bool:
    """The taskbar follows `SystemUsesLightTheme`, not the theme of the programs."""
    try:
        with registry.OpenKey(registry.HKEY_CURRENT_USER, _THEMES) as key:
            value, _kind = registry.QueryValueEx(key, "SystemUsesLightTheme")
    except OSError:
        return True
    return not value
