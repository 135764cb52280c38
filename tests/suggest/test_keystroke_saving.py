# SPDX-License-Identifier: Apache-2.0
"""The keystroke saving rate: how it is counted, the predictor it is compared with, and a short run with
the model. The long one is `python -m tests.suggest.ksr`; its results are docs/benchmarks/suggest-ksr.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runner import ModelRunner
from tests.suggest.ksr import (
    ROOT,
    ModelPredictor,
    holmes,
    measure,
    ngram,
    ngram_predictor,
    only,
    own,
)
from tests.suggest.ngram import TrigramPredictor
from tests.suggest.simulation import Savings, is_right, type_with_suggestions

# ----------------------------------------------------------------------------------- counting


def test_keys_are_counted_with_those_that_take() -> None:
    offers = {"": ["the", "he"], "the": [" cat", " ca"], "the cat": [], "the cat s": ["at"]}
    savings = type_with_suggestions("the cat sat", lambda text: offers.get(text, []))
    # the, " cat", space, s, at
    assert savings == Savings(characters=11, keys=5, taken=3, words_taken=3)
    assert savings.rate == pytest.approx(6 / 11)


def test_the_longest_right_candidate_is_taken() -> None:
    offers = {"": ["the", "the cat"]}
    savings = type_with_suggestions("the cat", lambda text: offers.get(text, []))
    assert (savings.keys, savings.taken, savings.words_taken) == (1, 1, 2)


def test_a_candidate_of_one_character_saves_nothing() -> None:
    assert type_with_suggestions("ab", lambda text: ["a", "b"]).taken == 0


@pytest.mark.parametrize(
    ("text", "candidate", "right"),
    [
        ("there", "the", False),
        ("the re", "the", True),
        ("the", "the", True),
        ("don't", "don", False),
        ("don' ", "don", True),
        ("the, cat", "the", True),
        ("dog", "the", False),
    ],
)
def test_a_right_candidate_ends_where_the_word_does(text: str, candidate: str, right: bool) -> None:
    assert is_right(text, 0, candidate) is right


@given(st.text("ab c", max_size=30), st.integers(0, 5))
def test_nothing_offered_saves_nothing_and_everything_saves_almost_all(
    text: str, start: int
) -> None:
    start = min(start, len(text))
    assert type_with_suggestions(text, lambda _: [], start).rate == 0
    whole = type_with_suggestions(text, lambda typed: [text[len(typed) :]], start)
    assert whole.keys == min(1, len(text) - start)


# ---------------------------------------------------------------------------------- the n-gram


def test_it_completes_words_and_says_the_next_one() -> None:
    model = TrigramPredictor("the cat sat. the cat ran. the cow sat.\n" * 3)
    assert next(iter(model.suggest("the c", 3)))[0] == "at"
    assert model.suggest("the ", 1)[0][0] == "cat"
    assert model.suggest("the cat", 1)[0][0] in (" sat", " ran")
    assert model.suggest("the dog", 3) == []


def test_probabilities_after_any_context_leave_a_little_for_unknown_words() -> None:
    model = ngram()
    words = list(model._anywhere.counts)
    for first, second in (("I", "have"), ("said", "Holmes"), ("no", "such-context"), (".", "\n")):
        assert 0.85 < sum(model.probability(word, first, second) for word in words) <= 1


def test_it_is_a_fair_opponent() -> None:
    """On its own book it saves about a third of the keys, as trigrams do in the literature."""
    predict = ngram_predictor(ngram())
    assert measure(holmes(1500), predict).rate > 0.3
    assert measure(holmes(1500), only(predict, 1)).rate > 0.2


# ----------------------------------------------------------------------------------- the model


@pytest.mark.model
@pytest.mark.timeout(900)
def test_the_model_saves_more_keys_than_the_ngram(smollm2: Path) -> None:
    runner = ModelRunner.open(str(smollm2), 512)
    predict, baseline = ModelPredictor(runner), ngram_predictor(ngram())
    for excerpts, least in ((holmes(180), 0.0), (own(140), 0.1)):
        ours, theirs = measure(excerpts, predict), measure(excerpts, baseline)
        print(f"\nmodel {ours.rate:.1%}, n-gram {theirs.rate:.1%} of {ours.characters} characters")
        assert ours.rate > theirs.rate + least
    runner.close()


def test_the_published_numbers_say_the_same() -> None:
    path = ROOT / "docs" / "benchmarks" / "suggest-ksr.json"
    for text, rows in json.loads(path.read_text(encoding="utf-8"))["texts"].items():
        for taken in ("first", "any"):
            assert rows[f"model: {taken}"]["rate"] > rows[f"ngram: {taken}"]["rate"], text
