# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE (GGUF `gpt2`): merges, and a pre-tokeniser that the file names.

Text is first cut into words by the pre-tokeniser, then each word's bytes are merged pair by pair.
A wrong pre-tokeniser gives plausible but wrong ids, so an unknown name is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.models import BPE

from engine.errors import ModelFileError, UnsupportedModelError
from engine.formats.source import TokenizerSpec, TokenType
from engine.texts import Text
from engine.tokenizer import parts

# The regular expressions are those of the models' own tokenizer.json; llama.cpp (llama-vocab.cpp,
# llm_tokenizer_bpe) spells the same ones without `(?i:...)`.
_LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class _Style:
    """How text is prepared. `words=None` means GPT-2's expression, which ByteLevel carries itself."""

    words: str | None = None
    single_digits: bool = False
    compose: bool = False  # NFC first, as Qwen2's own tokeniser does (llama.cpp leaves it out)
    whole_words_first: bool = False  # a word that is itself a token skips the merges


_LLAMA3 = _Style(words=_LLAMA3_WORDS, whole_words_first=True)
_STYLES: Mapping[str, _Style] = {
    "gpt-2": _Style(),
    "smollm": _Style(single_digits=True),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,  # the two other spellings that converters have used for llama-bpe
    "llama-v3": _LLAMA3,
    "qwen2": _Style(words=_QWEN2_WORDS, compose=True),
}


def _byte_letters() -> dict[str, str]:
    """Letter that stands for a byte in the vocabulary -> the character of that code (GPT-2)."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {chr(byte): chr(byte) for byte in visible}
    letters.update({chr(256 + n): chr(byte) for n, byte in enumerate(hidden)})
    return letters


BYTE_LETTERS: Mapping[int, str] = str.maketrans(_byte_letters())
_ALPHABET = frozenset(_byte_letters())


def spelled_bytes(token: str) -> bytes:
    """The bytes of a byte-level token; a token outside the byte alphabet stands for its own UTF-8."""
    if _ALPHABET.issuperset(token):
        return token.translate(BYTE_LETTERS).encode("latin-1")
    return token.encode()


def build(spec: TokenizerSpec) -> parts.TokenizerParts:
    """Build the parts of a byte-level BPE tokeniser.

    Raises:
        UnsupportedModelError: a pre-tokeniser that Thock lacks.
        ModelFileError: lists that do not fit together, no merges, or a merge of unknown tokens.
    """
    style = _style(spec)
    parts.check_tokens(spec)
    types = parts.token_types(spec)
    normal = {
        token: index
        for index, (token, kind) in enumerate(zip(spec.tokens, types, strict=True))
        if kind == TokenType.NORMAL and token
    }
    # No cache: it would keep up to 10,000 typed words in memory after Forget, for 0.1 ms a call.
    model = BPE(
        normal,
        list(_merges(spec, normal)),
        cache_capacity=0,
        ignore_merges=style.whole_words_first,
    )
    backend = tokenizers.Tokenizer(model)
    _prepare(backend, style)
    special = parts.special_tokens(spec.tokens, types)
    whole = {token.id for token in special}
    prefix, suffix = parts.end_ids(spec)
    return parts.TokenizerParts(
        opening=backend,
        following=backend,
        token_bytes=tuple(
            token.encode() if index in whole else spelled_bytes(token)
            for index, token in enumerate(spec.tokens)
        ),
        special=special,
        silent=parts.silent_ids(types),
        prefix=prefix,
        suffix=suffix,
        drops_first_space=False,  # add_space_prefix has no meaning here; llama.cpp ignores it too
    )


def _style(spec: TokenizerSpec) -> _Style:
    try:
        return _STYLES[spec.pre]
    except KeyError:
        pass
    known = ", ".join(sorted(_STYLES))
    reason = Text(
        "pre-tokeniser {pre} is not supported; supported are {known}",
        pre=repr(spec.pre[:64]),
        known=known,
    )
    raise UnsupportedModelError(spec.path, "tokenizer.ggml.pre", reason)


def _merges(spec: TokenizerSpec, normal: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The merges as pairs of ordinary tokens; one that would build a control token is left out.

    Each is checked, because `tokenizers` raises a bare Exception for a bad one.
    """
    if not spec.merges:
        raise ModelFileError(spec.path, "tokenizer.ggml.merges", "missing or empty")
    known = frozenset(spec.tokens)
    for index, merge in enumerate(spec.merges):
        left, _, right = merge.partition(" ")
        whole = left + right
        if left in normal and right in normal and whole in normal:
            yield left, right
        elif not left or not right or not known.issuperset((left, right, whole)):
            reason = Text("merge {index} names a token that is not in the vocabulary", index=index)
            raise ModelFileError(spec.path, "tokenizer.ggml.merges", reason)


def _prepare(backend: tokenizers.Tokenizer, style: _Style) -> None:
    """Give `backend` the normaliser and pre-tokeniser of `style`."""
    steps: list[pre_tokenizers.PreTokenizer] = []
    if style.single_digits:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if style.words is not None:
        steps.append(pre_tokenizers.Split(Regex(style.words), behavior="isolated"))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=style.words is None)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*steps, byte_level])
    if style.compose:
        backend.normalizer = normalizers.NFC()
