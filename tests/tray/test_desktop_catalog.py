# SPDX-License-Identifier: Apache-2.0
"""The menu's texts in Simplified Chinese: none missing, none left over, the compiled file is theirs."""

from __future__ import annotations

import gettext
import string
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "assets" / "locale" / "zh_CN" / "LC_MESSAGES"
PARTS = ("tray", "lifecycle", "hotkey")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    with (FOLDER / "desktop.po").open("rb") as file:
        catalog: Catalog = read_po(file, locale="zh_CN")
    assert not any(message.fuzzy for message in catalog if message.id)
    return {str(message.id): str(message.string) for message in catalog if message.id}


def test_every_text_has_a_translation_and_none_is_left_over(texts: dict[str, str]) -> None:
    marked = {
        str(message)
        for part in PARTS
        for _, _, message, _, _ in extract_from_dir(ROOT / "app" / part, keywords={"tr": None})
    }
    assert texts.keys() == marked
    assert all(texts.values())


def test_translations_have_the_fields_of_their_texts(texts: dict[str, str]) -> None:
    def fields(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    for text, translation in texts.items():
        assert fields(text) == fields(translation), text


def test_the_compiled_file_is_that_of_the_texts(texts: dict[str, str]) -> None:
    with (FOLDER / "desktop.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {text: compiled.gettext(text) for text in texts} == texts
