# SPDX-License-Identifier: Apache-2.0
"""What the context makes of edits: exact text, a bound, an honest end of a run, nothing in repr."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.companion.context import Edit, TextUnknown, TypingContext
from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Delete,
    Direction,
    Enter,
    Escape,
    Shortcut,
    Tab,
    TextTyped,
    Unclear,
)
from firmware_bridge.keys.usage import Modifiers, Usage


def after(*edits: Edit | str, limit: int = 64) -> str:
    context = TypingContext(limit)
    for edit in edits:
        context.apply(TextTyped(edit) if isinstance(edit, str) else edit)
    return context.text


def test_letters_enter_and_backspace() -> None:
    assert after("hel", "lo", Enter(), "wo", Backspace()) == "hello\nw"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("one two", "one "),
        ("one two ", "one "),
        ("one", ""),
        ("foo-bar", "foo-"),
        ("", ""),
        ("naïve été", "naïve "),
    ],
)
def test_a_word_is_deleted_as_editors_do_it(text: str, left: str) -> None:
    assert after(text, Backspace(word=True)) == left


@pytest.mark.parametrize("text", ["one two  ", "foo--", "don't", "one\n", "你好世界"])
def test_where_editors_differ_about_the_last_word_the_text_is_unknown(text: str) -> None:
    assert after("before " + text, Backspace(word=True)) == ""


@pytest.mark.parametrize(
    "edit",
    [
        CursorMoved(Direction.RIGHT),
        CursorMoved(Direction.UP),
        CursorMoved(Direction.HOME),
        CursorMoved(Direction.LEFT, word=True),
        CursorMoved(Direction.LEFT, selecting=True),
        Tab(),
        Unclear(),
        Shortcut(Usage.V, Modifiers.LEFT_CONTROL),
        TextUnknown(),
    ],
)
def test_whatever_makes_the_text_unknown_begins_an_empty_run(edit: Edit) -> None:
    assert after("secret", edit) == ""
    assert after("secret", edit, "new") == "new"


@pytest.mark.parametrize("edit", [Delete(), Delete(word=True), Escape()])
def test_what_does_not_touch_the_text_before_the_cursor_changes_nothing(edit: Edit) -> None:
    context = TypingContext(64)
    context.apply(TextTyped("kept"))
    assert context.apply(edit) is False
    assert context.text == "kept"


def test_apply_says_whether_the_text_changed() -> None:
    context = TypingContext(64)
    assert context.apply(Backspace()) is False
    assert context.apply(TextTyped("a")) is True
    assert context.apply(Backspace()) is True


def test_last_line_skips_empty_lines() -> None:
    context = TypingContext(64)
    for edit in (TextTyped("first"), Enter(), TextTyped("second"), Enter(), Enter()):
        context.apply(edit)
    assert context.last_line == "second"
    context.wipe()
    assert context.last_line == ""


def test_repr_shows_no_content() -> None:
    context = TypingContext(64)
    context.apply(TextTyped("canary"))
    assert "canary" not in repr(context)
    assert repr(context) == "TypingContext(6 of 64 characters)"


def test_a_limit_below_16_characters_is_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        TypingContext(15)


def test_a_full_context_is_cut_at_a_word_and_keeps_its_beginning_for_long() -> None:
    context = TypingContext(64)
    typed = ""
    beginnings = 0
    for i in range(400):
        typed += " " if i % 6 == 5 else "abcde"[i % 5]
        before = context.text
        context.apply(TextTyped(typed[-1]))
        assert typed.endswith(context.text)
        assert len(context) <= 64
        if not context.text.startswith(before):
            beginnings += 1
            assert typed[-len(context) - 1] == " ", "cut in the middle of a word"
    # 400 characters with cuts to half of 64: a new beginning about every 30 to 36 keys.
    assert 9 <= beginnings <= 14


def test_text_without_spaces_is_cut_between_characters() -> None:
    text = after(*["汉"] * 40, limit=16)
    assert set(text) == {"汉"}
    assert 8 <= len(text) <= 16


EDITS = st.one_of(
    st.builds(TextTyped, st.sampled_from(["a", "b", " ", "é", "-", "ab"])),
    st.just(Enter()),
    st.builds(Backspace, st.booleans()),
    st.builds(Delete, st.booleans()),
    st.just(TextUnknown()),
    st.just(CursorMoved(Direction.UP)),
)


@given(st.lists(EDITS, max_size=80), st.integers(16, 40))
def test_the_context_is_the_end_of_what_an_unbounded_one_holds(
    edits: list[Edit], limit: int
) -> None:
    bounded, unbounded = TypingContext(limit), TypingContext(10_000)
    for edit in edits:
        bounded.apply(edit)
        unbounded.apply(edit)
        assert len(bounded) <= limit
        # Deleting past the cut empties the bounded one; it never invents text.
        assert unbounded.text.endswith(bounded.text)
