# SPDX-License-Identifier: Apache-2.0
"""Special tokens: which texts stand for one token, and how a text is cut at them.

Control tokens give a prompt its structure (who speaks, where a turn ends). They are looked for only
in text that a template wrote, never in text that a person typed. User-defined tokens are plain
vocabulary that is matched as a whole wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import tokenizers
from tokenizers import AddedToken
from tokenizers.models import BPE

# A token with one of these texts ends a turn if the file marks it as a control token.
# Source: the end-of-generation list in llama.cpp, llama_vocab::impl::load.
END_OF_TURN = frozenset(
    {
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<|end|>",
        "<|eot|>",
        "<end_of_turn>",
        "<EOT>",
        "<eos>",
        "</s>",
        "<｜end▁of▁sentence｜>",
    }
)

# Nobody types these by chance. Some converters mark them as ordinary or user-defined tokens, and then
# a typed `<|im_end|>` would end the turn; they are control tokens whatever the file says.
ALWAYS_CONTROL = frozenset(
    {
        "<|im_start|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|endoftext|>",
        "<|end_of_turn|>",
        "<start_of_turn>",
        "<end_of_turn>",
    }
)


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A text that becomes exactly one token. The three last fields mean what they do in `tokenizers`."""

    id: int
    text: str
    control: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


class Splitter:
    """Cuts a text at special tokens: the leftmost first, the longest of those that start together."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        by_text = {token.text: token for token in tokens if token.text}
        self._ids = [token.id for token in by_text.values()]
        self._first_letters = frozenset(text[0] for text in by_text)
        # An empty BPE model yields nothing for ordinary text, so only the added tokens come out. Its
        # Aho-Corasick automaton costs the same for 20 tokens and for 20,000; `re` does not.
        self._matcher = tokenizers.Tokenizer(BPE())
        self._matcher.add_tokens(
            [
                AddedToken(
                    token.text,
                    lstrip=token.lstrip,
                    rstrip=token.rstrip,
                    single_word=token.single_word,
                    normalized=False,
                )
                for token in by_text.values()
            ]
        )

    def split(self, text: str) -> list[str | int]:
        """The pieces of `text` in order: a token id for a special token, else the text between."""
        if self._first_letters.isdisjoint(text):  # spares ordinary text the scan, about 60 us
            return [text] if text else []
        encoding = self._matcher.encode(text, add_special_tokens=False)
        pieces: list[str | int] = []
        end = 0
        for index, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
            if start > end:
                pieces.append(text[end:start])
            pieces.append(self._ids[index])
            end = stop
        if end < len(text):
            pieces.append(text[end:])
        return pieces
