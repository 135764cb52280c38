# SPDX-License-Identifier: Apache-2.0
"""Shortcuts as the settings hold them (`<ctrl>+<alt>+a`, as pynput) and as Qt writes them (`Ctrl+Alt+A`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_MODIFIERS: Mapping[str, str] = MappingProxyType(
    {"ctrl": "Ctrl", "alt": "Alt", "shift": "Shift", "cmd": "Meta"}
)
# Names of pynput.keyboard.Key beside Qt's portable names.
_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "space": "Space", "tab": "Tab", "enter": "Return", "esc": "Esc", "home": "Home", "end": "End",
        "insert": "Ins", "delete": "Del", "backspace": "Backspace", "page_up": "PgUp",
        "page_down": "PgDown", "up": "Up", "down": "Down", "left": "Left", "right": "Right",
        "pause": "Pause", "print_screen": "Print", "menu": "Menu",
        **{f"f{number}": f"F{number}" for number in range(1, 21)},
    }
)  # fmt: skip
_NAMES = {**_MODIFIERS, **_KEYS}
_TO_SETTING = {qt: f"<{name}>" for name, qt in _NAMES.items()}
_TO_QT = {f"<{name}>": qt for name, qt in _NAMES.items()}


def setting_of(portable: str) -> str:
    """What the settings hold for a key sequence in Qt's portable text; empty for none.

    Raises:
        ValueError: a key that the settings have no name for.
    """
    if not portable:
        return ""
    keys, plus = (portable[:-1], ["+"]) if portable.endswith("+") else (portable, [])
    names = [key for key in keys.split("+") if key] + plus
    return "+".join(_setting_name(name) for name in names)


def portable_of(setting: str) -> str:
    """The key sequence in Qt's portable text. A key that Qt has no name for stands as it is."""
    if not setting:
        return ""
    keys, plus = (setting[:-1], ["+"]) if setting.endswith("+") else (setting, [])
    names = [key for key in keys.split("+") if key] + plus
    return "+".join(_TO_QT.get(name, name.upper()) for name in names)


def _setting_name(name: str) -> str:
    if name in _TO_SETTING:
        return _TO_SETTING[name]
    if len(name) == 1:
        return name.lower()
    raise ValueError(f"there is no shortcut with the key {name}")
