# SPDX-License-Identifier: Apache-2.0
"""Text -> lines of some columns. Nothing is lost but white space at the ends of lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from firmware_bridge.display.spelling import is_wide

# Characters that may not begin a line, or end one; besides these, all opening and closing brackets and quotes.
# After W3C, Requirements for Chinese Text Layout, "Prohibition rules for line start and line end", and JIS X
# 4051 for the small kana and the sign of a long vowel.
_NEVER_FIRST = frozenset(
    "!%,.:;?~¢°·•‥…‰′″℃、。々〜！％，．：；？～—-ーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ"
)
_NEVER_LAST = frozenset("#$£¥€№＃＄￡￥")


def one_column(_character: str) -> int:
    """The width of every character of the firmware's own font."""
    return 1


def wrap(text: str, columns: int, width: Callable[[str], int] = one_column) -> list[str]:
    """Lines of at most `columns` columns, broken at spaces and between hanzi; a longer word is broken hard.

    Spaces inside a line stay; those at a break vanish. Closing punctuation takes the character before
    it along to the next line. An empty text gives no lines.

    Args:
        text: characters of one font, and newlines.
        columns: of a line, at least 1. A character that is wider than that is a line of its own.
        width: columns of one character.
    """
    if columns < 1:
        raise ValueError("a line has at least one column")
    lines: list[str] = []
    for paragraph in text.splitlines():
        rest = paragraph.rstrip()
        while (fitting := prefix(rest, columns, width)) < len(rest):
            cut = _break(rest, fitting)
            line = rest[:cut].rstrip()
            if not line and rest.startswith(" "):
                rest = rest.lstrip()  # rather lose an indentation than break the word behind it
                continue
            if not line:
                cut = _hard_break(rest, max(fitting, 1))
                if cut == len(rest):
                    break  # one character that is wider than the line
                line = rest[:cut]
            lines.append(line)
            rest = rest[cut:].lstrip()
        lines.append(rest)
    return lines


def prefix(text: str, columns: int, width: Callable[[str], int]) -> int:
    """How many characters of `text`, from the first on, fit `columns` columns."""
    if width is one_column:
        return min(len(text), columns)
    used = 0
    for count, character in enumerate(text):
        used += width(character)
        if used > columns:
            return count
    return len(text)


def _break(text: str, most: int) -> int:
    """Where a line of at most `most` characters ends best; 0 if only by breaking a word."""
    return next((i for i in range(most, 0, -1) if _may_break(text[i - 1], text[i])), 0)


def _hard_break(text: str, most: int) -> int:
    """Where to break a word that is longer than a line; it may be all of `text`."""
    if most >= len(text):
        return len(text)
    return next((i for i in range(most, 0, -1) if _may_part(text[i - 1], text[i])), most)


def _may_break(before: str, after: str) -> bool:
    return after == " " or ((is_wide(before) or is_wide(after)) and _may_part(before, after))


def _may_part(before: str, after: str) -> bool:
    """Whether one line may end with `before` and the next begin with `after`."""
    return not (
        after in _NEVER_FIRST
        or before in _NEVER_LAST
        or unicodedata.category(after) in ("Pe", "Pf")
        or unicodedata.category(before) in ("Ps", "Pi")
    )
