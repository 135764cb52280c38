# SPDX-License-Identifier: Apache-2.0
"""TokenizerSpec from the metadata of a GGUF file.

Keys, defaults and the list of end tokens: llama-vocab.cpp of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.errors import UnsupportedModelError
from engine.formats.bounds import MAX_CHAT_TEMPLATE_BYTES, printable
from engine.formats.gguf_metadata import Metadata
from engine.formats.source import TokenizerKind, TokenizerSpec, TokenType
from engine.texts import Text

MODEL = "tokenizer.ggml.model"
TOKENS = "tokenizer.ggml.tokens"
MERGES = "tokenizer.ggml.merges"
SCORES = "tokenizer.ggml.scores"
TYPES = "tokenizer.ggml.token_type"
PRE = "tokenizer.ggml.pre"
TEMPLATE = "tokenizer.chat_template"

_KINDS = {"gpt2": TokenizerKind.BPE, "llama": TokenizerKind.SENTENCEPIECE}
# Pre-tokenisers whose models expect a BOS unless the file says otherwise.
_ADD_BOS = frozenset(
    ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
     "tekken", "chameleon")
)  # fmt: skip
# Control tokens that end a reply even if the file does not list them as such.
_END_TOKENS = frozenset(
    ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>",
     "<end_of_turn>", "<EOT>", "</s>")
)  # fmt: skip
_NO_TOKEN = 0xFFFF_FFFF  # -1 in a file that has no such token
_MAX_TOKEN_BYTES = 256


def read_tokenizer(metadata: Metadata, vocab_size: int) -> TokenizerSpec:
    """Decode the whole tokeniser; about 0.2 s for 150,000 tokens.

    Raises:
        ModelFileError: a list is missing or of the wrong length, an id is outside the vocabulary.
        UnsupportedModelError: a kind of tokeniser that Thock does not have.
    """
    kind = _read_kind(metadata)
    if metadata.count(TOKENS) != vocab_size:
        reason = Text(
            "has {metadata} tokens, the embedding {vocab_size} rows",
            metadata=metadata.count(TOKENS),
            vocab_size=vocab_size,
        )
        raise metadata.error(TOKENS, reason)
    tokens = metadata.texts(TOKENS)
    types = _read_types(metadata, vocab_size)
    bpe = kind is TokenizerKind.BPE
    pre = metadata.text(PRE, _MAX_TOKEN_BYTES, "") if bpe else ""
    bos = _token_id(metadata, "bos", vocab_size, None if bpe else 1)
    add_bos = metadata.flag("tokenizer.ggml.add_bos_token", not bpe or pre in _ADD_BOS)
    if add_bos and bos is None:
        raise metadata.error("tokenizer.ggml.bos_token_id", "is missing, yet add_bos_token is set")
    return TokenizerSpec(
        path=metadata.path,
        kind=kind,
        vocab_size=vocab_size,
        pre=printable(pre),
        tokens=tokens,
        merges=_read_merges(metadata) if bpe else (),
        scores=() if bpe else _read_scores(metadata, vocab_size),
        token_types=types,
        bos_id=bos,
        eos_ids=_end_ids(metadata, tokens, types, None if bpe else 2),
        unknown_id=_token_id(metadata, "unknown", vocab_size, None if bpe else 0),
        add_bos=add_bos,
        add_eos=metadata.flag("tokenizer.ggml.add_eos_token", False),
        add_space_prefix=metadata.flag("tokenizer.ggml.add_space_prefix", not bpe),
        chat_template=metadata.text(TEMPLATE, MAX_CHAT_TEMPLATE_BYTES, "") or None,
    )


def _read_kind(metadata: Metadata) -> TokenizerKind:
    name = metadata.text(MODEL, _MAX_TOKEN_BYTES)
    if name not in _KINDS:
        reason = Text(
            "is {name}; Thock has gpt2 (byte-level BPE) and llama (SentencePiece)",
            name=repr(printable(name)),
        )
        raise UnsupportedModelError(metadata.path, MODEL, reason)
    return _KINDS[name]


def _read_types(metadata: Metadata, vocab_size: int) -> Sequence[int]:
    if TYPES not in metadata:
        return [int(TokenType.NORMAL)] * vocab_size
    types = metadata.numbers(TYPES)
    if len(types) != vocab_size:
        raise metadata.error(
            TYPES,
            Text(
                "has {types} entries for {vocab_size} tokens",
                types=len(types),
                vocab_size=vocab_size,
            ),
        )
    wrong = ~np.isin(types, list(TokenType))
    if wrong.any():
        place = int(wrong.argmax())
        raise metadata.error(
            f"{TYPES}[{place}]", Text("is {types}, no type of token", types=types[place])
        )
    return [int(number) for number in types.tolist()]


def _read_merges(metadata: Metadata) -> list[str]:
    if not metadata.count(MERGES):
        raise metadata.error(MERGES, "is missing or empty; without merges a BPE cannot tokenise")
    merges = metadata.texts(MERGES)
    for number, merge in enumerate(merges):
        # The first character is never the separator, as in llama.cpp.
        if not 0 < merge.find(" ", 1) < len(merge) - 1:
            raise metadata.error(f"{MERGES}[{number}]", "is no pair of tokens")
    return merges


def _read_scores(metadata: Metadata, vocab_size: int) -> list[float]:
    scores = metadata.numbers(SCORES)
    if len(scores) != vocab_size:
        raise metadata.error(
            SCORES,
            Text(
                "has {scores} entries for {vocab_size} tokens",
                scores=len(scores),
                vocab_size=vocab_size,
            ),
        )
    wrong = ~np.isfinite(scores.astype(np.float64))
    if wrong.any():
        raise metadata.error(f"{SCORES}[{int(wrong.argmax())}]", "is NaN or infinite")
    return [float(score) for score in scores.tolist()]


def _token_id(metadata: Metadata, name: str, vocab_size: int, default: int | None) -> int | None:
    """One special token. `default` holds for a file without the key, if the vocabulary has it."""
    key = f"tokenizer.ggml.{name}_token_id"
    if key not in metadata:
        return default if default is not None and default < vocab_size else None
    number = metadata.integer(key, -1, _NO_TOKEN)
    if number in (-1, _NO_TOKEN):
        return None
    if number >= vocab_size:
        raise metadata.error(
            key,
            Text(
                "is {number}, the vocabulary has {vocab_size} tokens",
                number=number,
                vocab_size=vocab_size,
            ),
        )
    return number


def _end_ids(
    metadata: Metadata, tokens: Sequence[str], types: Sequence[int], default: int | None
) -> tuple[int, ...]:
    """Tokens that end a reply: those that the file names first, then well-known control tokens."""
    named = [
        _token_id(metadata, "eos", len(tokens), default),
        _token_id(metadata, "eot", len(tokens), None),
        _token_id(metadata, "eom", len(tokens), None),
    ]
    known = [
        number
        for number, token in enumerate(tokens)
        if token in _END_TOKENS and types[number] in (TokenType.CONTROL, TokenType.USER_DEFINED)
    ]
    ids = [number for number in (*named, *known) if number is not None]
    return tuple(dict.fromkeys(ids))
