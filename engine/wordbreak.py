# SPDX-License-Identifier: Apache-2.0
"""Where words begin and end, in text that may stop in the middle of a character.

A word is a run of letters, marks, digits and underscores, with apostrophes between letters
("don't"). Scripts that put no spaces between words (Chinese, Japanese, Thai, ...) have no such
runs; there a word is whatever one token holds, at least one whole character.
"""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass

_APOSTROPHES = "'\u2019"
_JOINERS = "\u200c\u200d"  # inside Persian and Indic words
# Blocks of scripts without spaces between words (https://www.unicode.org/charts/), first and last.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xF900, 0xFAFF),  # CJK compatibility
    (0x20000, 0x3FFFF),  # CJK extensions B and on
)


class WordState(enum.Enum):
    """How far a continuation has come."""

    BEFORE = "before"  # nothing yet, or only the space in front of the word
    INSIDE = "inside"  # may go on
    COMPLETE = "complete"  # ends here, whatever follows
    NOT_A_WORD = "not-a-word"


@dataclass(frozen=True, slots=True)
class Continuation:
    """`text` is what the word adds, with its space; it lacks a character that is not yet whole."""

    state: WordState
    text: str


def is_word_char(char: str) -> bool:
    """Letter, mark, number, underscore or joiner; an apostrophe depends on its neighbours."""
    return unicodedata.category(char)[0] in "LMN" or char == "_" or char in _JOINERS


def is_unspaced(char: str) -> bool:
    """Whether `char` belongs to a script that puts no spaces between words."""
    return any(first <= ord(char) <= last for first, last in _UNSPACED)


def open_word_start(text: str) -> int:
    """Index where the spaced word at the end of `text` begins; len(text) if it ends in none."""
    start = len(text)
    while start and _continues_left(text, start - 1):
        start -= 1
    return start


def _continues_left(text: str, index: int) -> bool:
    char = text[index]
    if char in _APOSTROPHES:
        return index > 0 and is_word_char(text[index - 1]) and not is_unspaced(text[index - 1])
    return is_word_char(char) and not is_unspaced(char)


def starts_with_break(data: bytes) -> bool:
    """Whether a token that begins with `data` ends the spaced word before it."""
    text = data.decode("utf-8", "replace")
    if not text or text[0] == "\ufffd":  # the rest of a character: not for us to tell
        return False
    if text[0] in _APOSTROPHES:
        return len(text) < 2 or not text[1].isalpha()
    return not is_word_char(text[0]) or is_unspaced(text[0])


def read_continuation(data: bytes, after: str) -> Continuation:
    """Judge the bytes that follow a text which ends in the character `after` ("" for no text).

    A word has the form [space] word; the space only where the text ends in no white space.
    """
    text = _whole_characters(data)
    body = text.removeprefix(" ") if after and not after.isspace() else text
    space = text[: len(text) - len(body)]
    if not body:
        return Continuation(WordState.BEFORE, "")
    length = _word_length(body, in_word=bool(after) and not space and is_word_char(after))
    if not length:
        return Continuation(WordState.NOT_A_WORD, "")
    ended = length < len(body) or is_unspaced(body[length - 1])
    return Continuation(WordState.COMPLETE if ended else WordState.INSIDE, space + body[:length])


def _word_length(body: str, *, in_word: bool) -> int:
    """Characters of `body` that make its first word; it ends where the kind of script changes.

    `in_word`: the first character follows a word character.
    """
    for index, char in enumerate(body):
        if char in _APOSTROPHES:
            inside = is_word_char(body[index - 1]) if index else in_word
            if not inside or not body[index + 1 : index + 2].isalpha():
                return index
        elif not is_word_char(char) or (
            index and is_unspaced(char) != is_unspaced(body[index - 1])
        ):
            return index
    return len(body)


def _whole_characters(data: bytes) -> str:
    """The characters of `data` without one that is cut off at the end; U+FFFD for invalid bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        cut_off = error.end == len(data) and error.reason == "unexpected end of data"
        return data[: error.start].decode() + ("" if cut_off else "\ufffd")
