# SPDX-License-Identifier: Apache-2.0
"""Streaming decode: never half a character, and all pieces together are the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.streaming import StreamDecoder
from engine.tokenizer import Tokenizer
from tests.helpers.corpus import EMOJI, corpus
from tests.helpers.vocabularies import bpe_spec, sentencepiece_spec

TOKENIZERS = {
    "bpe": Tokenizer.from_spec(bpe_spec("llama-bpe")),
    "sentencepiece": Tokenizer.from_spec(sentencepiece_spec()),
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return TOKENIZERS[request.param]


def stream(tokenizer: Tokenizer, ids: list[int], **options: bool) -> list[str]:
    decoder = StreamDecoder(tokenizer, **options)
    return [*(decoder.push(token) for token in ids), decoder.finish()]


def test_pieces_of_real_text_are_whole_characters(tokenizer: Tokenizer) -> None:
    for text in corpus():
        ids = tokenizer.encode(text, add_special=False, parse_special=False)
        pieces = stream(tokenizer, ids)
        assert "".join(pieces) == tokenizer.decode(ids)
        assert "".join(pieces).count("\ufffd") == text.count("\ufffd")
        assert pieces[-1] == ""


@pytest.mark.parametrize("emoji", EMOJI)
def test_an_emoji_comes_with_its_last_byte(tokenizer: Tokenizer, emoji: str) -> None:
    ids = tokenizer.encode(emoji, add_special=False, parse_special=False)
    shown = ""
    held = b""
    for token, piece in zip(ids, stream(tokenizer, ids), strict=False):
        held += tokenizer.token_bytes(token)
        shown += piece
        complete = held.decode("utf-8", "ignore").removeprefix(" ")
        assert shown == complete, "nothing is held back for longer than needed"
    assert shown == emoji


@settings(max_examples=300, deadline=None)
@given(data=st.data(), skip_special=st.booleans(), continuation=st.booleans())
def test_any_ids_stream_as_they_decode(
    data: st.DataObject, skip_special: bool, continuation: bool
) -> None:
    tokenizer = TOKENIZERS[data.draw(st.sampled_from(list(TOKENIZERS)))]
    token = st.integers(0, tokenizer.vocab_size - 1) | st.integers(0, 300)
    ids = data.draw(st.lists(token, max_size=30))
    pieces = stream(tokenizer, ids, skip_special=skip_special, continuation=continuation)
    whole = tokenizer.decode(ids, skip_special=skip_special, continuation=continuation)
    assert "".join(pieces) == whole


def byte_tokens(tokenizer: Tokenizer, data: bytes) -> list[int]:
    by_byte = {tokenizer.token_bytes(token): token for token in range(tokenizer.vocab_size)}
    singles = [t for t in range(tokenizer.vocab_size) if len(tokenizer.token_bytes(t)) == 1]
    by_byte |= {tokenizer.token_bytes(token): token for token in reversed(singles)}
    return [by_byte[bytes([byte])] for byte in data]


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=12))
def test_any_bytes_end_as_utf8_with_replacements(data: bytes) -> None:
    tokenizer = TOKENIZERS["bpe"]
    pieces = stream(tokenizer, byte_tokens(tokenizer, data))
    assert "".join(pieces) == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b"\xe2\x82\xac", ["", "", "€", ""]),
        (b"\xe2\x82", ["", "", "\ufffd"]),
        (b"\xe2\x82A", ["", "", "\ufffdA", ""]),
        (b"\xff", ["\ufffd", ""]),
        (b"\xf0\x9f\x98\x80\xf0", ["", "", "", "😀", "", "\ufffd"]),
    ],
)
def test_when_a_replacement_character_comes(data: bytes, pieces: list[str]) -> None:
    """At the end, or as soon as the bytes can no longer become a character."""
    tokenizer = TOKENIZERS["bpe"]
    assert stream(tokenizer, byte_tokens(tokenizer, data)) == pieces


def test_special_tokens_inside_a_character_are_skipped() -> None:
    tokenizer = TOKENIZERS["bpe"]
    first, *rest = byte_tokens(tokenizer, "é".encode())
    end = tokenizer.eos_ids[0]
    assert stream(tokenizer, [end, first, end, *rest]) == ["", "", "", "é", ""]
    shown = stream(tokenizer, [end, first, end, *rest], skip_special=False)
    assert shown == ["<|end_of_text|>", "", "\ufffd<|end_of_text|>", "\ufffd", ""]


def test_the_space_of_the_first_word() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    ids = tokenizer.encode("one two", add_special=False, parse_special=False)
    bos = tokenizer.bos_id
    assert bos is not None
    assert "".join(stream(tokenizer, [bos, *ids])) == "one two"
    assert "".join(stream(tokenizer, ids, continuation=True)) == " one two"
    assert tokenizer.decode(ids, continuation=True) == " one two"


def test_an_id_outside_the_vocabulary_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="outside the vocabulary"):
        StreamDecoder(tokenizer).push(tokenizer.vocab_size)
