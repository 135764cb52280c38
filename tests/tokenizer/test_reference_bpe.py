# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE: the ids of others on the whole corpus.

tiktoken is the independent reference. The classes of transformers say how the models' own tokenisers
are put together; in version 5 they run on the library that we use, so they prove the set-up rather
than the merging.
"""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
import regex
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as LibraryTokenizer

from engine.tokenizer import Tokenizer
from tests.helpers.corpus import corpus
from tests.helpers.tokenizer_references import LLAMA3, tiktoken_encoder
from tests.helpers.vocabularies import CONTROL, bpe_spec, byte_level, first_difference

PRE = ("gpt-2", "smollm", "llama-bpe", "qwen2")


@pytest.mark.parametrize("pre", PRE)
def test_ids_equal_tiktoken(pre: str) -> None:
    tokenizer = Tokenizer.from_spec(bpe_spec(pre))
    theirs = tiktoken_encoder(pre, byte_level().ranks)
    difference = first_difference(
        corpus(), lambda t: tokenizer.encode(t, add_special=False, parse_special=False), theirs
    )
    assert not difference


@pytest.mark.parametrize("pre", PRE)
def test_control_tokens_equal_tiktoken(pre: str) -> None:
    spec = bpe_spec(pre)
    tokenizer = Tokenizer.from_spec(spec)
    ordinary = tiktoken_encoder(pre, byte_level().ranks)
    names = regex.compile("(" + "|".join(map(regex.escape, CONTROL)) + ")")

    def theirs(text: str) -> list[int]:
        return [
            token
            for piece in names.split(text)
            for token in ([spec.tokens.index(piece)] if piece in CONTROL else ordinary(piece))
        ]

    texts = [text for text in corpus() if names.search(text)]
    assert len(texts) >= 150
    difference = first_difference(
        texts, lambda t: tokenizer.encode(t, add_special=False, parse_special=True), theirs
    )
    assert not difference


@pytest.mark.parametrize("pre", PRE)
def test_every_other_pre_tokeniser_would_be_noticed(pre: str) -> None:
    """The corpus and vocabulary tell the four apart, so that equality above means something."""
    ours = Tokenizer.from_spec(bpe_spec(pre))
    texts = corpus()
    for other in set(PRE) - {pre}:
        theirs = tiktoken_encoder(other, byte_level().ranks)
        assert first_difference(
            texts, lambda t: ours.encode(t, add_special=False, parse_special=False), theirs
        )


def test_llama3_takes_a_whole_word_before_any_merge() -> None:
    """Llama 3 has tokens that its merges cannot build (`ignore_merges`); tiktoken looks words up."""
    vocabulary = byte_level()
    words = [t for t in vocabulary.tokens if t.isascii() and t.isalpha() and len(t) > 3]
    merges = [" ".join(pair) for pair in vocabulary.merges if "".join(pair) not in words]
    theirs = tiktoken_encoder("llama-bpe", vocabulary.ranks)
    with_lookup = Tokenizer.from_spec(bpe_spec("llama-bpe", merges=merges))
    without = Tokenizer.from_spec(bpe_spec("qwen2", merges=merges))
    assert len(words) > 20
    for word in words:
        assert with_lookup.encode(word, add_special=False, parse_special=False) == theirs(word)
        assert len(without.encode(word, add_special=False, parse_special=False)) > 1


@pytest.fixture(scope="module")
def published_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vocab.json and merges.txt, the form in which GPT-2 and Qwen2 were published."""
    folder = tmp_path_factory.mktemp("published")
    vocabulary = byte_level()
    (folder / "vocab.json").write_text(json.dumps(dict(vocabulary.ids)), "utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in vocabulary.merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.mark.parametrize(("pre", "name"), [("gpt-2", "GPT2Tokenizer"), ("qwen2", "Qwen2Tokenizer")])
def test_ids_equal_the_class_in_transformers(
    pre: str, name: str, published_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    theirs = getattr(transformers, name).from_pretrained(published_files)
    ours = Tokenizer.from_spec(bpe_spec(pre))
    texts = [text for text in corpus() if "<|endoftext|>" not in text]
    assert len(texts) >= 2_000
    difference = first_difference(
        texts,
        lambda t: ours.encode(t, add_special=False, parse_special=False),
        lambda t: theirs.encode(t, add_special_tokens=False),
    )
    assert not difference


def test_ids_equal_a_llama3_tokenizer_json() -> None:
    """The set-up in Llama 3's own tokenizer.json: Split by the expression, ByteLevel, no merges first."""
    vocabulary = byte_level()
    library = LibraryTokenizer(
        models.BPE(dict(vocabulary.ids), list(vocabulary.merges), ignore_merges=True)
    )
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ]
    )
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(list(CONTROL))
    ours = Tokenizer.from_spec(bpe_spec("llama-bpe"))
    difference = first_difference(
        corpus(),
        lambda t: ours.encode(t, add_special=False, parse_special=True),
        lambda t: library.encode(t, add_special_tokens=False).ids,
    )
    assert not difference


@pytest.mark.parametrize("pre", PRE)
def test_decode_gives_the_text_back(pre: str) -> None:
    tokenizer = Tokenizer.from_spec(bpe_spec(pre))
    for text in corpus():
        ids = tokenizer.encode(text, add_special=False, parse_special=False)
        expected = unicodedata.normalize("NFC", text) if pre == "qwen2" else text
        assert tokenizer.decode(ids) == expected
        assert b"".join(map(tokenizer.token_bytes, ids)) == expected.encode()
