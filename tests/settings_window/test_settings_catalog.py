# SPDX-License-Identifier: Apache-2.0
"""Every text of the window has a Chinese translation, and the compiled catalog is that of the source."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

import assets
from app.companion.personas import shipped_personas
from app.i18n import Catalog, Language, translation
from tests.helpers.settings_texts import every_text

FOLDER = Path(assets.__path__[0]) / "locale" / "zh_CN" / "LC_MESSAGES"
# The same in both languages.
NAMES = {"%", "Colemak", "Dvorak", "OpenRGB", "python", "torch"}


def messages() -> dict[str, str]:
    catalog = read_po(io.BytesIO((FOLDER / "settings.po").read_bytes()), locale="zh_CN")
    assert not [m.id for m in catalog if m.fuzzy and m.id]
    return {str(m.id): str(m.string) for m in catalog if m.id}


def test_every_text_is_translated() -> None:
    known = messages()
    missing = sorted(text for text in every_text() if not known.get(text))
    assert not missing, (
        f"add them to {FOLDER / 'settings.po'}, then: "
        "pybabel compile -i settings.po -o settings.mo -l zh_CN"
    )


def test_nothing_is_translated_that_is_not_said() -> None:
    assert set(messages()) <= every_text()


def test_translations_are_chinese_and_keep_the_places() -> None:
    for english, chinese in messages().items():
        assert re.findall(r"\{\w+", english) == re.findall(r"\{\w+", english)
        assert set(re.findall(r"\{[^}]*\}", english)) == set(re.findall(r"\{[^}]*\}", chinese))
        if english not in NAMES and not english.startswith("{"):
            assert re.search(r"[一-鿿]", chinese), english


def test_the_compiled_catalog_is_that_of_the_source() -> None:
    compiled = read_mo(io.BytesIO((FOLDER / "settings.mo").read_bytes()))
    assert {str(m.id): str(m.string) for m in compiled if m.id} == messages()


def test_personas_are_called_as_in_their_own_files() -> None:
    tr = translation(Language.ZH_CN, Catalog.SETTINGS)
    chinese = shipped_personas(Language.ZH_CN)
    for key, persona in shipped_personas(Language.EN).items():
        assert tr(persona.name) == chinese[key].name


@pytest.mark.parametrize("text", ["", "not a text of the window"])
def test_other_texts_are_left_alone(text: str) -> None:
    tr = translation(Language.ZH_CN, Catalog.SETTINGS)
    assert (tr(text) == text) == bool(text)  # gettext gives the catalog's head for nothing
