# SPDX-License-Identifier: Apache-2.0
"""Small vocabularies trained in the test, and TokenizerSpecs written from them as llama.cpp would."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from engine.formats.source import TokenizerKind, TokenizerSpec, TokenType
from tests.helpers.corpus import corpus

# In the order of their ids; they follow the ordinary tokens.
CONTROL = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|endoftext|>",
)  # fmt: skip
USER_DEFINED = ("<tool_call>", "<reasoning>")


@dataclass(frozen=True, slots=True)
class ByteLevelVocabulary:
    """Ordinary tokens in the letters of the byte alphabet, and merges, best first."""

    ids: Mapping[str, int]
    merges: tuple[tuple[str, str], ...]

    @property
    def tokens(self) -> list[str]:
        """Token texts by id."""
        return sorted(self.ids, key=lambda token: self.ids[token])

    @property
    def ranks(self) -> dict[bytes, int]:
        """Bytes -> rank, the form that tiktoken reads."""
        return {spelled(token): index for token, index in self.ids.items()}


def spelled(token: str) -> bytes:
    """Bytes of a byte-level token, by GPT-2's table."""
    return bytes(_byte_table()[letter] for letter in token)


@functools.cache
def _byte_table() -> dict[str, int]:
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    return {chr(byte): byte for byte in own} | {chr(256 + i): b for i, b in enumerate(others)}


@functools.cache
def byte_level(size: int = 4_000) -> ByteLevelVocabulary:
    """A byte-level BPE trained on the corpus without any word borders.

    So it has tokens like ` 12`, `.\\n\\n` and `it's`, which only a wrong pre-tokeniser would use: a
    cut in a wrong place changes the ids.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        initial_alphabet=sorted(_byte_table()),
        max_token_length=9,  # shorter than any name in CONTROL
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    saved = json.loads(tokenizer.to_str())["model"]
    merges = tuple((left, right) for left, right in saved["merges"])
    return ByteLevelVocabulary(saved["vocab"], merges)


def bpe_spec(pre: str, **changes: object) -> TokenizerSpec:
    """The trained vocabulary with CONTROL and USER_DEFINED behind it, as a GGUF describes it.

    BOS is `<|begin_of_text|>`, EOS `<|end_of_text|>`; `changes` replace fields of the spec.
    """
    vocabulary = byte_level()
    tokens = [*vocabulary.tokens, *CONTROL, *USER_DEFINED]
    types = [TokenType.NORMAL] * len(vocabulary.ids)
    types += [TokenType.CONTROL] * len(CONTROL) + [TokenType.USER_DEFINED] * len(USER_DEFINED)
    fields: dict[str, object] = {
        "path": Path("trained.gguf"),
        "kind": TokenizerKind.BPE,
        "vocab_size": len(tokens),
        "pre": pre,
        "tokens": tokens,
        "merges": [" ".join(merge) for merge in vocabulary.merges],
        "token_types": types,
        "bos_id": tokens.index("<|begin_of_text|>"),
        "eos_ids": (tokens.index("<|end_of_text|>"),),
    }
    return TokenizerSpec(**(fields | changes))  # type: ignore[arg-type]


@functools.cache
def sentencepiece_model(size: int = 3_000) -> sentencepiece.SentencePieceProcessor:
    """A SentencePiece BPE with the settings of Llama 2, trained on the lines of the corpus."""
    model = io.BytesIO()
    lines = [line for text in corpus() for line in text.splitlines() if "\0" not in line]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        byte_fallback=True,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        character_coverage=0.98,
        control_symbols=["<|im_start|>", "<|im_end|>"],
        num_threads=1,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def sentencepiece_spec(**changes: object) -> TokenizerSpec:
    """The trained SentencePiece model as llama.cpp's converter writes it into a GGUF."""
    model = sentencepiece_model()
    count = model.vocab_size()
    fields: dict[str, object] = {
        "path": Path("trained.gguf"),
        "kind": TokenizerKind.SENTENCEPIECE,
        "vocab_size": count,
        "tokens": [model.id_to_piece(i) for i in range(count)],
        "scores": [model.get_score(i) for i in range(count)],
        "token_types": [_type(model, i) for i in range(count)],
        "bos_id": model.bos_id(),
        "eos_ids": (model.eos_id(),),
        "unknown_id": model.unk_id(),
        "add_bos": True,
    }
    return TokenizerSpec(**(fields | changes))  # type: ignore[arg-type]


def _type(model: sentencepiece.SentencePieceProcessor, index: int) -> TokenType:
    if model.is_unknown(index):
        return TokenType.UNKNOWN
    if model.is_control(index):
        return TokenType.CONTROL
    if model.is_unused(index):
        return TokenType.UNUSED
    return TokenType.BYTE if model.is_byte(index) else TokenType.NORMAL


def first_difference(
    texts: Sequence[str], ours: Callable[[str], object], theirs: Callable[[str], object]
) -> str:
    """Empty if both give the same for every text, else a description of the first difference."""
    different = [text for text in texts if ours(text) != theirs(text)]
    if not different:
        return ""
    text = different[0]
    return f"{len(different)} of {len(texts)}: {text!r}: {ours(text)} but {theirs(text)}"
