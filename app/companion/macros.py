# SPDX-License-Identifier: Apache-2.0
"""The companion keys, and what other macro keys are called. Numbers: docs/PROTOCOL.md, "KEY payload"."""

from __future__ import annotations

import enum
from collections.abc import Sequence

_FIRST_OF_KEYMAP = 16
_LAST_OF_KEYMAP = 143
_PLAY_RECORDED = {147: "recorded macro 1", 148: "recorded macro 2"}


class MacroKey(enum.IntEnum):
    """What the companion keys of the firmware do. Higher numbers are causes for react mode."""

    NEXT_MODE = 0
    ASK = 1
    PAUSE = 2
    CANCEL = 3
    ACCEPT = 4


def macro_name(number: int, names: Sequence[str]) -> str:
    """What the person calls the macro, else its number; `names` begin with the first macro of the keymap."""
    place = number - _FIRST_OF_KEYMAP
    return names[place] if 0 <= place < len(names) else _PLAY_RECORDED.get(number, str(number))


def typing_macro(number: int, names: Sequence[str]) -> str | None:
    """The name of a macro that may type; None for companion keys and for those that record."""
    types = _FIRST_OF_KEYMAP <= number <= _LAST_OF_KEYMAP or number in _PLAY_RECORDED
    return macro_name(number, names) if types else None
