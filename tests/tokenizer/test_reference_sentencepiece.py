# SPDX-License-Identifier: Apache-2.0
"""SentencePiece BPE: the ids of the sentencepiece library itself, on the corpus and on random text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.formats.source import TokenType
from engine.tokenizer import Tokenizer
from tests.helpers.corpus import corpus
from tests.helpers.vocabularies import first_difference, sentencepiece_model, sentencepiece_spec


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_spec(sentencepiece_spec())


def plain(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special=False, parse_special=False)


def test_ids_equal_sentencepiece(tokenizer: Tokenizer) -> None:
    difference = first_difference(
        corpus(), lambda t: plain(tokenizer, t), sentencepiece_model().encode
    )
    assert not difference


def test_decoded_text_equals_sentencepiece(tokenizer: Tokenizer) -> None:
    model = sentencepiece_model()
    for text in corpus():
        ids = model.encode(text)
        assert tokenizer.decode(ids) == model.decode(ids)


# Runs of one letter are where two cuts of one piece compete, see sentencepiece._merges.
runs = st.lists(
    st.tuples(st.sampled_from(" a=-.b\n01あ"), st.integers(1, 12)).map(lambda run: run[0] * run[1]),
    max_size=12,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(text=runs | st.text(max_size=60))
def test_ids_equal_on_random_text(tokenizer: Tokenizer, text: str) -> None:
    assert plain(tokenizer, text) == sentencepiece_model().encode(text)


def test_the_corpus_uses_pieces_bytes_and_runs_of_spaces(tokenizer: Tokenizer) -> None:
    spec = sentencepiece_spec()
    used = {token for text in corpus() for token in plain(tokenizer, text)}
    kinds = [spec.token_types[token] for token in used]
    assert kinds.count(TokenType.BYTE) > 100
    assert kinds.count(TokenType.NORMAL) > 1_500
    assert any(spec.tokens[token] == "▁▁▁▁" for token in used)
    assert not {TokenType.CONTROL, TokenType.UNKNOWN, TokenType.UNUSED} & set(kinds)


def test_space_prefix_is_optional() -> None:
    without = Tokenizer.from_spec(sentencepiece_spec(add_space_prefix=False))
    model = sentencepiece_model()
    dummy = model.piece_to_id("▁")
    for text in ("word", " word", "", "ζ"):
        ids = plain(without, text)
        assert without.decode(ids) == text
        assert ids[:1] != [dummy]
    assert plain(without, " word") == model.encode("word")


def test_text_after_a_control_token_gets_a_space_too(tokenizer: Tokenizer) -> None:
    """As in llama.cpp, and in the chat formats of Llama 2 and TinyLlama."""
    model = sentencepiece_model()
    end = model.eos_id()
    ids = tokenizer.encode("one</s>two", add_special=False, parse_special=True)
    assert ids == [*model.encode("one"), end, *model.encode("two")]


def test_unknown_letters_without_byte_pieces() -> None:
    spec = sentencepiece_spec()
    keep = [i for i, kind in enumerate(spec.token_types) if kind != TokenType.BYTE]
    fields = {
        name: [getattr(spec, name)[i] for i in keep] for name in ("tokens", "scores", "token_types")
    }
    tokenizer = Tokenizer.from_spec(sentencepiece_spec(vocab_size=len(keep), **fields))
    ids = plain(tokenizer, "a\U0001f9ff\U0001f9ffb")
    assert ids.count(spec.unknown_id or 0) == 1, "neighbouring unknown letters are one token"
    assert tokenizer.decode(ids) == "ab"
    types = [t if t != TokenType.UNKNOWN else TokenType.NORMAL for t in fields["token_types"]]
    fields |= {"vocab_size": len(keep), "unknown_id": None, "token_types": types}
    with pytest.raises(ModelFileError, match="no unknown token"):
        Tokenizer.from_spec(sentencepiece_spec(**fields))
