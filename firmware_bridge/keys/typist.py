# SPDX-License-Identifier: Apache-2.0
"""Text -> the keys that type it: what scripts and tests press on the virtual keyboard.

The real keyboard is never told to type; the protocol has no frame for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.keys.layout import Layout
from firmware_bridge.keys.usage import Usage

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
    strokes: dict[str, KeyStroke] = {}
    for usage, texts in layout.levels.items():
        for level, character in enumerate(texts):
            strokes.setdefault(character, KeyStroke(usage, bool(level & 1), bool(level & 2)))
    strokes.update({character: KeyStroke(usage) for character, usage in _CONTROLS.items()})
    missing = next((i for i, character in enumerate(text) if character not in strokes), None)
    if missing is not None:
        raise ValueError(f"character {missing + 1} is not on the layout {layout.name}")
    return [strokes[character] for character in text]
