# SPDX-License-Identifier: Apache-2.0
"""Texts cut to what the systems take. Windows counts UTF-16 units and stops with an error beyond.

NOTIFYICONDATAW has room for 127 units of tooltip, 63 of title and 255 of message, each with a zero behind
(learn.microsoft.com, shellapi.h).
"""

from __future__ import annotations

TOOLTIP_UNITS = 127
TITLE_UNITS = 63
MESSAGE_UNITS = 255
_ELLIPSIS = "…"


def cut(text: str, units: int) -> str:
    """`text` in at most `units` UTF-16 units, an ellipsis for what is missing, no half characters."""
    if utf16_units(text) <= units:
        return text
    room = units - utf16_units(_ELLIPSIS)
    kept = ""
    for character in text:
        room -= utf16_units(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + _ELLIPSIS


def utf16_units(text: str) -> int:
    """Characters above U+FFFF take two."""
    return len(text) + sum(character > "\uffff" for character in text)


def shortened(text: str, characters: int) -> str:
    """One line of a menu."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + _ELLIPSIS
