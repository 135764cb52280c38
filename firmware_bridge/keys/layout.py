# SPDX-License-Identifier: Apache-2.0
"""Which text a key gives under the layout that the person has chosen in their system."""

from __future__ import annotations

import enum
import functools
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

from firmware_bridge.keys.dead_keys import DeadKey, System
from firmware_bridge.keys.usage import Usage
from firmware_bridge.texts import Text

_LAYOUTS = files("firmware_bridge.keys") / "layouts"
SYSTEM_LAYOUT = "system"
_MAX_LEVELS = 4
_DEAD = "dead "
# Keys of the keyboard's edge that Caps Lock leaves alone where it works like shift (French Windows).
_NEVER_LOCKED = (Usage.GRAVE, Usage.NON_US_BACKSLASH)

_SHARP_S = {"ß": "ẞ"}  # Unicode's own rule makes two letters of it

# A text of one character, a dead key, or "" for nothing.
Sign: TypeAlias = str | DeadKey

# The keypad is the same on all layouts, but for its decimal sign; digits hold while Num Lock is on.
KEYPAD_SIGNS: Mapping[int, str] = MappingProxyType(
    {
        Usage.KEYPAD_SLASH: "/",
        Usage.KEYPAD_ASTERISK: "*",
        Usage.KEYPAD_MINUS: "-",
        Usage.KEYPAD_PLUS: "+",
        Usage.KEYPAD_EQUAL: "=",
        Usage.KEYPAD_COMMA: ".",
    }
)
KEYPAD_DIGITS: Mapping[int, str] = MappingProxyType(
    {
        **{Usage.KEYPAD_1 + i: str(i + 1) for i in range(9)},
        Usage.KEYPAD_0: "0",
        Usage.KEYPAD_PERIOD: ".",
    }
)


class CapsLock(enum.Enum):
    """What Caps Lock turns over while it is on."""

    LETTERS = "letters"
    SHIFT = "shift"  # all keys of the main block


class CapsLockKey(enum.Enum):
    """What the key named Caps Lock does."""

    LOCK = "lock"
    LOCK_WITH_SHIFT = "lock with shift"  # alone it changes the input method's state
    BACKSPACE = "backspace"


@dataclass(frozen=True, slots=True)
class Layout:
    """`levels[usage]` holds the signs plain, with shift, with AltGr, with shift + AltGr.

    `input_method_keys` change how the input method reads the keys after them.
    """

    name: str
    levels: Mapping[int, tuple[Sign, ...]]
    system: System = System.LINUX
    caps_lock: CapsLock = CapsLock.LETTERS
    caps_lock_key: CapsLockKey = CapsLockKey.LOCK
    input_method_keys: frozenset[int] = frozenset()

    @property
    def has_altgr(self) -> bool:
        """Whether the right Alt key chooses a level here, instead of being a second Alt."""
        return any(len(signs) > 2 for signs in self.levels.values())

    def sign(
        self, usage: int, *, shift: bool = False, altgr: bool = False, caps_lock: bool = False
    ) -> Sign:
        """What the key gives; "" for a key that types nothing."""
        signs = (*self.levels.get(usage, ()), *[""] * _MAX_LEVELS)
        plain, shifted = signs[2 * altgr : 2 * altgr + 2]
        is_locked = caps_lock and self._locks(usage, signs, altgr)
        if is_locked:
            shift = self.system is System.MACOS or not shift
        sign = shifted if shift else plain
        keeps = is_locked or self.system is System.WINDOWS or not caps_lock
        return sign if keeps else _upper(sign)

    def _locks(self, usage: int, signs: tuple[Sign, ...], altgr: bool) -> bool:
        """Whether Caps Lock works like shift on this key."""
        if self.caps_lock is CapsLock.SHIFT:
            return not altgr and usage not in _NEVER_LOCKED
        is_letter = _is_pair(*signs[:2])
        if altgr:
            return is_letter and _is_pair(*signs[2:4]) and self.system is System.LINUX
        return is_letter


def _is_pair(plain: Sign, shifted: Sign) -> bool:
    """Whether the two are a letter and its capital."""
    return plain != shifted == _upper(plain)


def _upper(sign: Sign) -> Sign:
    """The capital of a letter that has one of its own; any other sign as it is."""
    if isinstance(sign, DeadKey):
        return sign
    capital = _SHARP_S.get(sign, sign.upper())
    return capital if capital.lower() == sign else sign


def parse_layout(source: str, system: System = System.LINUX) -> Layout:
    """A layout from the TOML text of a file like layouts/us.toml, as `system` has it.

    Raises:
        ValueError: not TOML, an unknown key name or property, or signs that are no levels; says which.
    """
    table = tomllib.loads(source)
    name = table.pop("name", None)
    variants = {s: table.pop(s.value, {}) for s in System}
    if not isinstance(name, str) or not isinstance(table.get("keys"), dict):
        raise ValueError("a layout has a name and a table [keys]")
    own = variants[system]
    keys = {**table.pop("keys"), **own.pop("keys", {})}
    properties = {**table, **own}
    levels = {_usage(name, key): _signs(name, key, signs) for key, signs in keys.items()}
    if system is System.MACOS:
        # What the Option keys type on a Mac has little in common with AltGr elsewhere.
        levels = {usage: signs[:2] for usage, signs in levels.items()}
    layout = Layout(
        name,
        MappingProxyType(levels),
        system,
        CapsLock(properties.pop("caps_lock", CapsLock.LETTERS)),
        CapsLockKey(properties.pop("caps_lock_key", CapsLockKey.LOCK)),
        frozenset(_usage(name, key) for key in properties.pop("input_method_keys", ())),
    )
    if properties:
        raise ValueError(f"layout {name}: {next(iter(properties))} is no property of a layout")
    return layout


def _usage(name: str, key: str) -> int:
    if key not in Usage.__members__:
        raise ValueError(f"layout {name}: there is no key {key}")
    return Usage[key]


def _signs(name: str, key: str, signs: Any) -> tuple[Sign, ...]:
    if (
        not isinstance(signs, list)
        or not 1 <= len(signs) <= _MAX_LEVELS
        or not all(isinstance(sign, str) for sign in signs)
    ):
        raise ValueError(f"layout {name}: {key} needs 1 to {_MAX_LEVELS} signs")
    try:
        return tuple(_sign(text) for text in signs)
    except ValueError as error:
        raise ValueError(f"layout {name}: {key}: {error}") from error


def _sign(text: str) -> Sign:
    if text.startswith(_DEAD):
        return DeadKey(text.removeprefix(_DEAD))
    if len(text) > 1:
        raise ValueError("a sign is one character, a dead key or empty")
    return text


def layout_names() -> list[str]:
    """The layouts that come with Thock."""
    endings = (entry.name for entry in _LAYOUTS.iterdir())
    return sorted(name.removesuffix(".toml") for name in endings if name.endswith(".toml"))


def this_system() -> System:
    """The system that this program runs on; Linux stands for all that use X11's layouts."""
    return {"win32": System.WINDOWS, "darwin": System.MACOS}.get(sys.platform, System.LINUX)


@functools.cache
def load_layout(name: str, system: System | None = None) -> Layout:
    """The layout of that name as `system` has it; None: the one that this program runs on.

    On Linux "system" is the layout that the system is set to, through libxkbcommon.

    Raises:
        ValueError: there is none; names those that exist, or says why the system's is not known.
    """
    system = this_system() if system is None else system
    if name == SYSTEM_LAYOUT and system is System.LINUX:
        # Here, because it reads into layouts of this module's kind.
        from firmware_bridge.keys.system_layout import system_layout

        return system_layout()
    if name not in layout_names():
        raise ValueError(
            Text(
                "There is no layout {name!r}; there are: {known}.",
                name=name,
                known=", ".join(layout_names()),
            )
        )
    source = (_LAYOUTS / f"{name}.toml").read_text(encoding="utf-8")
    return parse_layout(source, system)
