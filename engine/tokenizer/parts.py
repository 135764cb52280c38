# SPDX-License-Identifier: Apache-2.0
"""What every tokeniser kind is built into, and the checks that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tokenizers

from engine.errors import ModelFileError
from engine.formats.source import TokenizerSpec, TokenType
from engine.texts import Text
from engine.tokenizer.special import ALWAYS_CONTROL, SpecialToken

_NAME = re.compile(r"<.+>|\[.+\]", re.DOTALL)  # <s>, <|im_end|>, [UNK]


@dataclass(frozen=True, slots=True)
class TokenizerParts:
    """One tokeniser, taken apart.

    `opening` encodes the first text of an input and `following` any text after a special token; they
    differ only where a space is put in front of the very first word. Neither knows a special token.
    `token_bytes[id]` is what a token adds to the text. `silent` ids add nothing to decoded text
    unless asked for. `prefix` and `suffix` are the ids that `add_special` puts around a text.
    """

    opening: tokenizers.Tokenizer
    following: tokenizers.Tokenizer
    token_bytes: tuple[bytes, ...]
    special: tuple[SpecialToken, ...]
    silent: frozenset[int]
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    drops_first_space: bool


def check_tokens(spec: TokenizerSpec) -> None:
    """Raise ModelFileError unless the lists of `spec` fit together."""
    count = len(spec.tokens)
    if count == 0:
        raise ModelFileError(spec.path, "tokenizer.ggml.tokens", "the vocabulary is empty")
    for name, values in (("token_type", spec.token_types), ("scores", spec.scores)):
        if values and len(values) != count:
            reason = Text("{values} entries for {count} tokens", values=len(values), count=count)
            raise ModelFileError(spec.path, f"tokenizer.ggml.{name}", reason)
    if len(set(spec.tokens)) != count:
        seen: set[str] = set()
        for index, token in enumerate(spec.tokens):
            if token in seen:
                reason = Text("token {index} has the same text as an earlier one", index=index)
                raise ModelFileError(spec.path, "tokenizer.ggml.tokens", reason)
            seen.add(token)
    check_special_ids(spec, count)


def check_special_ids(spec: TokenizerSpec, count: int, place: str = "tokenizer.ggml.") -> None:
    """Raise ModelFileError if a special id of `spec` is not one of `count` tokens."""
    named = [("bos_token_id", spec.bos_id), ("unknown_token_id", spec.unknown_id)]
    named += [("eos_token_id", eos) for eos in spec.eos_ids]
    for name, value in named:
        if value is not None and not 0 <= value < count:
            reason = Text(
                "{value} is outside the vocabulary of {count} tokens", value=value, count=count
            )
            raise ModelFileError(spec.path, place + name, reason)


def token_types(spec: TokenizerSpec) -> list[int]:
    """The type of every token, with control tokens corrected where files are known to be wrong.

    A special id counts only if its token looks like a name: some converters wrote ids that stand
    for `!` or `,`, and those must stay text.
    """
    types = list(spec.token_types) or [int(TokenType.NORMAL)] * len(spec.tokens)
    for index, token in enumerate(spec.tokens):
        if token in ALWAYS_CONTROL:
            types[index] = TokenType.CONTROL
    for special in (spec.bos_id, *spec.eos_ids):
        if special is not None and _NAME.fullmatch(spec.tokens[special]):
            types[special] = TokenType.CONTROL
    unknown = spec.unknown_id
    if unknown is not None and types[unknown] != TokenType.CONTROL:
        named = _NAME.fullmatch(spec.tokens[unknown])
        types[unknown] = TokenType.UNKNOWN if named else types[unknown]
    return types


def special_tokens(tokens: Sequence[str], types: Sequence[int]) -> tuple[SpecialToken, ...]:
    """The tokens that are matched as a whole; `<unk>` counts as a control token, as in llama.cpp."""
    control = (TokenType.CONTROL, TokenType.UNKNOWN)
    return tuple(
        SpecialToken(index, text, control=kind in control)
        for index, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in control or kind == TokenType.USER_DEFINED
    )


def silent_ids(types: Sequence[int]) -> frozenset[int]:
    """Ids that never show up in a text: control, unknown, and padding of the vocabulary."""
    kinds = (TokenType.CONTROL, TokenType.UNKNOWN, TokenType.UNUSED)
    return frozenset(index for index, kind in enumerate(types) if kind in kinds)


def end_ids(spec: TokenizerSpec) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """BOS and EOS that `add_special` puts around a text, from the flags of `spec`."""
    prefix = (spec.bos_id,) if spec.add_bos and spec.bos_id is not None else ()
    suffix = spec.eos_ids[:1] if spec.add_eos else ()
    return prefix, suffix
