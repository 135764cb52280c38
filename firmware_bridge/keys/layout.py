# SPDX-License-Identifier: Apache-2.0
"""Which text a key gives under the layout that the person has chosen in their system."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from firmware_bridge.keys.usage import Usage

_LAYOUTS = files("firmware_bridge.keys") / "layouts"
_MAX_LEVELS = 4

# The keypad is the same on all layouts; digits hold while Num Lock is on.
KEYPAD_SIGNS: Mapping[int, str] = MappingProxyType(
    {
        Usage.KEYPAD_SLASH: "/",
        Usage.KEYPAD_ASTERISK: "*",
        Usage.KEYPAD_MINUS: "-",
        Usage.KEYPAD_PLUS: "+",
    }
)
KEYPAD_DIGITS: Mapping[int, str] = MappingProxyType(
    {
        **{Usage.KEYPAD_1 + i: str(i + 1) for i in range(9)},
        Usage.KEYPAD_0: "0",
        Usage.KEYPAD_PERIOD: ".",
    }
)


@dataclass(frozen=True, slots=True)
class Layout:
    """`levels[usage]` holds the text plain, with shift, with AltGr, with shift + AltGr."""

    name: str
    levels: Mapping[int, tuple[str, ...]]

    @property
    def has_altgr(self) -> bool:
        """Whether the right Alt key chooses a level here, instead of being a second Alt."""
        return any(len(texts) > 2 for texts in self.levels.values())

    def text(
        self, usage: int, *, shift: bool = False, altgr: bool = False, caps_lock: bool = False
    ) -> str:
        """What the key types; "" for a key that types nothing."""
        texts = self.levels.get(usage, ())
        if caps_lock and len(texts) > 1 and texts[0] != texts[1] == texts[0].upper():
            shift = not shift
        level = 2 * altgr + shift
        return texts[level] if level < len(texts) else ""


def parse_layout(source: str) -> Layout:
    """A layout from the TOML text of a file like layouts/us.toml.

    Raises:
        ValueError: not TOML, an unknown key name, or texts that are no levels; says which.
    """
    table = tomllib.loads(source)
    name, keys = table.get("name"), table.get("keys")
    if not isinstance(name, str) or not isinstance(keys, dict):
        raise ValueError("a layout has a name and a table [keys]")
    levels: dict[int, tuple[str, ...]] = {}
    for key, texts in keys.items():
        if key not in Usage.__members__:
            raise ValueError(f"layout {name}: there is no key {key}")
        if (
            not isinstance(texts, list)
            or not 1 <= len(texts) <= _MAX_LEVELS
            or not all(isinstance(text, str) for text in texts)
        ):
            raise ValueError(f"layout {name}: {key} needs 1 to {_MAX_LEVELS} texts")
        levels[Usage[key]] = tuple(texts)
    return Layout(name, MappingProxyType(levels))


def layout_names() -> list[str]:
    """The layouts that come with Thock."""
    endings = (entry.name for entry in _LAYOUTS.iterdir())
    return sorted(name.removesuffix(".toml") for name in endings if name.endswith(".toml"))


@functools.cache
def load_layout(name: str) -> Layout:
    """The layout of that name.

    Raises:
        ValueError: there is none; names those that exist.
    """
    if name not in layout_names():
        raise ValueError(f"no layout {name!r}; there are: {', '.join(layout_names())}")
    return parse_layout((_LAYOUTS / f"{name}.toml").read_text(encoding="utf-8"))
