# SPDX-License-Identifier: Apache-2.0
"""Where words begin and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.wordbreak import (
    WordState,
    open_word_start,
    read_continuation,
    starts_with_break,
)

BEFORE, INSIDE, COMPLETE, NO_WORD = WordState


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", ""),
        ("I like app", "app"),
        ("I like ", ""),
        ("I like\n", ""),
        ("Hello,", ""),
        ("(ba", "ba"),
        ("well-kno", "kno"),
        ("snake_ca", "snake_ca"),
        ("I don'", "don'"),
        ("I don't", "don't"),
        ("l\u2019ami", "l\u2019ami"),
        ("say 'he", "he"),
        ("'", ""),
        ("caf\u00e9", "caf\u00e9"),
        ("cafe\u0301", "cafe\u0301"),  # a combining accent
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940"),  # Hindi
        ("\ud55c\uad6d\uc5b4", "\ud55c\uad6d\uc5b4"),  # Korean has spaces
        ("at 12", "12"),
        ("我喜欢", ""),
        ("用Python", "Python"),
        ("ประเทศไทย", ""),
        ("nice 😀", ""),
    ],
)
def test_open_word(text: str, word: str) -> None:
    assert text[open_word_start(text) :] == word


@pytest.mark.parametrize(
    ("added", "after", "state", "text"),
    [
        (b"", "p", BEFORE, ""),
        (b" ", "p", BEFORE, ""),
        (b"le", "p", INSIDE, "le"),
        (b"le,", "p", COMPLETE, "le"),
        (b"le tree", "p", COMPLETE, "le"),
        (b" tree", "p", INSIDE, " tree"),
        (b" tree.", "p", COMPLETE, " tree"),
        (b"  tree", "p", NO_WORD, ""),
        (b"\ntree", "p", NO_WORD, ""),
        (b", tree", "p", NO_WORD, ""),
        (b"tree", " ", INSIDE, "tree"),
        (b" tree", " ", NO_WORD, ""),
        (b" tree", "\n", NO_WORD, ""),
        (b" tree", "", NO_WORD, ""),
        (b"Tree", "", INSIDE, "Tree"),
        (b" how", ",", INSIDE, " how"),
        (b"'t", "n", INSIDE, "'t"),
        (b"'", "n", NO_WORD, ""),
        (b"'t", " ", NO_WORD, ""),
        (b"'t", ",", NO_WORD, ""),
        (b" don't", "I", INSIDE, " don't"),
        (b" don' ", "I", COMPLETE, " don"),
        ("好".encode(), "你", COMPLETE, "好"),
        ("世界 ".encode(), "你", COMPLETE, "世界"),
        ("世界abc".encode(), "你", COMPLETE, "世界"),
        ("abc好".encode(), " ", COMPLETE, "abc"),
        ("好".encode()[:2], "你", BEFORE, ""),
        ("é".encode()[:1], "f", BEFORE, ""),
        (b"ab" + "é".encode()[:1], "f", INSIDE, "ab"),
        (b"ab\xff", "f", COMPLETE, "ab"),
        (b"\xff", "f", NO_WORD, ""),
        (b"\x80", "f", NO_WORD, ""),
    ],
)
def test_continuation(added: bytes, after: str, state: WordState, text: str) -> None:
    continuation = read_continuation(added, after)
    assert (continuation.state, continuation.text) == (state, text)


@pytest.mark.parametrize("data", [b" the", b"\n", b",", b"'", b"' ", b"-", b"(", "好".encode()])
def test_breaks(data: bytes) -> None:
    assert starts_with_break(data)


@pytest.mark.parametrize("data", [b"", b"the", b"'t", b"_x", b"1", "é".encode(), b"\xa9", b"\xe4"])
def test_no_breaks(data: bytes) -> None:
    assert not starts_with_break(data)


@given(st.binary(max_size=12), st.text(max_size=1))
def test_any_bytes_are_judged(data: bytes, after: str) -> None:
    continuation = read_continuation(data, after)
    assert bool(continuation.text) == (continuation.state in (INSIDE, COMPLETE))
    assert data.startswith(continuation.text.encode())
    assert not after.isspace() or not continuation.text.startswith(" ")
