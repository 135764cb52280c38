# SPDX-License-Identifier: Apache-2.0
"""Phrases with a scripted model: exact numbers, what is worth showing, cancellation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import OperationCancelledError
from engine.formats.open import open_model
from engine.phrases import choose_candidates, extend_words
from engine.session import Session
from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary
from engine.words import WordCandidate, suggest_words
from tests.helpers.gguf_writer import make_tiny_gguf
from tests.helpers.scripted_backend import ScriptedBackend


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("phrases") / "tiny.gguf"
    make_tiny_gguf(path)
    source = open_model(path)
    tokenizer = Tokenizer.from_spec(source.tokenizer)
    source.close()
    return Vocabulary(tokenizer)


SCRIPT = {
    b"hello": {b" the": 0.5, b" you": 0.3},
    b"hello the": {b" world": 0.6, b" ": 0.1, b".": 0.2, b"n": 0.1},
    b"hello the world": {b" and": 0.1, b".": 0.9},
    b"hello you": {b" and": 0.2, b".": 0.8},
    b"hello then": {b".": 1.0},
    b"hello you and": {b" the": 1.0},
}


def words_and_phrases(vocabulary: Vocabulary, most: int) -> dict[str, float]:
    session = Session(ScriptedBackend(vocabulary.tokenizer, SCRIPT), vocabulary.size)
    words = suggest_words(session, vocabulary, "hello ", 3).candidates
    phrases, computed = extend_words(session, vocabulary, "hello ", words, most)
    assert computed > 0
    return {candidate.text: candidate.probability for candidate in (*words, *phrases)}


def test_a_phrase_is_as_likely_as_its_words_after_each_other(vocabulary: Vocabulary) -> None:
    found = words_and_phrases(vocabulary, 3)
    the = 0.5 / 0.8 * 0.9  # after the space, and the word ends there nine times in ten
    # Of these, a space follows in seven, and " world" in six; the rest of " " leads nowhere.
    assert found["the"] == pytest.approx(the)
    assert found["the world"] == pytest.approx(the * (0.7 / 0.9) * (0.6 / 0.7))


def test_phrases_end_where_the_next_word_is_unlikely(vocabulary: Vocabulary) -> None:
    found = words_and_phrases(vocabulary, 3)
    assert "the world and" not in found
    assert "you and" not in found


def test_one_word_is_no_phrase(vocabulary: Vocabulary) -> None:
    session = Session(ScriptedBackend(vocabulary.tokenizer, SCRIPT), vocabulary.size)
    words = suggest_words(session, vocabulary, "hello ", 3).candidates
    assert extend_words(session, vocabulary, "hello ", words, 1) == ([], 0)


def test_the_next_key_reuses_what_was_there(vocabulary: Vocabulary) -> None:
    session = Session(ScriptedBackend(vocabulary.tokenizer, SCRIPT), vocabulary.size)
    words = suggest_words(session, vocabulary, "hello ", 3).candidates
    before = session.tokens
    extend_words(session, vocabulary, "hello ", words, 3)
    assert session.tokens[: len(before)] == before


def test_it_is_cancelled_between_forwards(vocabulary: Vocabulary) -> None:
    session = Session(ScriptedBackend(vocabulary.tokenizer, SCRIPT), vocabulary.size)
    words = suggest_words(session, vocabulary, "hello ", 3).candidates
    counter = itertools.count()
    with pytest.raises(OperationCancelledError):
        extend_words(session, vocabulary, "hello ", words, 3, lambda: next(counter) >= 1)


# ------------------------------------------------------------------------- what is worth showing


def chosen(words: dict[str, float], phrases: dict[str, float], count: int) -> list[str]:
    pools = ([WordCandidate(t, p) for t, p in pool.items()] for pool in (words, phrases))
    return [candidate.text for candidate in choose_candidates(*pools, count)]


def test_a_sure_phrase_takes_the_place_of_its_word() -> None:
    assert chosen({" New": 0.5}, {" New York": 0.49}, 1) == [" New York"]


def test_a_doubtful_phrase_does_not() -> None:
    assert chosen({" New": 0.5}, {" New York": 0.2}, 1) == [" New"]


def test_a_place_that_is_left_goes_to_the_phrase() -> None:
    assert chosen({" New": 0.5, " a": 0.05}, {" New York": 0.3}, 2) == [" New", " New York"]


def test_a_word_of_one_letter_is_shown_where_nothing_saves_more() -> None:
    assert chosen({"y": 0.9}, {}, 3) == ["y"]


candidates = st.lists(
    st.tuples(st.sampled_from([" a", " ab", "abc", " word", "word"]), st.floats(0.01, 1.0)),
    max_size=5,
    unique_by=lambda item: item[0],
)


@given(candidates, st.data(), st.integers(1, 4))
def test_whatever_is_chosen_is_in_order_and_known(
    pairs: list[tuple[str, float]], data: st.DataObject, count: int
) -> None:
    words = [WordCandidate(text, p) for text, p in pairs]
    phrases = [
        WordCandidate(f"{word.text} next", word.probability * share)
        for word in words
        for share in data.draw(st.lists(st.floats(0.3, 1.0), max_size=1))
    ]
    found = choose_candidates(words, phrases, count)
    assert len(found) == min(count, len(words) + len(phrases))
    assert all(candidate in (*words, *phrases) for candidate in found)
    chances = [candidate.probability for candidate in found]
    assert chances == sorted(chances, reverse=True)
