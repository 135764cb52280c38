# SPDX-License-Identifier: Apache-2.0
"""The corpus itself: the same everywhere, large enough, and without text that UTF-8 cannot hold."""

from __future__ import annotations

import hashlib
import unicodedata

from tests.helpers.corpus import corpus


def test_same_on_every_machine() -> None:
    digest = hashlib.sha256("\0\0".join(corpus()).encode()).hexdigest()
    assert digest == "6ed89f5f7cc23fb790ffe500206c92dc766c31e246fd25b041455bf246a4381b"


def test_size_and_content() -> None:
    texts = corpus()
    assert len(texts) == 2_600
    assert len(set(texts)) >= 2_000
    letters = set("".join(texts))
    assert not any(unicodedata.category(letter) == "Cs" for letter in letters)
    wanted = {"L", "M", "N", "P", "S", "Z", "C"}
    assert {unicodedata.category(letter)[0] for letter in letters} == wanted
    assert {"\t", "\n", "\r", "\u200d", "\ufe0f", "\u0301", "א", "ع", "漢", "키"} <= letters
