# SPDX-License-Identifier: Apache-2.0
"""The keys of the virtual board: 60 percent, ANSI, with four companion keys above.

Each key has an LED of the same number. Usages: USB HID Usage Tables 1.5, page 7.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.texts import Text


@dataclass(frozen=True, slots=True)
class BoardKey:
    """One key. `width` is in quarters of a key.

    `usage` 0 marks a companion (macro) key, whose label is a Text.
    """

    label: str
    usage: int
    row: int
    column: int
    width: int
    led: int


_USAGE_A = 0x04  # letters follow in alphabetical order


def _letters(row: str) -> tuple[tuple[str, int, int], ...]:
    return tuple((c, _USAGE_A + ord(c) - ord("A"), 4) for c in row)


_ROWS: tuple[tuple[tuple[str, int, int], ...], ...] = (
    ((Text("Mode"), 0, 8), (Text("Ask"), 0, 8), (Text("Pause"), 0, 8), (Text("Cancel"), 0, 8)),
    (
        ("Esc", 0x29, 4), *((c, 0x1E + i, 4) for i, c in enumerate("1234567890")),
        ("-", 0x2D, 4), ("=", 0x2E, 4), ("Back", 0x2A, 8),
    ),
    (
        ("Tab", 0x2B, 6),
        *_letters("QWERTYUIOP"),
        ("[", 0x2F, 4), ("]", 0x30, 4), ("\\", 0x31, 6),
    ),
    (
        ("Caps", 0x39, 7),
        *_letters("ASDFGHJKL"),
        (";", 0x33, 4), ("'", 0x34, 4), ("Enter", 0x28, 9),
    ),
    (
        ("Shift", 0xE1, 9),
        *_letters("ZXCVBNM"),
        (",", 0x36, 4), (".", 0x37, 4), ("/", 0x38, 4), ("Shift", 0xE5, 11),
    ),
    (
        ("Ctrl", 0xE0, 5), ("Gui", 0xE3, 5), ("Alt", 0xE2, 5), ("Space", 0x2C, 25),
        ("AGr", 0xE6, 5), ("`", 0x35, 5), ("Del", 0x4C, 5), ("Ctrl", 0xE4, 5),
    ),
)  # fmt: skip


def _build() -> tuple[tuple[BoardKey, ...], ...]:
    rows = []
    led = 0
    for row, keys in enumerate(_ROWS):
        built = []
        for column, (label, usage, width) in enumerate(keys):
            built.append(BoardKey(label, usage, row, column, width, led))
            led += 1
        rows.append(tuple(built))
    return tuple(rows)


BOARD = _build()
LED_COUNT = sum(len(row) for row in BOARD)
MACRO_KEYS = len(BOARD[0])
KEY_LEDS = {(key.row, key.column): key.led for row in BOARD for key in row}
BY_USAGE = {key.usage: key for row in BOARD for key in row if key.usage}
