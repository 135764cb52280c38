# SPDX-License-Identifier: Apache-2.0
"""Words of held-out text, cut at every character: what was typed never makes the rest unlikelier.

P(word | its first n + 1 characters) = P(word | its first n) / P(next character | its first n), so it can
only grow. Guessing the next token behind a cut word, without going back to where the word began, breaks
this at almost every seam between tokens.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cpu.backend import CpuBackend
from engine.formats.open import open_model
from engine.session import Session, log_softmax
from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary
from engine.words import find_open_word, suggest_words

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

TEXTS = Path(__file__).resolve().parents[1] / "data" / "texts"
WORDS = 10
CONTEXT = 200  # characters in front of a word
# The search looks at some ways to spell a word, not at all of them.
SLACK = 0.9
# Rests that are less likely may drop out of the first eight.
KNOWN = 0.02


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Iterator[tuple[Session, Vocabulary]]:
    source = open_model(smollm2)
    vocabulary = Vocabulary(Tokenizer.from_spec(source.tokenizer))
    backend = CpuBackend(source, max_context=256)
    source.close()
    yield Session(backend, vocabulary.size), vocabulary
    backend.close()


def held_out_words() -> list[tuple[str, str]]:
    """(text in front, word) of words of at least four letters, from all over the text."""
    text = (TEXTS / "english.txt").read_text(encoding="utf-8")
    found = [m for m in re.finditer(r"(?<= )[a-z]{4,}(?=[ .,])", text) if m.start() > CONTEXT]
    chosen = found[:: len(found) // WORDS][:WORDS]
    return [(text[m.start() - CONTEXT : m.start()].partition(" ")[2], m[0]) for m in chosen]


def chance_of(model: tuple[Session, Vocabulary], text: str, rest: str) -> float:
    """How likely the suggestions hold `rest` to be; 0.0 if it is not among the first eight."""
    candidates = suggest_words(*model, text, 8).candidates
    return next((c.probability for c in candidates if c.text == rest), 0.0)


def test_a_word_grows_likelier_with_every_character(model: tuple[Session, Vocabulary]) -> None:
    words = held_out_words()
    assert len(words) == WORDS
    seen = 0
    for before, word in words:
        chances = [chance_of(model, before + word[:cut], word[cut:]) for cut in range(len(word))]
        steps = [pair for pair in itertools.pairwise(chances) if pair[0] >= KNOWN]
        assert all(chance >= SLACK * last for last, chance in steps), (word, chances)
        seen += chances[-1] > 0.5
    assert seen >= 0.8 * WORDS, "with one letter missing most words are likely"


def test_going_back_finds_what_the_next_token_alone_does_not(
    model: tuple[Session, Vocabulary],
) -> None:
    """At cuts inside words: is the right rest the likeliest?"""
    session, vocabulary = model
    right = naive = cuts = 0
    for before, word in held_out_words():
        for cut in range(2, len(word)):
            cuts += 1
            found = suggest_words(session, vocabulary, before + word[:cut], 1).candidates
            right += bool(found) and found[0].text == word[cut:]
            naive += naive_rest(session, vocabulary, before + word[:cut]) == word[cut:]
    print(f"\n{cuts} cuts: {right} right, {naive} by next tokens alone")
    assert cuts >= 30
    assert right >= naive + 0.2 * cuts


def naive_rest(session: Session, vocabulary: Vocabulary, text: str) -> str:
    """The likeliest tokens behind the typed ones, up to the end of the word."""
    word = find_open_word(vocabulary, text)
    tokens = [*word.settled, *word.spelling]
    session.update(tokens)
    rest = b""
    logprobs = session.log_probabilities()
    for _ in range(6):
        token = int(logprobs.argmax())
        if vocabulary.breaks[token]:
            break
        rest += vocabulary.tokenizer.token_bytes(token)
        tokens = [*tokens, token]
        logprobs = log_softmax(session.branches([tokens[len(session.tokens) :]])[0])
    return rest.decode("utf-8", "replace")
