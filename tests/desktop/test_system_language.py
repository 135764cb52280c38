# SPDX-License-Identifier: Apache-2.0
"""Which language Thock speaks before anybody chose one."""

from __future__ import annotations

import pytest

from app.i18n import Language, system_language


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, Language.EN),
        ({"LANG": ""}, Language.EN),
        ({"LANG": "C.UTF-8"}, Language.EN),
        ({"LANG": "zh_CN.UTF-8"}, Language.ZH_CN),
        ({"LANG": "zh_SG"}, Language.ZH_CN),
        (
            {"LANG": "zh_TW.UTF-8"},
            Language.EN,
        ),  # other signs; English is read more easily than half of them
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, Language.EN),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, Language.ZH_CN),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, Language.EN),
        ({"LANG": "\0\udcff" * 9}, Language.EN),
    ],
)
def test_the_language_of_the_locale(variables: dict[str, str], language: Language) -> None:
    assert system_language("linux", variables) is language
    assert system_language("darwin", variables) is language
