# SPDX-License-Identifier: Apache-2.0
"""The cursor in the context, against small editors that differ where real ones do."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.companion.context import Edit, MacroRan, TypingContext
from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Delete,
    Direction,
    Enter,
    Escape,
    TextTyped,
)

LEFT, RIGHT, HOME, END = (
    CursorMoved(direction)
    for direction in (Direction.LEFT, Direction.RIGHT, Direction.HOME, Direction.END)
)


@dataclass
class Editor:
    """A text with a cursor.

    `columns`: the window breaks lines at spaces, and Home and End go to what it shows as a line.
    `smart_home`: Home stops behind the indent. `long_words`: signs belong to the word beside them.
    """

    text: str
    cursor: int
    columns: int | None = None
    smart_home: bool = False
    long_words: bool = False

    def apply(self, edit: Edit) -> None:
        match edit:
            case TextTyped(text):
                self._replace(self.cursor, self.cursor, text)
            case Enter():
                self._replace(self.cursor, self.cursor, "\n")
            case Backspace(word=word):
                start = self._word_left() if word else max(self.cursor - 1, 0)
                self._replace(start, self.cursor, "")
            case Delete(word=word):
                end = self._word_right() if word else min(self.cursor + 1, len(self.text))
                self._replace(self.cursor, end, "")
            case CursorMoved(direction=direction, word=word):
                self.cursor = self._place(direction, word)

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)

    def _place(self, direction: Direction, word: bool) -> int:
        start, end = self._visual_line()
        match direction:
            case Direction.LEFT:
                return self._word_left() if word else max(self.cursor - 1, 0)
            case Direction.RIGHT:
                return self._word_right() if word else min(self.cursor + 1, len(self.text))
            case Direction.HOME:
                line = self.text[start:end]
                indent = len(line) - len(line.lstrip(" ")) if self.smart_home else 0
                return 0 if word else start + indent
            case Direction.END:
                return len(self.text) if word else end
            case _:
                return 0  # not used where it matters: the context forgets everything

    def _visual_line(self) -> tuple[int, int]:
        start = self.text.rfind("\n", 0, self.cursor) + 1
        end = self.text.find("\n", self.cursor)
        end = len(self.text) if end < 0 else end
        while self.columns is not None and end - start > self.columns:
            space = self.text.rfind(" ", start, start + self.columns)
            border = space + 1 if space >= 0 else start + self.columns
            if self.cursor < border:
                return start, border - 1 if space >= 0 else border
            start = border
        return start, end

    def _word_left(self) -> int:
        before = self.text[: self.cursor]
        pattern = r"\w*[^\w]*\Z" if self.long_words else r"(?:\n|(?:\w+|[^\w\s]+)?[ \t]*)\Z"
        match = re.search(pattern, before)
        assert match is not None
        return match.start()

    def _word_right(self) -> int:
        pattern = r"\w*\W*" if self.long_words else r"[ \t]*(?:\w+|[^\w\s]+|\n)?"
        match = re.compile(pattern).match(self.text, self.cursor)
        assert match is not None
        return match.end()


typed = st.sampled_from(
    [
        "a",
        "b",
        " ",
        "é",
        "-",
        "ab",
        "'",
        "word ",
        "two words",
        "  ",
        "a line of eight words, too long to",
    ]
).map(TextTyped)
moves = st.builds(
    CursorMoved,
    st.sampled_from([Direction.LEFT, Direction.RIGHT, Direction.HOME, Direction.END]),
    st.sampled_from([False, False, False, True]),
)
edits = st.lists(
    st.one_of(
        typed,
        st.one_of(
            st.sampled_from([LEFT, HOME, END]),
            moves,
            st.just(Enter()),
            st.just(Escape()),
            st.builds(Backspace, st.booleans()),
            st.builds(Delete, st.booleans()),
        ),
    ),
    max_size=40,
)
editors = st.builds(
    Editor,
    text=st.just(""),
    cursor=st.just(0),
    columns=st.sampled_from([None, 44, 60]),
    smart_home=st.booleans(),
    long_words=st.booleans(),
)


@settings(max_examples=1500, deadline=None)
@given(edits, editors, st.sampled_from(["", "x", "some words before", "a\n  b", "a\n\n"]),
       st.sampled_from(["", "\nthe next line", "\n\n"]), st.sampled_from([16, 40, 200]))  # fmt: skip
def test_every_editor_holds_what_the_context_says(
    edits: list[Edit], editor: Editor, before: str, behind: str, limit: int
) -> None:
    editor.text, editor.cursor = before + behind, len(before)
    context = TypingContext(limit)
    for edit in edits:
        context.apply(edit)
        editor.apply(edit)
        assert len(context) <= limit
        assert editor.text[: editor.cursor].endswith(context.text)
        assert editor.text[editor.cursor :].startswith(context.after)
        if not len(context):
            # Where the editor's cursor now stands is not what the next run assumes: at a line's end.
            end = editor.text.find("\n", editor.cursor)
            editor.cursor = len(editor.text) if end < 0 else end


def around(*edits: Edit | str, limit: int = 200) -> str:
    """The context after `edits`, with `|` for the cursor."""
    context = TypingContext(limit)
    for edit in edits:
        context.apply(TextTyped(edit) if isinstance(edit, str) else edit)
    return f"{context.text}|{context.after}"


def test_the_cursor_goes_back_and_types_there() -> None:
    assert around("helo", LEFT, "l") == "hell|o"
    assert around("helo", LEFT, "l", END, " you") == "hello you|"
    assert around("helo", LEFT, "l", RIGHT) == "hello|"


def test_deleting_on_both_sides() -> None:
    assert around("hello", LEFT, LEFT, Backspace(), Delete()) == "he|o"


def test_a_cursor_that_leaves_the_run_ends_it() -> None:
    assert around("ab", LEFT, LEFT, LEFT) == "|"
    assert around("ab", RIGHT) == "|"
    assert around("ab", LEFT, RIGHT, RIGHT) == "|"


def test_home_and_end_in_a_line_that_is_known() -> None:
    assert around("one", Enter(), "two", HOME) == "one\n|two"
    assert around("one", Enter(), "two", HOME, "x", END) == "one\nxtwo|"
    assert around("one", Enter(), "two", LEFT, Enter(), LEFT, HOME) == "one\n|tw\no"
    assert around("one", HOME) == "|", "its line may have begun before the run"


def test_home_in_an_indented_line_and_in_a_long_one_is_unknown() -> None:
    assert around("one", Enter(), "  two", HOME) == "|"
    assert around("one", Enter(), "x" * 41, HOME) == "|"


def test_home_before_a_line_whose_beginning_is_not_known_is_unknown() -> None:
    assert around(Enter(), "word", HOME, Delete(word=True), HOME) == "|"


def test_end_is_known_within_the_last_word_or_in_a_short_line() -> None:
    assert around("a " * 40, "wrod", LEFT, LEFT, END).endswith("wrod|")
    assert around("a " * 40, LEFT, LEFT, LEFT, END) == "|"
    assert around(Enter(), "a b", LEFT, LEFT, END) == "\na b|"


def test_end_after_something_unknown_was_drawn_to_the_end() -> None:
    assert around("ab", Delete(), END) == "|"
    assert around("ab", LEFT, Delete(word=True), END) == "|"


def test_a_word_to_the_left() -> None:
    word_left = CursorMoved(Direction.LEFT, word=True)
    assert around("one two", word_left) == "one |two"
    assert around("one two ", word_left) == "one |two "
    assert around("one", word_left) == "|", "the word may have begun before the run"
    assert around("one don't", word_left) == "|"


@pytest.mark.parametrize(
    ("edits", "inside"),
    [(["ab"], False), (["ab", LEFT], True), (["a ", LEFT], False), (["ab", LEFT, LEFT], True)],
)
def test_inside_a_word(edits: list[Edit | str], inside: bool) -> None:
    context = TypingContext(64)
    for edit in edits:
        context.apply(TextTyped(edit) if isinstance(edit, str) else edit)
    assert context.is_inside_word is inside


def test_a_macro_begins_a_run_and_names_it() -> None:
    context = TypingContext(64)
    context.apply(TextTyped("secret"))
    assert context.apply(MacroRan("build"))
    assert (context.text, context.last_line) == ("", "[build]")
    context.apply(TextTyped("done"))
    assert (context.text, context.last_line) == ("done", "[build] done")
    context.apply(Enter())
    context.apply(TextTyped("next"))
    assert context.last_line == "next"
    context.wipe()
    assert context.last_line == ""


def test_behind_the_cursor_the_text_is_bounded_too() -> None:
    context = TypingContext(16)
    for _ in range(100):
        context.apply(TextTyped("x"))
        context.apply(LEFT)
        assert len(context) <= 16
