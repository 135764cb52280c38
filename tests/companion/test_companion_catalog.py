# SPDX-License-Identifier: Apache-2.0
"""The display's texts in Simplified Chinese: none missing, none left over, the compiled file is theirs."""

from __future__ import annotations

import gettext
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

import engine.channel
import engine.cuda.errors
import engine.remote.errors  # noqa: F401 - their errors are looked through
from app.companion.overlays import engine_text
from app.companion.typefaces import Typefaces
from app.companion.words import failure_text
from app.i18n import Catalog as CatalogName
from app.i18n import Language, translation
from engine.client import EngineState
from engine.errors import EngineError, ModelFileError
from engine.texts import Text
from tests.helpers.english_left import english_left

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "assets" / "locale" / "zh_CN" / "LC_MESSAGES"


def marked() -> set[str]:
    """What stands in `tr("...")` anywhere in the companion."""
    found: Iterator[tuple[str, int, str | tuple[str, ...], list[str], str | None]] = (
        extract_from_dir(ROOT / "app" / "companion", keywords={"tr": None})
    )
    return {str(message) for _, _, message, _, _ in found}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    with (FOLDER / "companion.po").open("rb") as file:
        return read_po(file, locale="zh_CN")


def translations(catalog: Catalog) -> dict[str, str]:
    return {str(m.id): str(m.string) for m in catalog if m.id}


def test_every_text_has_a_translation_and_none_is_left_over(catalog: Catalog) -> None:
    texts = marked()
    assert len(texts) > 20
    assert translations(catalog).keys() == texts
    assert all(translations(catalog).values())
    assert not any(message.fuzzy for message in catalog if message.id)


def test_translations_have_the_fields_of_their_texts(catalog: Catalog) -> None:
    def fields(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    for text, chinese in translations(catalog).items():
        assert fields(text) == fields(chinese), text


def test_the_compiled_file_is_that_of_the_texts(catalog: Catalog) -> None:
    with (FOLDER / "companion.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {text: compiled.gettext(text) for text in translations(catalog)} == translations(catalog)
    assert len(compiled._catalog) == len(translations(catalog)) + 1  # and the header


def test_the_fonts_can_show_every_translation(catalog: Catalog) -> None:
    faces = Typefaces()
    for text in translations(catalog).values():
        for font in (faces.small, faces.medium, faces.large):
            assert all(character == "\n" or font.covers(character) for character in text), text


def test_every_failure_is_told_in_chinese_on_the_display() -> None:
    tr = translation(Language.ZH_CN, CatalogName.COMPANION)
    codes = {error.code for error in _below(EngineError)} | {"internal", "of a later version"}
    assert {"cuda-device-lost", "remote-refused", "chat-template"} <= codes
    for code in codes:
        assert not english_left(failure_text(code, tr)), code
    cause = ModelFileError(
        "/m/tiny.gguf", "header", Text("is {number}, allowed are {most}", number=1, most=0)
    )
    text = engine_text(EngineState.FAILED, str(cause), tr)
    assert text == "引擎出错：/m/tiny.gguf：文件头：是 1，最多允许 0"


def _below(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _below(inner)
