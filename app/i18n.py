# SPDX-License-Identifier: Apache-2.0
"""Texts in the person's language: gettext catalogs under `assets/locale`.

A text is marked where it stands, `tr("English text")`, and `tr` is handed down to whoever shows texts.
So the language can change while the program runs: whoever draws gets another `tr` and draws again.
"""

from __future__ import annotations

import enum
import gettext
from collections.abc import Callable
from importlib import resources

Translate = Callable[[str], str]


class Language(enum.StrEnum):
    """What Thock speaks; the values are names of gettext catalogs."""

    EN = "en"
    ZH_CN = "zh_CN"


class Catalog(enum.StrEnum):
    """One catalog for each part of the program that shows texts."""

    COMPANION = "companion"
    DESKTOP = "desktop"
    SETTINGS = "settings"


def translation(language: Language, catalog: Catalog) -> Translate:
    """The texts of `language`. English is what stands in the code, and needs no catalog.

    Raises:
        FileNotFoundError: the catalog was not installed.
    """
    if language is Language.EN:
        return str
    with resources.as_file(resources.files("assets") / "locale") as folder:
        return gettext.translation(catalog, folder, [language.value]).gettext
