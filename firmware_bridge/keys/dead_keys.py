# SPDX-License-Identifier: Apache-2.0
"""Dead keys: an accent that waits for its letter.

What accent and letter make together follows from Unicode: the letter with the combining mark, in form
NFC. That agrees with the Compose tables of X11 and with the dead keys of Windows wherever it gives one
character; where it gives none, each system does something else.
"""

from __future__ import annotations

import enum
import unicodedata

_LAST_LATIN_1 = 0xFF


class System(enum.Enum):
    """Whose keyboard layouts: they differ in details from one system to the other."""

    LINUX = "linux"
    WINDOWS = "windows"
    MACOS = "macos"


class DeadKey(enum.Enum):
    """An accent, under its name in X11 (`dead_grave` ...)."""

    GRAVE = "grave"
    ACUTE = "acute"
    CIRCUMFLEX = "circumflex"
    TILDE = "tilde"
    MACRON = "macron"
    BREVE = "breve"
    ABOVEDOT = "abovedot"
    DIAERESIS = "diaeresis"
    ABOVERING = "abovering"
    DOUBLEACUTE = "doubleacute"
    CARON = "caron"
    CEDILLA = "cedilla"
    OGONEK = "ogonek"
    BELOWDOT = "belowdot"
    BELOWMACRON = "belowmacron"
    BELOWCOMMA = "belowcomma"
    HOOK = "hook"
    HORN = "horn"
    STROKE = "stroke"
    CURRENCY = "currency"
    GREEK = "greek"
    OTHER = "other"  # any that is not named here


# Combining marks, and the signs that stand alone. The accents that are missing here make
# characters that Unicode does not compose, so no letter after them is known.
_MARKS: dict[DeadKey, tuple[str, str]] = {
    DeadKey.GRAVE: ("\u0300", "`"),
    DeadKey.ACUTE: ("\u0301", "\u00b4"),
    DeadKey.CIRCUMFLEX: ("\u0302", "^"),
    DeadKey.TILDE: ("\u0303", "~"),
    DeadKey.MACRON: ("\u0304", "\u00af"),
    DeadKey.BREVE: ("\u0306", "\u02d8"),
    DeadKey.ABOVEDOT: ("\u0307", "\u02d9"),
    DeadKey.DIAERESIS: ("\u0308", "\u00a8"),
    DeadKey.ABOVERING: ("\u030a", "\u00b0"),
    DeadKey.DOUBLEACUTE: ("\u030b", "\u02dd"),
    DeadKey.CARON: ("\u030c", "\u02c7"),
    DeadKey.CEDILLA: ("\u0327", "\u00b8"),
    DeadKey.OGONEK: ("\u0328", "\u02db"),
    DeadKey.BELOWDOT: ("\u0323", ""),
    DeadKey.BELOWMACRON: ("\u0331", ""),
    DeadKey.BELOWCOMMA: ("\u0326", ""),
    DeadKey.HOOK: ("\u0309", ""),
    DeadKey.HORN: ("\u031b", ""),
}
# X11 gives the typewriter's sign for these accents and a space (libX11, nls/en_US.UTF-8/Compose).
_ALONE_ON_LINUX = {DeadKey.ACUTE: "'", DeadKey.DIAERESIS: '"'}


def compose(dead: DeadKey, text: str, system: System) -> str:
    """What the accent and the character `text` after it type; "" where that is not known for certain."""
    mark, alone = _MARKS.get(dead, ("", ""))
    if not mark:
        return ""
    if text == " ":
        return _ALONE_ON_LINUX.get(dead, alone) if system is System.LINUX else alone
    composed = unicodedata.normalize("NFC", text + mark)
    # A letter that has an accent already takes another one only on some systems.
    if len(composed) != 1 or not text.isalpha() or unicodedata.decomposition(text):
        return ""
    # The dead keys of Windows know the letters of Latin-1 only (Unicode CLDR 42, keyboards/windows).
    if system is System.WINDOWS and ord(composed) > _LAST_LATIN_1:
        return ""
    return composed


def decompose(character: str, system: System) -> tuple[DeadKey, str] | None:
    """The accent and the character after it that type `character`, if two keys do."""
    for dead, (mark, _) in _MARKS.items():
        if compose(dead, " ", system) == character:
            return dead, " "
        parts = unicodedata.normalize("NFD", character)
        if len(parts) > 1 and parts[-1] == mark:
            letter = unicodedata.normalize("NFC", parts[:-1])
            if compose(dead, letter, system) == character:
                return dead, letter
    return None
