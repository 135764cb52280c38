# SPDX-License-Identifier: Apache-2.0
"""Text -> lines and pages of the firmware's 6x8 font: printable ASCII, fixed columns and rows.

Nothing is lost but what `Ascii.lost` counts (characters without an ASCII spelling, one PLACEHOLDER
each), white space at the ends of lines, and what `first_page` and `last_page` leave out, which they
mark with ELLIPSIS.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from firmware_bridge.display.frame import TextFrame

PLACEHOLDER = "?"
ELLIPSIS = "..."
_TAB = "    "

# What NFKD leaves as it is, or spells with signs that ASCII lacks.
_SPELLINGS = {
    **dict.fromkeys("‘’‚‛′ʼ´", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‐‑‒–―−", "-"),
    **dict.fromkeys("«‹", "<"),
    **dict.fromkeys("»›", ">"),
    **dict.fromkeys("•‣∙·", "*"),
    "—": "--", "…": "...", "→": "->", "←": "<-", "⇒": "=>", "×": "x", "÷": "/", "⁄": "/",
    "≤": "<=", "≥": ">=", "≠": "!=", "±": "+-", "✓": "v", "✗": "x", "°": "o",
    "€": "EUR", "£": "GBP", "¥": "JPY", "©": "(c)", "®": "(R)",
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O",
    "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ł": "l", "Ł": "L", "ı": "i",
    "ħ": "h", "Ħ": "H", "ŋ": "ng", "Ŋ": "NG", "ŧ": "t", "Ŧ": "T", "ĸ": "k", "µ": "u",
    "¡": "!", "¿": "?",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ascii:
    """`text` holds 20..7E and newlines; `lost` of the `total` code points became a placeholder."""

    text: str = field(repr=False)
    lost: int
    total: int

    @property
    def lost_fraction(self) -> float:
        """0..1; the caller shows a bitmap instead when too much would be unreadable."""
        return self.lost / self.total if self.total else 0.0


def to_ascii(text: str) -> Ascii:
    """Spell `text` in ASCII: NFKD without its marks, plain quotes and dashes, else a placeholder.

    Marks, joiners, variation selectors and control characters vanish and count in neither number.
    """
    parts: list[str] = []
    lost = total = 0
    for character in unicodedata.normalize("NFC", text.replace("\r\n", "\n")):
        spelling = _spell(character)
        if spelling is None:
            lost += 1
            spelling = PLACEHOLDER
        elif not spelling:
            continue
        total += 1
        parts.append(spelling)
    return Ascii("".join(parts), lost, total)


def _spell(character: str) -> str | None:
    """ASCII for one code point, "" if it has no shape of its own, None if ASCII has nothing like it."""
    if " " <= character <= "~" or character == "\n":
        return character
    if character == "\t":
        return _TAB
    if character in "\r\v\f\x85\u2028\u2029":
        return "\n"
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    if category in ("Mn", "Me", "Cc", "Cf"):
        return ""
    known = [_SPELLINGS.get(c, c) for c in unicodedata.normalize("NFKD", character)]
    spelling = "".join(c for c in known if unicodedata.category(c[0]) not in ("Mn", "Me"))
    return spelling if spelling and spelling.isascii() and spelling.isprintable() else None


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most `columns` characters, broken at spaces; a longer word is broken hard.

    Spaces inside a line stay; those at a break vanish. An empty text gives no lines.

    Args:
        text: printable ASCII and newlines, as `to_ascii` gives it.
        columns: characters in a line, at least 1.
    """
    if columns < 1:
        raise ValueError("a line has at least one column")
    lines: list[str] = []
    for paragraph in text.splitlines():
        rest = paragraph.rstrip()
        while len(rest) > columns:
            # A space right after the last column still ends a full line.
            cut = rest.rfind(" ", 1, columns + 1)
            line = rest[:cut].rstrip() if cut > 0 else ""
            if not line and rest.startswith(" "):
                rest = rest.lstrip()  # rather lose an indentation than break the word behind it
                continue
            if not line:
                cut, line = columns, rest[:columns]
            lines.append(line)
            rest = rest[cut:].lstrip()
        lines.append(rest)
    return lines


def pages(text: str, columns: int, rows: int) -> tuple[TextFrame, ...]:
    """All of `text` in screens of `rows` lines; at least one screen."""
    lines = wrap(to_ascii(text).text, columns)
    _check(rows)
    return tuple(
        TextFrame(tuple(lines[start : start + rows]))
        for start in range(0, max(len(lines), 1), rows)
    )


def first_page(text: str, columns: int, rows: int) -> TextFrame:
    """The first screen; its last line ends with ELLIPSIS if there is more."""
    lines = wrap(to_ascii(text).text, columns)
    _check(rows)
    shown = lines[:rows]
    if len(lines) > rows:
        mark = ELLIPSIS[:columns]
        shown[-1] = shown[-1][: columns - len(mark)].rstrip() + mark
    return TextFrame(tuple(shown))


def last_page(text: str, columns: int, rows: int) -> TextFrame:
    """The last `rows` lines, for text that still grows; ELLIPSIS begins the first if more came before."""
    lines = wrap(to_ascii(text).text, columns)
    _check(rows)
    shown = lines[-rows:]
    if len(lines) > rows:
        mark = ELLIPSIS[:columns]
        shown[0] = (
            mark + shown[0][len(mark) :] if len(shown[0]) + len(mark) > columns else mark + shown[0]
        )
    return TextFrame(tuple(shown))


def _check(rows: int) -> None:
    if rows < 1:
        raise ValueError("a screen has at least one row")
