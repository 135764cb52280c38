# SPDX-License-Identifier: Apache-2.0
"""SentencePiece BPE (GGUF `llama`): scores instead of merges, byte fallback, `▁` for a space.

The file has no merges, only a score for each piece, and SentencePiece joins the pair whose piece has
the highest score. So every way to cut a piece into two pieces is one merge, ranked by the score of
the whole. Pieces that may not come out of plain text (control, unknown, byte, unused, user-defined)
take no part, exactly as SentencePiece keeps them out of its table of pieces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import tokenizers
from tokenizers import normalizers
from tokenizers.models import BPE

from engine.errors import ModelFileError
from engine.formats.source import TokenizerSpec, TokenType
from engine.texts import Text
from engine.tokenizer import parts

# Splitting a piece takes time as the square of its length. Llama 2 has 48 letters at most and 0.2
# million in all, Gemma's 256,000 pieces 2 million.
_LONGEST_PIECE = 512
_MOST_LETTERS = 1 << 22
SPACE = "▁"  # U+2581 LOWER ONE EIGHTH BLOCK
BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def build(spec: TokenizerSpec) -> parts.TokenizerParts:
    """Build the parts of a SentencePiece BPE tokeniser.

    With `add_space_prefix`, a space goes in front of the text and of every text after a special
    token, as llama.cpp and the models' own chat formats have it.

    Raises:
        ModelFileError: lists that do not fit together, a score that is not a number, a byte piece
            that names no byte, or neither an unknown token nor all 256 byte pieces.
    """
    parts.check_tokens(spec)
    for name, values in (("scores", spec.scores), ("token_type", spec.token_types)):
        if not values:
            raise ModelFileError(spec.path, f"tokenizer.ggml.{name}", "missing or empty")
    if not all(map(math.isfinite, spec.scores)):
        raise ModelFileError(spec.path, "tokenizer.ggml.scores", "a score is not a finite number")
    types = parts.token_types(spec)
    backend = tokenizers.Tokenizer(_model(spec, types))
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", SPACE)]
    if spec.add_space_prefix:
        steps.insert(0, normalizers.Prepend(SPACE))
    backend.normalizer = normalizers.Sequence(steps)
    prefix, suffix = parts.end_ids(spec)
    return parts.TokenizerParts(
        opening=backend,
        following=backend,
        token_bytes=tuple(_piece_bytes(spec, index, kind) for index, kind in enumerate(types)),
        special=parts.special_tokens(spec.tokens, types),
        silent=parts.silent_ids(types),
        prefix=prefix,
        suffix=suffix,
        drops_first_space=spec.add_space_prefix,
    )


def _model(spec: TokenizerSpec, types: list[int]) -> BPE:
    normal = {
        token: index
        for index, (token, kind) in enumerate(zip(spec.tokens, types, strict=True))
        if kind == TokenType.NORMAL and token
    }
    if max(map(len, normal), default=0) > _LONGEST_PIECE or sum(map(len, normal)) > _MOST_LETTERS:
        reason = Text(
            "pieces of more than {longest_piece} letters, or {most_letters} in all",
            longest_piece=_LONGEST_PIECE,
            most_letters=_MOST_LETTERS,
        )
        raise ModelFileError(spec.path, "tokenizer.ggml.tokens", reason)
    fallback = {
        spec.tokens[index]: index for index, kind in enumerate(types) if kind == TokenType.BYTE
    }
    unknown = spec.unknown_id
    if unknown is None:
        unknown = next((i for i, kind in enumerate(types) if kind == TokenType.UNKNOWN), None)
    if unknown is None and len(fallback) < 256:
        reason = Text("no unknown token, and fewer than 256 byte pieces to stand in for it")
        raise ModelFileError(spec.path, "tokenizer.ggml.unknown_token_id", reason)
    vocabulary = normal | fallback
    unknown_text = None
    if unknown is not None:
        unknown_text = spec.tokens[unknown]
        vocabulary[unknown_text] = unknown
    return BPE(
        vocabulary,
        _merges(normal, spec.scores),
        cache_capacity=0,  # as in bpe.py: no typed text is kept
        unk_token=unknown_text,
        fuse_unk=True,
        byte_fallback=True,
    )


def _merges(pieces: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every way to join two pieces into a third, best score first.

    Equal scores fall back on the id, and cuts of one piece are tried from the longest left part:
    SentencePiece would take the leftmost place in the text, which a fixed ranking cannot express.
    Trained models have a different score for each piece, so that only the second rule is ever used,
    and only for runs of one character, where leftmost merging makes long left parts.
    """
    ranked = sorted(pieces.items(), key=lambda item: (-scores[item[1]], item[1]))
    return [
        (piece[:cut], piece[cut:])
        for piece, _ in ranked
        for cut in range(len(piece) - 1, 0, -1)
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]


def _piece_bytes(spec: TokenizerSpec, index: int, kind: int) -> bytes:
    token = spec.tokens[index]
    if kind == TokenType.BYTE:
        match = BYTE_PIECE.fullmatch(token)
        if match is None:
            reason = Text(
                "token {index} is marked as a byte but is not written <0xNN>", index=index
            )
            raise ModelFileError(spec.path, "tokenizer.ggml.tokens", reason)
        return bytes.fromhex(match[1])
    if kind == TokenType.NORMAL:
        return token.replace(SPACE, " ").encode()
    return token.encode()
