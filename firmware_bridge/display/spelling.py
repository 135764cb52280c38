# SPDX-License-Identifier: Apache-2.0
"""Text in the characters that a font has: the firmware's own holds printable ASCII, a pixel font far more.

What a font lacks is spelled in ASCII where there is a spelling, and else becomes one placeholder.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

PLACEHOLDER = "?"
BOX = "□"
"""The placeholder of pixel fonts, where a question mark would be taken for one of the text."""
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


def is_plain(text: str) -> bool:
    """Whether ASCII has all letters of `text` as they are; quotes and dashes may be spelled."""
    if text.isascii():
        return True
    return not any(c.isalpha() and not c.isascii() for c in text) and not to_ascii(text).lost


def spelled(text: str, covers: Callable[[str], bool]) -> str:
    """`text` and newlines, in characters that the font `covers`; in ASCII where it does not, else a BOX.

    Quotes and dashes that such fonts draw as wide as a hanzi stay so beside one only: in Latin text they
    become those of ASCII.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    parts: list[str] = []
    for i, character in enumerate(text):
        spelling = _spell(character)
        if spelling in ("", " ", "\n", _TAB) or _is_latin_punctuation(text, i):
            parts.append(spelling or "")
        elif covers(character):
            parts.append(character)
        else:
            parts.append(BOX if spelling is None else spelling)
    return "".join(parts)


def _is_latin_punctuation(text: str, i: int) -> bool:
    """Whether character `i` is punctuation without a width of its own that stands beside no hanzi."""
    if not _is_ambiguous(text[i]) or _spell(text[i]) is None:
        return False
    before = next((c for c in reversed(text[:i]) if not _is_ambiguous(c)), "")
    after = next((c for c in text[i + 1 :] if not _is_ambiguous(c)), "")
    return not any(is_wide(c) for c in (before, after) if c)


def _is_ambiguous(character: str) -> bool:
    """Punctuation that is wide in Chinese text and narrow in Latin text (UAX #11: A).

    The Spanish signs are of this class, but no font draws them wide.
    """
    is_sign = unicodedata.category(character)[0] == "P" and character not in "¡¿"
    return is_sign and unicodedata.east_asian_width(character) == "A"


def is_wide(character: str) -> bool:
    """Whether the character belongs to a script of wide ones, hanzi and kana (UAX #11: W and F)."""
    return unicodedata.east_asian_width(character) in "WF"
