# SPDX-License-Identifier: Apache-2.0
"""The layout that a Linux system is set to, through libxkbcommon.

Where it is written down differs: the variables XKB_DEFAULT_* of Wayland compositors, Debian's keyboard(5),
and the file that `localectl set-x11-keymap` writes. Of several layouts the first is taken. What a desktop
changes for its session only is not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from firmware_bridge.keys.dead_keys import System
from firmware_bridge.keys.layout import SYSTEM_LAYOUT, CapsLockKey, Layout, Sign
from firmware_bridge.keys.usage import Usage
from firmware_bridge.keys.xkbcommon import XkbError, XkbKeymap, XkbNames
from firmware_bridge.texts import Text

_DEBIAN = Path("/etc/default/keyboard")
_LOCALECTL = Path("/etc/X11/xorg.conf.d/00-keyboard.conf")
_LEVEL_3_KEY = "ISO_Level3_Shift"
_CAPS_LOCK_KEYS = {
    "BackSpace": CapsLockKey.BACKSPACE,
    "Eisu_toggle": CapsLockKey.LOCK_WITH_SHIFT,
}
_INPUT_METHOD_SYMBOLS = re.compile(r"Zenkaku|Hankaku|Hangul|Hiragana|Katakana|Henkan|Muhenkan|Eisu")
_TEXT_KEYS = tuple(
    usage
    for usage in Usage
    if Usage.A <= usage <= Usage.DIGIT_0
    or Usage.SPACE <= usage <= Usage.SLASH
    or usage in (Usage.NON_US_BACKSLASH, Usage.INTERNATIONAL_1, Usage.INTERNATIONAL_3)
)
_INPUT_METHOD_KEYS = (
    Usage.GRAVE,
    *(usage for usage in Usage if Usage.INTERNATIONAL_2 <= usage <= Usage.LANG_5),
)


def system_layout(
    environment: Mapping[str, str] | None = None,
    debian: Path = _DEBIAN,
    localectl: Path = _LOCALECTL,
) -> Layout:
    """The layout of this Linux system, under the name "system".

    Raises:
        XkbError: nothing says which it is, or libxkbcommon is missing or does not know it.
    """
    return layout_of(system_names(environment, debian, localectl))


def system_names(
    environment: Mapping[str, str] | None = None,
    debian: Path = _DEBIAN,
    localectl: Path = _LOCALECTL,
) -> XkbNames:
    """What the system says about its keyboard.

    Raises:
        XkbError: it says nothing.
    """
    variables = os.environ if environment is None else environment
    prefix = "XKB_DEFAULT_"
    found = {k.removeprefix(prefix): v for k, v in variables.items() if k.startswith(prefix)}
    if not found.get("LAYOUT"):
        found = dict(re.findall(r'^\s*XKB(\w+)="?([^"\n]*)"?', _read(debian), re.MULTILINE))
    if not found.get("LAYOUT"):
        options = re.findall(r'^\s*Option\s+"Xkb(\w+)"\s+"([^"]*)"', _read(localectl), re.MULTILINE)
        found = {key.upper(): value for key, value in options}
    if not found.get("LAYOUT"):
        raise XkbError(
            Text(
                "the system's layout is written neither in XKB_DEFAULT_LAYOUT nor in {debian} nor in "
                "{localectl}: choose a layout by name",
                debian=debian,
                localectl=localectl,
            )
        )
    first = {key: value.split(",")[0].strip() for key, value in found.items()}
    return XkbNames(first["LAYOUT"], first.get("VARIANT", ""), first.get("MODEL") or "pc105")


def layout_of(names: XkbNames, name: str = SYSTEM_LAYOUT) -> Layout:
    """A layout as libxkbcommon has it.

    Raises:
        XkbError: as XkbKeymap.
    """
    with XkbKeymap(names) as keymap:
        has_altgr = keymap.key_name(Usage.RIGHT_ALT) == _LEVEL_3_KEY
        levels: dict[int, tuple[Sign, ...]] = {}
        for usage in _TEXT_KEYS:
            signs = [
                keymap.sign(usage, shift=shift, altgr=altgr)
                for altgr in ((False, True) if has_altgr else (False,))
                for shift in (False, True)
            ]
            while signs and not signs[-1]:
                signs.pop()
            if signs:
                levels[usage] = tuple(signs)
        levels[Usage.KEYPAD_PERIOD] = (keymap.sign(Usage.KEYPAD_PERIOD, num_lock=True),)
        input_method_keys = frozenset(
            usage
            for usage in _INPUT_METHOD_KEYS
            if usage not in levels and _INPUT_METHOD_SYMBOLS.search(keymap.key_name(usage))
        )
        caps_lock_key = _CAPS_LOCK_KEYS.get(keymap.key_name(Usage.CAPS_LOCK), CapsLockKey.LOCK)
    return Layout(
        name,
        MappingProxyType(levels),
        System.LINUX,
        caps_lock_key=caps_lock_key,
        input_method_keys=input_method_keys,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # this system writes it elsewhere
