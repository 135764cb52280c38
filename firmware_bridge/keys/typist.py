# SPDX-License-Identifier: Apache-2.0
"""Text -> the keys that type it: what scripts and tests press on the virtual keyboard.

The real keyboard is never told to type with these: it types only what its accept key was offered.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.keys.dead_keys import decompose
from firmware_bridge.keys.layout import Layout, Sign
from firmware_bridge.keys.usage import Usage
from firmware_bridge.texts import Text

_CONTROLS = {
    "\n": Usage.ENTER,
    "\t": Usage.TAB,
    "\b": Usage.BACKSPACE,
    "\x1b": Usage.ESCAPE,
}


@dataclass(frozen=True, slots=True)
class KeyStroke:
    """One key with the modifiers that must be down for it."""

    usage: int = field(repr=False)
    shift: bool = field(default=False, repr=False)
    altgr: bool = field(default=False, repr=False)

    def actions(self) -> tuple[tuple[int, bool], ...]:
        """(usage, pressed) in order: modifiers down, key down, key up, modifiers up."""
        modifiers = [Usage.LEFT_SHIFT] * self.shift + [Usage.RIGHT_ALT] * self.altgr
        return (
            *((usage, True) for usage in modifiers),
            (self.usage, True),
            (self.usage, False),
            *((usage, False) for usage in reversed(modifiers)),
        )


def keys_for(text: str, layout: Layout) -> list[KeyStroke]:
    """The strokes that type `text` while Caps Lock is off; newline, tab, \\b and \\x1b are keys too.

    Raises:
        ValueError: a character is not on this layout; says where, not which.
    """
    strokes = _strokes(layout)
    found: list[KeyStroke] = []
    for number, character in enumerate(text, start=1):
        pair = None if character in strokes else decompose(character, layout.system)
        signs: list[Sign] = [character] if pair is None else [*pair]
        if not all(sign in strokes for sign in signs):
            raise ValueError(
                Text(
                    "character {number} is not on the layout {layout}",
                    number=number,
                    layout=layout.name,
                )
            )
        found += [strokes[sign] for sign in signs]
    return found


def comes_out(text: str, firmware: Layout, system: Layout) -> bool:
    """Whether `text` arrives as it is when a firmware types it for the layout `firmware` while the system
    has the layout `system`. Only printable ASCII, one key for each character.
    """
    if not (text.isascii() and text.isprintable()):
        return False
    strokes = _strokes(firmware)
    return all(
        (stroke := strokes.get(character)) is not None
        and system.sign(stroke.usage, shift=stroke.shift, altgr=stroke.altgr) == character
        for character in text
    )


def _strokes(layout: Layout) -> dict[Sign, KeyStroke]:
    """One stroke for each sign of `layout`: of several that of the first key, as tables list them."""
    strokes: dict[Sign, KeyStroke] = {
        character: KeyStroke(usage) for character, usage in _CONTROLS.items()
    }
    for usage, signs in layout.levels.items():
        for level, sign in enumerate(signs):
            if sign:
                strokes.setdefault(sign, KeyStroke(usage, bool(level & 1), bool(level & 2)))
    return strokes
