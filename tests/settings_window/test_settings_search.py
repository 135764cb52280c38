# SPDX-License-Identifier: Apache-2.0
"""Search finds a setting by name, help, group or page, in both languages."""

from __future__ import annotations

import pytest

from app.i18n import Catalog, Language, translation
from app.settings import Settings
from app.settings_window.fields import fields_of
from app.settings_window.labels import Place
from app.settings_window.search import Hit, find

FIELDS = fields_of(Settings)
CHINESE = translation(Language.ZH_CN, Catalog.SETTINGS)


def hits(text: str, *, chinese: bool = False) -> list[Hit]:
    return find(text, FIELDS, CHINESE if chinese else str)


def test_a_title_comes_before_a_description() -> None:
    found = hits("speed")
    assert found[0].path == ("chat", "reading_speed")


def test_all_words_must_fit() -> None:
    assert {hit.path for hit in hits("remembered typing")} == {("context_chars",)}
    assert hits("remembered unicorn") == []
    assert hits("   ") == []


def test_pages_and_groups_are_found() -> None:
    assert hits("privacy")[0] == Hit(Place.PRIVACY, (), "Privacy")
    assert ("react", "pause_s") in {hit.path for hit in hits("moods")}


@pytest.mark.parametrize("text", ["阅读速度", "Reading speed", "chat.reading_speed"])
def test_chinese_settings_are_found_in_both_languages(text: str) -> None:
    assert hits(text, chinese=True)[0].path == ("chat", "reading_speed")


def test_every_setting_is_found_by_its_title() -> None:
    for field in FIELDS:
        for chinese in (False, True):
            title = CHINESE(field.title) if chinese else field.title
            assert field.path in {hit.path for hit in hits(title, chinese=chinese)}, field.name
