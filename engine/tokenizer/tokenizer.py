# SPDX-License-Identifier: Apache-2.0
"""Text <-> token ids, for every kind of tokeniser that Thock reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.formats.source import TokenizerKind, TokenizerSpec
from engine.tokenizer import bpe, json_file, sentencepiece
from engine.tokenizer.parts import TokenizerParts
from engine.tokenizer.special import END_OF_TURN, Splitter

_BUILDERS = {
    TokenizerKind.BPE: bpe.build,
    TokenizerKind.SENTENCEPIECE: sentencepiece.build,
    TokenizerKind.TOKENIZER_JSON: json_file.build,
}


class Tokenizer:
    """Turns text into token ids and back. Holds no text between calls.

    Text is either trusted (a template wrote it; control tokens in it count) or not (a person typed
    it; `<|im_end|>` is then ten ordinary characters). `encode` has one flag for a whole text, and
    `encode_pieces` takes a text that `split_control` has already cut.
    """

    def __init__(
        self, built: TokenizerParts, bos_id: int | None = None, eos_ids: Sequence[int] = ()
    ) -> None:
        self._built = built
        self._bos_id = bos_id
        by_name = [t.id for t in built.special if t.control and t.text in END_OF_TURN]
        self._eos_ids = tuple(dict.fromkeys([*eos_ids, *by_name]))
        self._control = Splitter(token for token in built.special if token.control)
        self._user_defined = Splitter(token for token in built.special if not token.control)
        self._ids = {token.text: token.id for token in built.special}

    @classmethod
    def from_spec(cls, spec: TokenizerSpec) -> Tokenizer:
        """Build the tokeniser that a model file describes.

        Raises:
            UnsupportedModelError: a pre-tokeniser or a part that Thock lacks, by its name.
            ModelFileError: the description is damaged; the message names the field.
        """
        return cls(_BUILDERS[spec.kind](spec), spec.bos_id, spec.eos_ids)

    @property
    def vocab_size(self) -> int:
        """Number of token ids. A model may have more rows than this; they stand for nothing."""
        return len(self._built.token_bytes)

    @property
    def bos_id(self) -> int | None:
        """The token that begins a text, whether or not `encode` adds it."""
        return self._bos_id

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Every token that ends a turn or a text; the one named by the file comes first."""
        return self._eos_ids

    def special_id(self, text: str) -> int | None:
        """The id of the special token with exactly this text, if there is one."""
        return self._ids.get(text)

    def is_special(self, token: int) -> bool:
        """Whether a token never shows up in a text: control, unknown and padding tokens."""
        return token in self._built.silent

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to the text: any bytes, perhaps a part of a character.

        For a special token this is its name in UTF-8.

        Raises:
            ValueError: the id is outside the vocabulary.
        """
        if not 0 <= token < len(self._built.token_bytes):
            size = len(self._built.token_bytes)
            raise ValueError(f"token id {token} is outside the vocabulary of {size}")
        return self._built.token_bytes[token]

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """The token ids of `text`.

        `add_special` puts BOS before and EOS after it if the file says so, but never a second one.
        `parse_special` makes control tokens of their names in `text`; use it for trusted text only.
        User-defined tokens are always matched. Lone surrogates become U+FFFD, and bytes for which
        the vocabulary has no token are left out, as the reference tokenisers do.
        """
        pieces: list[str | int] = self.split_control(text) if parse_special else [text]
        ids = self.encode_pieces(pieces)
        if add_special:
            ids = self.with_bos(ids)
            suffix = list(self._built.suffix)
            if ids[len(ids) - len(suffix) :] != suffix:
                ids += suffix
        return ids

    def split_control(self, text: str) -> list[str | int]:
        """`text` cut at the control tokens named in it: their ids, and the text between them."""
        return self._control.split(_well_formed(text))

    def encode_pieces(self, pieces: Iterable[str | int]) -> list[int]:
        """The ids of a text that is already cut: an id stays, a text holds no control token."""
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
                continue
            for part in self._user_defined.split(_well_formed(piece)):
                if isinstance(part, int):
                    ids.append(part)
                else:
                    backend = self._built.following if ids else self._built.opening
                    ids += backend.encode(part, add_special_tokens=False).ids
        return ids

    def with_bos(self, ids: list[int]) -> list[int]:
        """`ids` behind the BOS that the file asks for, unless they begin with it already."""
        prefix = list(self._built.prefix)
        return ids if ids[: len(prefix)] == prefix else prefix + ids

    def decode(
        self, ids: Iterable[int], *, skip_special: bool = True, continuation: bool = False
    ) -> str:
        """The text of `ids`; bytes that are not UTF-8 become U+FFFD.

        SentencePiece models put a space in front of the first word; it is taken off again unless
        the text is a `continuation` of one that came before.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        silent = self._built.silent if skip_special else frozenset()
        data = b"".join(self.token_bytes(token) for token in ids if token not in silent)
        if self.drops_first_space and not continuation:
            data = data.removeprefix(b" ")
        return data.decode("utf-8", "replace")

    @property
    def drops_first_space(self) -> bool:
        """Whether `encode` puts a space in front of a text, so that `decode` takes one off."""
        return self._built.drops_first_space


def _well_formed(text: str) -> str:
    """`text` as UTF-8 can hold it: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
