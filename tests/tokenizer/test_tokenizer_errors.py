# SPDX-License-Identifier: Apache-2.0
"""Damaged and unsupported descriptions are refused, naming the file and the field."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.source import TokenizerSpec, TokenType
from engine.tokenizer import Tokenizer
from tests.helpers.vocabularies import bpe_spec, sentencepiece_spec

BPE = bpe_spec("smollm")
SPM = sentencepiece_spec()


@pytest.mark.parametrize("pre", ["default", "", "deepseek-llm", "qwen35", "GPT-2", "x" * 10_000])
def test_unknown_pre_tokenisers_are_refused_by_name(pre: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        Tokenizer.from_spec(bpe_spec(pre))
    assert caught.value.field == "tokenizer.ggml.pre"
    assert repr(pre[:64]) in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_other_names_of_llama_bpe() -> None:
    text = "Don't 12345\n\n go"
    expected = Tokenizer.from_spec(bpe_spec("llama-bpe")).encode(
        text, add_special=False, parse_special=False
    )
    for pre in ("llama3", "llama-v3"):
        tokenizer = Tokenizer.from_spec(bpe_spec(pre))
        assert tokenizer.encode(text, add_special=False, parse_special=False) == expected


def bpe(**changes: Any) -> TokenizerSpec:
    return bpe_spec("smollm", **changes)


def spm(**changes: Any) -> TokenizerSpec:
    return sentencepiece_spec(**changes)


LONG = [*SPM.tokens, *(f"{number:0500}" for number in range(9_000))]
SAME: dict[str, Any] = {
    "scores": [*SPM.scores, *[-1.0] * 9_000],
    "token_types": [*SPM.token_types, *[TokenType.NORMAL] * 9_000],
}
DAMAGED = {
    "no tokens": (bpe(tokens=[], token_types=[]), "tokens"),
    "token twice": (bpe(tokens=[*BPE.tokens[:-1], BPE.tokens[300]]), "tokens"),
    "types too short": (bpe(token_types=BPE.token_types[:-1]), "token_type"),
    "no merges": (bpe(merges=[]), "merges"),
    "merge without a space": (bpe(merges=["ab"]), "merges"),
    "merge of nothing": (bpe(merges=[" "]), "merges"),
    "merge of unknown tokens": (bpe(merges=["Ġ nosuchtoken"]), "merges"),
    "merge into an unknown token": (bpe(merges=["q Q"]), "merges"),
    "bos outside": (bpe(bos_id=len(BPE.tokens)), "bos_token_id"),
    "eos outside": (bpe(eos_ids=(0, len(BPE.tokens))), "eos_token_id"),
    "unknown outside": (bpe(unknown_id=-1), "unknown_token_id"),
    "no scores": (spm(scores=[]), "scores"),
    "scores too short": (spm(scores=SPM.scores[:-1]), "scores"),
    "score is no number": (spm(scores=[float("nan"), *SPM.scores[1:]]), "scores"),
    "score is infinite": (spm(scores=[*SPM.scores[1:], float("-inf")]), "scores"),
    "no types": (spm(token_types=[]), "token_type"),
    "a piece too long": (spm(tokens=[*SPM.tokens[:-1], "a" * 10**6]), "tokens"),
    "too many long pieces": (spm(tokens=LONG, **SAME), "tokens"),
    "byte that is none": (spm(token_types=[*SPM.token_types[:-1], TokenType.BYTE]), "tokens"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_lists_are_refused_with_their_field(name: str) -> None:
    spec, field = DAMAGED[name]
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_spec(spec)
    assert not isinstance(caught.value, UnsupportedModelError)
    assert caught.value.field == f"tokenizer.ggml.{field}"
    assert caught.value.path == spec.path


def test_bytes_without_a_token_are_left_out() -> None:
    """Some vocabularies lack bytes that hardly occur; the reference tokenisers drop them too."""
    keep = [i for i, token in enumerate(BPE.tokens) if "ð" not in token]  # byte 0xF0
    merges = [merge for merge in BPE.merges if "ð" not in merge]
    spec = bpe(
        tokens=[BPE.tokens[i] for i in keep],
        token_types=[BPE.token_types[i] for i in keep],
        merges=merges,
        vocab_size=len(keep),
        bos_id=None,
        eos_ids=(),
    )
    tokenizer = Tokenizer.from_spec(spec)
    ids = tokenizer.encode("a😀b", add_special=False, parse_special=False)
    assert b"".join(map(tokenizer.token_bytes, ids)) == b"a\x9f\x98\x80b"
    assert tokenizer.decode(ids) == "a\ufffd\ufffd\ufffdb"
