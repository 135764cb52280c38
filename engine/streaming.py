# SPDX-License-Identifier: Apache-2.0
"""Text from tokens as they come, never half a character."""

from __future__ import annotations

import codecs

from engine.tokenizer import Tokenizer


class StreamDecoder:
    """Decodes one reply, token by token. All pieces together equal `Tokenizer.decode` of the whole.

    A character whose bytes are spread over several tokens comes out with the last of them. Bytes
    that can no longer become a character come out as U+FFFD at once, an unfinished tail at `finish`.
    A character is one Unicode code point: the parts of a joined emoji come out one by one.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, skip_special: bool = True, continuation: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._drop_space = tokenizer.drops_first_space and not continuation
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that `token` completes; often empty inside a character.

        Raises:
            ValueError: the id is outside the vocabulary.
        """
        if self._skip_special and self._tokenizer.is_special(token):
            return ""
        data = self._tokenizer.token_bytes(token)
        if self._drop_space and data:
            data = data.removeprefix(b" ")
            self._drop_space = False
        return self._utf8.decode(data)

    def finish(self) -> str:
        """What is left of an unfinished character, as U+FFFD. Call it once, after the last token."""
        return self._utf8.decode(b"", final=True)
