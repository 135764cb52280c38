# SPDX-License-Identifier: Apache-2.0
"""Text -> ASCII lines and pages: nothing too wide, nothing outside the font, nothing lost unsaid."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firmware_bridge.display.layout import (
    ELLIPSIS,
    PLACEHOLDER,
    first_page,
    last_page,
    pages,
    to_ascii,
    wrap,
)

TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=300),
    st.text(st.sampled_from("ab  \n\t-é"), max_size=300),
    st.text(st.sampled_from("“’—…\u00a0ﬁßñ日👩‍💻🏽\u0301½"), max_size=80),
)
COLUMNS = st.integers(1, 42)
ROWS = st.integers(1, 16)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@given(TEXTS)
def test_ascii_is_printable_ascii_and_counts_what_it_lost(text: str) -> None:
    result = to_ascii(text)
    assert all(" " <= c <= "~" or c == "\n" for c in result.text)
    assert 0 <= result.lost <= result.total <= max(len(text), 1)
    assert 0.0 <= result.lost_fraction <= 1.0
    assert result.text.count(PLACEHOLDER) >= result.lost


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=300))
def test_ascii_stays_as_it_is(text: str) -> None:
    result = to_ascii(text)
    assert (result.text, result.lost, result.total) == (text, 0, len(text))


@given(TEXTS, COLUMNS)
def test_no_line_is_wider_than_the_display_and_no_character_is_lost(
    text: str, columns: int
) -> None:
    ascii_text = to_ascii(text).text
    lines = wrap(ascii_text, columns)
    assert all(len(line) <= columns for line in lines)
    assert squeezed("".join(lines)) == squeezed(ascii_text)


@example(" 000000", 6)
@example("   ab cdefgh", 6)
@given(TEXTS, COLUMNS)
def test_a_word_that_fits_a_line_is_never_broken(text: str, columns: int) -> None:
    ascii_text = to_ascii(text).text
    lines = wrap(ascii_text, columns)
    words = [word for word in ascii_text.split() if len(word) <= columns]
    found = [word for line in lines for word in line.split()]
    position = 0
    for word in words:
        assert word in found[position:]
        position = found.index(word, position) + 1


@given(TEXTS, COLUMNS, ROWS)
def test_pages_hold_all_of_the_text(text: str, columns: int, rows: int) -> None:
    screens = pages(text, columns, rows)
    assert screens
    assert all(len(screen.rows) <= rows for screen in screens)
    assert all(len(screen.rows) == rows for screen in screens[:-1])
    whole = "".join("".join(screen.rows) for screen in screens)
    assert squeezed(whole) == squeezed(to_ascii(text).text)


@given(TEXTS, COLUMNS, ROWS)
def test_single_pages_say_when_there_is_more(text: str, columns: int, rows: int) -> None:
    lines = wrap(to_ascii(text).text, columns)
    first, last = first_page(text, columns, rows).rows, last_page(text, columns, rows).rows
    mark = ELLIPSIS[:columns]
    if len(lines) <= rows:
        assert list(first) == list(last) == lines
        return
    assert len(first) == len(last) == rows
    assert all(len(line) <= columns for line in (*first, *last))
    assert list(first[:-1]) == lines[: rows - 1]
    assert list(last[1:]) == lines[len(lines) - rows + 1 :]
    assert first[-1].endswith(mark)
    assert last[0].startswith(mark)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“It’s” — really…", '"It\'s" -- really...'),
        ("a\u00a0b\u2009c", "a b c"),
        ("naïve café Ångström Straße", "naive cafe Angstrom Strasse"),
        ("Łódź, Ørsted, Þór", "Lodz, Orsted, Thor"),
        ("ﬁn ½ x² №5 ™", "fin 1/2 x2 No5 TM"),
        ("1 ≤ 2 → ok", "1 <= 2 -> ok"),
        ("e\u0301", "e"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\tb\x00\x1b\x7f", "a    b"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
    ],
)
def test_common_characters_are_spelled(text: str, expected: str) -> None:
    result = to_ascii(text)
    assert result.text == expected
    assert result.lost == 0


@pytest.mark.parametrize(
    ("text", "expected", "lost"),
    [("日本語", "???", 3), ("ok 👍", "ok ?", 1), ("привет", "??????", 6), ("❤️", "?", 1)],
)
def test_what_ascii_lacks_becomes_one_placeholder_each(text: str, expected: str, lost: int) -> None:
    result = to_ascii(text)
    assert (result.text, result.lost) == (expected, lost)


def test_lost_fraction_is_the_share_of_the_characters() -> None:
    assert to_ascii("ab日本").lost_fraction == 0.5
    assert to_ascii("").lost_fraction == 0.0


def test_every_letter_of_latin_1_and_latin_extended_a_has_a_spelling() -> None:
    letters = [chr(c) for c in range(0xA0, 0x180) if unicodedata.category(chr(c)).startswith("L")]
    unspelled = [letter for letter in letters if to_ascii(letter).lost]
    assert unspelled == []


def test_lines_break_at_words_and_long_words_break_hard() -> None:
    assert wrap("The quick brown fox jumps over it", 10) == [
        "The quick",
        "brown fox",
        "jumps over",
        "it",
    ]
    assert wrap("abcdefghijklm no", 5) == ["abcde", "fghij", "klm", "no"]
    assert wrap("one\n\ntwo", 5) == ["one", "", "two"]
    assert wrap("", 5) == []


def test_impossible_displays_are_refused() -> None:
    with pytest.raises(ValueError, match="column"):
        wrap("a", 0)
    for page in (pages, first_page, last_page):
        with pytest.raises(ValueError, match="row"):
            page("a", 5, 0)


def test_repr_shows_no_text() -> None:
    assert "secret" not in repr(to_ascii("secret")) + repr(first_page("secret", 21, 4))
