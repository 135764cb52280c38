# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE by tiktoken, with the pre-tokenisers as they were published.

tiktoken shares no code with `tokenizers`: it has its own merging, and the regular expressions of
Rust's fancy-regex instead of Oniguruma. It ranks the joined token instead of the pair, and takes a
whole word that is a token without merging; both give the same for vocabularies that BPE has built.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping

import regex
import tiktoken

# Published with GPT-2 (encoder.py), Qwen (tokenization_qwen.py) and Llama 3 (tokenizer.py).
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def tiktoken_encoder(pre: str, ranks: Mapping[bytes, int]) -> Callable[[str], list[int]]:
    """Text without special tokens -> ids, for the pre-tokeniser that a GGUF calls `pre`."""
    pattern = {"llama-bpe": LLAMA3, "qwen2": QWEN2}.get(pre, GPT2)
    encoding = tiktoken.Encoding(
        pre, pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens={}
    )
    if pre == "qwen2":
        return lambda text: encoding.encode_ordinary(unicodedata.normalize("NFC", text))
    if pre == "smollm":  # llama.cpp: every \p{N} is cut out, then GPT-2's expression
        return lambda text: [
            token
            for piece in regex.split(r"(\p{N})", text)
            for token in encoding.encode_ordinary(piece)
        ]
    return encoding.encode_ordinary
