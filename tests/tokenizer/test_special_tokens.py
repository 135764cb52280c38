# SPDX-License-Identifier: Apache-2.0
"""Control tokens, user-defined tokens, BOS and EOS."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.formats.source import TokenizerSpec, TokenType
from engine.tokenizer import Tokenizer
from engine.tokenizer.special import SpecialToken, Splitter
from tests.helpers.corpus import SPECIALS, corpus
from tests.helpers.vocabularies import CONTROL, USER_DEFINED, bpe_spec, sentencepiece_spec

SPECS = {
    "gpt-2": bpe_spec("gpt-2"),
    "llama-bpe": bpe_spec("llama-bpe"),
    "sentencepiece": sentencepiece_spec(),
}


@pytest.fixture(scope="module", params=SPECS)
def spec(request: pytest.FixtureRequest) -> TokenizerSpec:
    return SPECS[request.param]


@pytest.fixture(scope="module")
def tokenizer(spec: TokenizerSpec) -> Tokenizer:
    return Tokenizer.from_spec(spec)


def test_typed_names_never_become_control_tokens(tokenizer: Tokenizer) -> None:
    for text in [*corpus(), *CONTROL, "".join(SPECIALS), "<s></s><unk><0x0A>"]:
        ids = tokenizer.encode(text, add_special=False, parse_special=False)
        assert not any(map(tokenizer.is_special, ids))


pieces = st.lists(st.sampled_from([*CONTROL, *SPECIALS, *"<|>_/s", "im", "end", " ", "\n"]))


@settings(max_examples=300, deadline=None)
@given(text=pieces.map("".join))
def test_no_assembly_of_pieces_becomes_a_control_token(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special=False, parse_special=False)
    assert not any(map(tokenizer.is_special, ids))


def test_names_in_trusted_text_become_control_tokens(tokenizer: Tokenizer) -> None:
    start, end = tokenizer.special_id("<|im_start|>"), tokenizer.special_id("<|im_end|>")
    assert start is not None
    assert end is not None
    ids = tokenizer.encode("<|im_start|>hi<|im_end|>", add_special=False, parse_special=True)
    assert ids[0] == start
    assert ids[-1] == end
    assert not any(map(tokenizer.is_special, ids[1:-1]))
    assert tokenizer.token_bytes(start) == b"<|im_start|>"
    assert tokenizer.decode(ids) == "hi"
    assert tokenizer.decode(ids[1:-1], skip_special=False).strip() == "hi"


def test_merges_and_scores_cannot_build_a_control_token() -> None:
    """A file whose merges lead to `</s>`: SentencePiece would not follow them, nor do we."""
    tokens = ["<unk>", "<s>", "</s>", "</", "s>", "<", "/", "s", ">", "▁"]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.NORMAL] * 7
    scores = [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0]
    fields = {"tokens": tokens, "token_types": types, "scores": scores, "vocab_size": len(tokens)}
    spm = Tokenizer.from_spec(sentencepiece_spec(add_space_prefix=False, **fields))
    assert spm.encode("</s>", add_special=False, parse_special=False) == [3, 4]
    assert spm.encode("</s>", add_special=False, parse_special=True) == [2]

    base = bpe_spec("gpt-2")
    joined = [
        "< |",
        "<| i",
        "<|i m",
        "<|im _",
        "<|im_ e",
        "<|im_e n",
        "<|im_en d",
        "<|im_end |>",
        "| >",
    ]
    built = {merge.replace(" ", "") for merge in joined} - set(base.tokens)
    bpe = Tokenizer.from_spec(
        bpe_spec(
            "qwen2",
            tokens=[*base.tokens, *built],
            token_types=[*base.token_types, *[TokenType.NORMAL] * len(built)],
            merges=[*joined, *base.merges],
            vocab_size=len(base.tokens) + len(built),
        )
    )
    ids = bpe.encode("<|im_end|>", add_special=False, parse_special=False)
    assert not any(map(bpe.is_special, ids))
    assert bpe.decode(ids) == "<|im_end|>"


@pytest.mark.parametrize("kind", [TokenType.NORMAL, TokenType.USER_DEFINED])
def test_turn_markers_are_control_tokens_whatever_the_file_says(kind: TokenType) -> None:
    base = bpe_spec("qwen2")
    types = [kind if t == TokenType.CONTROL else t for t in base.token_types]
    tokenizer = Tokenizer.from_spec(bpe_spec("qwen2", token_types=types))
    for name in CONTROL:
        ids = tokenizer.encode(name, add_special=False, parse_special=False)
        assert len(ids) > 1
        assert tokenizer.encode(name, add_special=False, parse_special=True) == [
            tokenizer.special_id(name)
        ]


def test_special_ids_of_ordinary_letters_stay_text() -> None:
    """Some converters wrote ids that nobody uses, like `!` for the unknown token."""
    base = bpe_spec("qwen2")
    marks = [base.tokens.index(mark) for mark in "!,."]
    spec = bpe_spec("qwen2", unknown_id=marks[0], bos_id=marks[1], eos_ids=(marks[2],))
    tokenizer = Tokenizer.from_spec(spec)
    ids = tokenizer.encode("Oh, no! So.", add_special=False, parse_special=True)
    assert tokenizer.decode(ids) == "Oh, no! So."
    assert tokenizer.eos_ids[0] == marks[2]


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe"])
def test_user_defined_tokens_are_matched_in_any_text(pre: str) -> None:
    tokenizer = Tokenizer.from_spec(SPECS[pre])
    for name in USER_DEFINED:
        expected = tokenizer.special_id(name)
        ids = tokenizer.encode(f"a{name}b", add_special=False, parse_special=False)
        assert ids.count(expected or -1) == 1
        assert not tokenizer.is_special(expected or -1)
        assert tokenizer.decode(ids) == f"a{name}b"


@pytest.mark.parametrize("add_bos", [True, False])
@pytest.mark.parametrize("add_eos", [True, False])
def test_bos_and_eos_as_the_file_asks_and_never_twice(
    spec: TokenizerSpec, add_bos: bool, add_eos: bool
) -> None:
    tokenizer = Tokenizer.from_spec(dataclasses.replace(spec, add_bos=add_bos, add_eos=add_eos))
    bos, eos = tokenizer.bos_id, tokenizer.eos_ids[0]
    assert bos is not None
    names = [tokenizer.token_bytes(token).decode() for token in (bos, eos)]
    for text in ("hi", "", names[0] + "hi", "hi" + names[1], names[0] + "hi" + names[1], names[0]):
        plain = tokenizer.encode(text, add_special=False, parse_special=True)
        ids = tokenizer.encode(text, add_special=True, parse_special=True)
        assert ids.count(bos) == max(add_bos, plain.count(bos))
        assert ids.count(eos) == max(add_eos, plain.count(eos))
        assert ids[:1] == [bos] or not add_bos
        assert ids[-1:] == [eos] or not add_eos
        assert [t for t in ids if t not in (bos, eos)] == [t for t in plain if t not in (bos, eos)]


def test_every_end_of_turn_token_is_an_end() -> None:
    tokenizer = Tokenizer.from_spec(bpe_spec("llama-bpe"))
    names = [tokenizer.token_bytes(token).decode() for token in tokenizer.eos_ids]
    assert names[0] == "<|end_of_text|>"
    assert set(names) == {"<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>"}


def test_ids_outside_the_vocabulary_are_refused(tokenizer: Tokenizer) -> None:
    for token in (-1, tokenizer.vocab_size):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            tokenizer.token_bytes(token)
        with pytest.raises(ValueError, match="outside the vocabulary"):
            tokenizer.decode([token])
        assert not tokenizer.is_special(token)


def test_lone_surrogates_become_replacement_characters(tokenizer: Tokenizer) -> None:
    for text, meant in (("a\ud83db", "a\ufffdb"), ("\udc4d", "\ufffd"), ("\ud83d\udc4d", "👍")):
        for trusted in (True, False):
            ids = tokenizer.encode(text, add_special=False, parse_special=trusted)
            assert tokenizer.decode(ids) == meant


def test_splitter_takes_the_leftmost_and_then_the_longest() -> None:
    names = ["<a>", "<a><b>", "b>x", ""]
    splitter = Splitter(SpecialToken(10 + i, name, control=True) for i, name in enumerate(names))
    assert splitter.split("é<a>é<a><b>xb>x") == ["é", 10, "é", 11, "x", 12]
    assert splitter.split("plain") == ["plain"]
    assert splitter.split("") == []
