# SPDX-License-Identifier: Apache-2.0
"""Texts in the person's language: gettext catalogs under `assets/locale`.

A text is marked where it stands, `tr("English text")`, and `tr` is handed down to whoever shows texts.
So the language can change while the program runs: whoever draws gets another `tr` and draws again.

What is said far from where it is shown (errors, findings, states of the engine) is a Text: a template and
its values. `told` says it in the language of `tr`.
"""

from __future__ import annotations

import enum
import gettext
import locale
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import assets
from engine.texts import Text, as_text

Translate = Callable[[str], str]


class Language(enum.StrEnum):
    """What Thock speaks; the values are names of gettext catalogs."""

    EN = "en"
    ZH_CN = "zh_CN"


class Catalog(enum.StrEnum):
    """One catalog for each part of the program that shows texts.

    MESSAGES holds what is told with `told`; every other catalog knows its texts too.
    """

    COMMANDS = "commands"
    COMPANION = "companion"
    DESKTOP = "desktop"
    MESSAGES = "messages"
    SETTINGS = "settings"


def system_language(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> Language:
    """What the person's system speaks, if Thock does too; else English.

    By the locale's name: on Windows that of the user interface, elsewhere that of the variables of POSIX,
    of which the first one that is set counts.
    """
    if platform == "win32":
        import ctypes

        # Only Windows has windll, and mypy knows it of `sys.platform` alone.
        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
        name = locale.windows_locale.get(kernel.GetUserDefaultUILanguage(), "")
    else:
        set_ones = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        name = next(filter(None, set_ones), "")
    is_simplified = name.startswith(("zh_CN", "zh_SG", "zh_Hans"))
    return Language.ZH_CN if is_simplified else Language.EN


@runtime_checkable
class Template(Protocol):
    """A text that can be said in another language: `engine.texts.Text`, and the bridge's."""

    template: str
    values: Mapping[str, str | int | float]


def translation(language: Language, catalog: Catalog) -> Translate:
    """The texts of `language`. English is what stands in the code, and needs no catalog.

    Raises:
        FileNotFoundError: the catalog was not installed.
    """
    if language is Language.EN:
        return str
    texts = gettext.translation(catalog, catalogs(), [language.value])
    if catalog is not Catalog.MESSAGES:
        texts.add_fallback(gettext.translation(Catalog.MESSAGES, catalogs(), [language.value]))
    return texts.gettext


def catalogs() -> Path:
    """The folder of all catalogs. `importlib.resources` would take longer than the rest of a command."""
    return Path(assets.__path__[0]) / "locale"


def padded(text: str, columns: int) -> str:
    """`text` with blanks behind it up to so many columns of a terminal, in front of it if negative.

    A Chinese character takes two columns.
    """
    width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    blanks = " " * (abs(columns) - width)
    return text + blanks if columns > 0 else blanks + text


def adopted(text: str) -> Text:
    """`text` as one of ours, which can go to other processes: the bridge has a Text of its own."""
    if not isinstance(text, Template):
        return as_text(text)
    return Text(
        text.template,
        **{
            name: adopted(value)
            if isinstance(value, Template) and isinstance(value, str)
            else value
            for name, value in text.values.items()
        },
    )


def told(tr: Translate, text: str) -> str:
    """`text` in the language of `tr`; one without a translation, a name for instance, stays as it is."""
    if isinstance(text, Template):
        values = {
            name: told(tr, value)
            if isinstance(value, str) and isinstance(value, Template)
            else value
            for name, value in text.values.items()
        }
        return tr(text.template).format(**values) if values else tr(text.template)
    return tr(text) if text else ""  # gettext gives the catalog's head for nothing
