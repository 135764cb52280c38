# SPDX-License-Identifier: Apache-2.0
"""Windows over tokens and turns: bounded, suffixes, and seldom moving."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextOverflowError
from engine.messages import Turn
from engine.window import TokenWindow, fit_turns


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=60), max_size=8),
    st.integers(2, 24).flatmap(lambda w: st.tuples(st.just(w), st.integers(1, w // 2))),
)
def test_any_texts_give_bounded_suffixes(texts: list[list[int]], sizes: tuple[int, int]) -> None:
    size, step = sizes
    window = TokenWindow(size, step)
    for tokens in texts:
        kept = window.cut(tokens)
        assert kept == tokens[len(tokens) - len(kept) :]
        assert min(len(tokens), size - 2 * step) <= len(kept) <= size
        assert window.cut(tokens) == kept


def test_short_text_is_whole() -> None:
    assert TokenWindow().cut(range(128)) == list(range(128))
    assert TokenWindow().cut([]) == []


def test_typing_moves_the_front_once_per_step() -> None:
    window = TokenWindow(128, 32)
    fronts = [window.cut(range(n))[0] for n in range(1, 1000)]
    moves = sum(a != b for a, b in itertools.pairwise(fronts))
    assert moves == (999 - 128 + 31) // 32


def test_to_and_fro_across_a_border_moves_nothing() -> None:
    window = TokenWindow(128, 32)
    fronts = {window.cut(range(n))[0] for n in [129, 128, 127, 129, 110, 129, 150, 129]}
    assert fronts == {32}


def test_other_text_of_equal_length_is_cut_anew() -> None:
    window = TokenWindow(128, 32)
    window.cut(range(129))
    assert window.cut(range(1000, 1120)) == list(range(1000, 1120))


def test_forget_leaves_nothing() -> None:
    window = TokenWindow(128, 32)
    window.cut(range(129))
    window.forget()
    assert window.cut(range(120)) == list(range(120))


def test_steps_over_half_a_window_are_refused() -> None:
    with pytest.raises(ValueError, match="half"):
        TokenWindow(64, 33)


def _words(turns: Sequence[Turn]) -> int:
    return sum(len(turn.content.split()) for turn in turns)


def _turns(*contents: str) -> list[Turn]:
    """user and assistant in turn; a leading `!` makes a system turn."""
    turns: list[Turn] = []
    for content in contents:
        if content.startswith("!"):
            turns.append(Turn(role="system", content=content))
        else:
            user = not turns or turns[-1].role != "user"
            turns.append(Turn(role="user" if user else "assistant", content=content))
    return turns


def test_a_chat_that_fits_stays() -> None:
    turns = _turns("!s", "a b", "c d", "e")
    assert fit_turns(turns, _words, 6) == turns


def test_the_oldest_turns_go_and_the_system_turn_stays() -> None:
    turns = _turns("!s", "a b", "c d", "e", "f", "g")
    assert fit_turns(turns, _words, 7) == [turns[0], *turns[3:]]


def test_an_answer_goes_with_its_question() -> None:
    turns = _turns("a", "b", "c")
    assert fit_turns(turns, _words, 2) == turns[2:]


def test_a_last_turn_that_is_too_long_is_refused_without_its_text() -> None:
    with pytest.raises(ContextOverflowError) as refused:
        fit_turns(_turns("!s", "old", "old", "secret words here"), _words, 3)
    assert "4 tokens" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.integers(1, 9)), min_size=1),
    st.integers(1, 60),
)
def test_any_chat_keeps_its_end(shape: list[tuple[str, int]], limit: int) -> None:
    turns = [Turn.model_validate({"role": r, "content": "w " * n}) for r, n in shape]
    try:
        kept = fit_turns(turns, _words, limit)
    except ContextOverflowError:
        assert turns[-1].role == "assistant" or _words(turns[-1:]) > limit
    else:
        assert kept == turns[len(turns) - len(kept) :]
        assert _words(kept) <= limit
