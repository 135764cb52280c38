# SPDX-License-Identifier: Apache-2.0
"""The hanzi of GB 2312, through the codec of Python."""

from __future__ import annotations

_CELLS = range(1, 95)


def hanzi(level: int) -> list[str]:
    """All of level 1 (3,755, the common ones, rows 16 to 55) or 2 (3,008, rows 56 to 87)."""
    rows = range(16, 56) if level == 1 else range(56, 88)
    codes = [bytes((row + 0xA0, cell + 0xA0)) for row in rows for cell in _CELLS]
    # Row 55 ends at cell 89.
    return [text for code in codes if (text := code.decode("gb2312", "ignore"))]
