# SPDX-License-Identifier: Apache-2.0
"""Turn the drawn glyphs (core/glyphs.txt) into the C tables of core/thock_font.c.

Run it after a change of the drawing; tests/firmware/test_font.py fails while the two differ.
"""

from __future__ import annotations

from pathlib import Path

CORE = Path(__file__).resolve().parent / "core"
CELL_ROWS = 8
FONT_COLUMNS = 5
STATUS_COLUMNS = 6

_HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Made by build_font.py from glyphs.txt: change the drawing there. */
#include "thock_internal.h"
"""


def read_glyphs(text: str) -> dict[str, dict[str, bytes]]:
    """Table ("font", "status") -> glyph name -> columns; bit 0 of a column is its topmost pixel."""
    tables: dict[str, dict[str, bytes]] = {}
    lines = [line for line in text.splitlines() if line and not line.startswith(";")]
    for start in range(0, len(lines), CELL_ROWS + 1):
        table, _, names = lines[start].partition(": ")
        rows = [line.split() for line in lines[start + 1 : start + 1 + CELL_ROWS]]
        for index, name in enumerate(names.split()):
            drawing = [row[index] for row in rows]
            tables.setdefault(table, {})[name] = bytes(
                sum(1 << y for y, row in enumerate(drawing) if row[x] == "#")
                for x in range(len(drawing[0]))
            )
    return tables


def _table(declaration: str, glyphs: dict[str, bytes]) -> str:
    lines = [
        "    {" + ", ".join(f"0x{column:02X}" for column in columns) + f"}}, /* {name} */"
        for name, columns in glyphs.items()
    ]
    return "\n".join([f"{declaration} = {{", *lines, "};"])


def font_source(text: str) -> str:
    """The C source for a drawing."""
    tables = read_glyphs(text)
    font = _table("THOCK_FLASH const uint8_t thock_font[95][5]", tables["font"])
    status = _table("THOCK_FLASH const uint8_t thock_status_glyphs[5][6]", tables["status"])
    return (
        f"{_HEAD}\n#if THOCK_ENABLE_TEXT\n{font}\n#endif\n"
        f"\n#if THOCK_HAS_DISPLAY && THOCK_ENABLE_STATUS\n{status}\n#endif\n"
    )


if __name__ == "__main__":
    (CORE / "thock_font.c").write_text(font_source((CORE / "glyphs.txt").read_text()))
