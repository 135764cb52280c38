# SPDX-License-Identifier: Apache-2.0
"""Text -> lines in a font's characters: nothing too wide, nothing outside the font, nothing lost unsaid."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firmware_bridge.display.layout import wrap
from firmware_bridge.display.spelling import (
    BOX,
    PLACEHOLDER,
    is_plain,
    is_wide,
    spelled,
    to_ascii,
)

TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=300),
    st.text(st.sampled_from("ab  \n\t-é"), max_size=300),
    st.text(st.sampled_from("“’—…\u00a0ﬁßñ日👩‍💻🏽\u0301½"), max_size=80),
)
COLUMNS = st.integers(1, 42)
MIXED = st.text(st.sampled_from("你好世界天空，。！“”（）《》的3a b\n-é,.…—「」ー"), max_size=120)


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


def test_an_impossible_display_is_refused() -> None:
    with pytest.raises(ValueError, match="column"):
        wrap("a", 0)


def test_repr_shows_no_text() -> None:
    assert "secret" not in repr(to_ascii("secret"))


def columns_of(character: str) -> int:
    return 2 if is_wide(character) or character in "“”—…" else 1


@given(MIXED, st.integers(2, 42))
def test_lines_with_hanzi_fit_and_lose_no_character(text: str, columns: int) -> None:
    lines = wrap(text, columns, columns_of)
    assert all(sum(map(columns_of, line)) <= columns for line in lines)
    assert squeezed("".join(lines)) == squeezed(text)


@given(
    st.lists(
        st.sampled_from(["你好", "（天空）", "“蓝色”，", "世界。", "《的》：", "ab"]), max_size=30
    ),
    st.integers(12, 42),
)
def test_no_line_begins_with_closing_punctuation_nor_ends_with_an_opening_one(
    parts: list[str], columns: int
) -> None:
    """No run of characters without a break between them is as long as these lines."""
    for line in wrap("".join(parts), columns, columns_of):
        assert line[0] not in "，。”）》："
        assert line[-1] not in "“（《"


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("你好世界", 4, ["你好", "世界"]),
        ("你好世界。", 8, ["你好世", "界。"]),
        ("他说：“好。”然后", 10, ["他说：", "“好。”然", "后"]),
        ("看《红楼梦》", 4, ["看", "《红", "楼", "梦》"]),
        ("使用Python语言", 8, ["使用", "Python语", "言"]),
        ("the 天空 is blue", 9, ["the 天空", "is blue"]),
        ("价格￥100元", 6, ["价格", "￥100", "元"]),
        ("。。。。", 4, ["。。", "。。"]),
        ("你", 1, ["你"]),
    ],
)
def test_hanzi_break_anywhere_but_at_punctuation(
    text: str, columns: int, expected: list[str]
) -> None:
    assert wrap(text, columns, columns_of) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it’s “fine” — really…", 'it\'s "fine" -- really...'),
        ("他说“好”——真的…", "他说“好”——真的…"),
        ("café 你好", "café 你好"),
        ("ok 👍🏽", f"ok {BOX}{BOX}"),
        ("a\u00a0b\u3000c\u2028d\u200be\ufe0f", "a b c\nde"),
        ("e\u0301", "é"),
        ("½ ≤ x", "1/2 <= x"),
        ("¿Qué? ¡Sí!", "¿Qué? !Si!"),  # as far as the font has them
        ("他说¿Qué?", "他说¿Qué?"),
    ],
)
def test_a_font_gets_what_it_covers_and_else_ascii_or_a_box(text: str, expected: str) -> None:
    covered = set("他说好真的你“”…—é¿ ≤") - {"≤"}
    assert spelled(text, covered.__contains__) == expected


@given(TEXTS)
def test_spelling_gives_nothing_that_the_font_lacks(text: str) -> None:
    kept = spelled(text, lambda character: character == "日")
    assert all(" " <= c <= "~" or c in ("\n", "日", BOX) for c in kept)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Hello!", True),
        ("it’s — fine…", True),
        ("café", False),
        ("你好", False),
        ("ß", False),
        ("½", True),
        ("👍", False),
    ],
)
def test_plain_text_is_what_the_firmwares_font_shows_as_it_is(text: str, plain: bool) -> None:
    assert is_plain(text) is plain
