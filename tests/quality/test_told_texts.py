# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong can be told in Chinese: no text in the code is without a translation.

The texts are found in the code itself, so a new error without one fails here.
"""

from __future__ import annotations

import gettext
import io
import json
import re
import string

import pytest
from babel.messages.pofile import read_po

from app.companion.typefaces import Typefaces
from app.i18n import Catalog, Language, told, translation
from engine.texts import Text, from_wire, revived, to_wire
from firmware_bridge.texts import Text as BridgeText
from tests.helpers.told_texts import ROOT, found_texts, told_texts

FOLDER = ROOT / "assets" / "locale" / "zh_CN" / "LC_MESSAGES"
# The same in both languages, or nearly.
NAMES = {"python", "torch", "{columns}x{rows}, UTF-8"}


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    catalog = read_po(io.BytesIO((FOLDER / "messages.po").read_bytes()), locale="zh_CN")
    assert not any(message.fuzzy for message in catalog if message.id)
    return {str(message.id): str(message.string) for message in catalog if message.id}


def fields(text: str) -> set[tuple[str, str | None, str | None]]:
    """Name, format and conversion of each value; a plain text is formatted by nobody."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return set()
    return {(name, spec, conversion) for _, name, spec, conversion in parts if name}


def test_no_text_is_put_together_before_it_is_told() -> None:
    """An f-string would be English for ever: `Text("…{value}…", value=value)` is not."""
    assert [found.place for found in found_texts() if found.text is None] == []


def test_every_text_has_a_translation_and_none_is_left_over(messages: dict[str, str]) -> None:
    texts = told_texts()
    assert len(texts) > 400
    assert sorted(texts - messages.keys()) == [], f"add them to {FOLDER / 'messages.po'}"
    assert sorted(messages.keys() - texts) == []


def test_translations_are_chinese_and_keep_the_values(messages: dict[str, str]) -> None:
    for english, chinese in messages.items():
        assert fields(english) == fields(chinese), english
        words = re.sub(r"\{[^}]*\}|`[^`]*`", "", english)
        if re.search("[A-Za-z]{3}", words) and english not in NAMES:
            assert re.search("[一-鿿]", chinese), english


def test_the_compiled_file_is_that_of_the_texts(messages: dict[str, str]) -> None:
    with (FOLDER / "messages.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {text: compiled.gettext(text) for text in messages} == messages


def test_the_fonts_of_the_display_can_show_every_translation(messages: dict[str, str]) -> None:
    faces = Typefaces()
    for chinese in messages.values():
        for font in (faces.small, faces.medium, faces.large):
            lost = {letter for letter in chinese if letter != "\n" and not font.covers(letter)}
            assert not lost, (chinese, lost)


def test_a_text_keeps_its_values_through_errors_and_wires() -> None:
    cause = Text("{free:.1f} GB free", free=0.53)
    text = Text("{place}: {text}", place="disk", text=ValueError(cause))
    assert text == "disk: 0.5 GB free"
    there = json.loads(json.dumps(to_wire(text)), object_hook=revived)
    tr = translation(Language.ZH_CN, Catalog.MESSAGES)
    assert told(tr, there) == told(tr, text) == "disk：可用 0.5 GB"
    assert told(str, there) == "disk: 0.5 GB free"
    assert (
        told(tr, BridgeText("{program} is using the keyboard.", program="VIA"))
        == "VIA 正在使用键盘。"
    )


def test_names_stay_as_they_are() -> None:
    """A value that happens to be a word of the catalog is still a name, unless it is a Text."""
    tr = translation(Language.ZH_CN, Catalog.MESSAGES)
    assert told(tr, Text("Remove {name}?", name="memory")) == "要移除 memory 吗？"
    assert (
        told(tr, Text("{state}: {reason}", state=Text("memory"), reason="memory")) == "内存：memory"
    )
    assert told(tr, "") == ""


@pytest.mark.parametrize(
    "value",
    [
        7,
        None,
        {"$text": "{a.b}", "$values": {"a": 1}},
        {"$text": "{0}", "$values": {"a": 1}},
        {"$text": 1, "$values": {}},
        {"$text": "x", "$values": []},
        {"$text": "x"},
        {"$text": "{a", "$values": {"a": 1}},
        {"$text": "{a:q}", "$values": {"a": 1}},
    ],
)
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="text"):
        from_wire(value)


def test_a_text_is_not_nested_without_end() -> None:
    wired: object = "x"
    for _ in range(1000):
        wired = {"$text": "{a}", "$values": {"a": wired}}
    with pytest.raises(ValueError, match="no text"):
        from_wire(wired)
