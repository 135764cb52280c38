# SPDX-License-Identifier: Apache-2.0
"""What a model file hands to the rest of the engine, whatever its format.

Tensor names are our own, and rows of W_q and W_k are always in HALF_SPLIT order:

    embed (vocab, dim)   final_norm (dim,)   head (vocab, dim)   [head is absent when tied]
    layers.<i>.attn_norm (dim,)              layers.<i>.ffn_norm (dim,)
    layers.<i>.wq (heads*head_dim, dim)      layers.<i>.wk, wv (kv_heads*head_dim, dim)
    layers.<i>.wo (dim, heads*head_dim)      layers.<i>.bq, bk, bv  [with attention_bias]
    layers.<i>.w_gate, w_up (ffn, dim)       layers.<i>.w_down (dim, ffn)
    rope_factors (head_dim/2,)               [only where the file carries frequency divisors]
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.config import ModelConfig


class TokenizerKind(enum.Enum):
    """Which family of tokeniser a file describes."""

    BPE = "bpe"  # GGUF `gpt2`: byte-level BPE with merges and a named pre-tokeniser
    SENTENCEPIECE = "sentencepiece"  # GGUF `llama`: scores, byte fallback
    TOKENIZER_JSON = "tokenizer.json"  # Hugging Face `tokenizers` file, used as it is


class TokenType(enum.IntEnum):
    """`tokenizer.ggml.token_type` (llama.cpp, llama_token_type)."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """Everything needed to build a tokeniser. Lists are empty for TOKENIZER_JSON."""

    path: Path
    kind: TokenizerKind
    vocab_size: int
    pre: str = ""
    tokens: Sequence[str] = field(default=(), repr=False)
    merges: Sequence[str] = field(default=(), repr=False)
    scores: Sequence[float] = field(default=(), repr=False)
    token_types: Sequence[int] = field(default=(), repr=False)
    bos_id: int | None = None
    eos_ids: tuple[int, ...] = ()
    unknown_id: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    add_space_prefix: bool = True
    chat_template: str | None = field(default=None, repr=False)
    json_path: Path | None = None


class ModelSource(Protocol):
    """An open model file or folder. Tensors are read when asked for; nothing else is."""

    @property
    def path(self) -> Path: ...

    @property
    def config(self) -> ModelConfig: ...

    @property
    def tokenizer(self) -> TokenizerSpec: ...

    def tensor_names(self) -> Sequence[str]:
        """Our names of all tensors in the file."""
        ...

    def tensor(self, name: str) -> NDArray[np.float32]:
        """One tensor, dequantised to float32, row-major, in the shape given above.

        Raises:
            ModelFileError: missing, truncated, of the wrong shape, or holding NaN or infinity.
        """
        ...

    def close(self) -> None:
        """Unmap the file. Safe to call twice."""
        ...
