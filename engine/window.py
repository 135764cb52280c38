# SPDX-License-Identifier: Apache-2.0
"""Which part of a long text or chat the model gets to see, chosen so that its beginning moves seldom.

KV rows are reused up to the first token that differs. A window that slid by one token for each token
typed would therefore reuse nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.errors import ContextOverflowError
from engine.messages import Turn
from engine.texts import Text


class TokenWindow:
    """The last tokens of a text: at most `window`, and at least `window - 2 * step` if there are that many.

    The window slides in steps of `step` tokens. Where it stands it stays while the text grows or shrinks
    by some tokens, so that a backspace across a border does not move it to and fro.
    """

    def __init__(self, window: int = 128, step: int = 32) -> None:
        if not 1 <= step <= window // 2:
            raise ValueError("a window slides in steps of 1 token to half of its size")
        self._window = window
        self._step = step
        self._start = 0
        self._head: list[int] = []

    def cut(self, tokens: Sequence[int]) -> list[int]:
        """The end of `tokens` that the model is to see."""
        shown = len(tokens) - self._start
        fits = self._window - 2 * self._step <= shown <= self._window
        head = list(tokens[self._start : self._start + self._step])
        if not fits or head != self._head:
            surplus = max(0, len(tokens) - self._window)
            self._start = -(-surplus // self._step) * self._step
            self._head = list(tokens[self._start : self._start + self._step])
        return list(tokens[self._start :])

    def forget(self) -> None:
        """Drop what was kept of the last text."""
        self._start = 0
        self._head = []


def fit_turns(
    turns: Sequence[Turn], count_tokens: Callable[[Sequence[Turn]], int], limit: int
) -> list[Turn]:
    """The system turn and as many of the newest turns as `count_tokens` finds to fit into `limit`.

    The oldest go first, an answer together with its question, because templates want a user's turn first.

    Raises:
        ContextOverflowError: the last turn alone is too long.
    """
    system = [turn for turn in turns[:1] if turn.role == "system"]
    kept = list(turns[len(system) :])
    while (count := count_tokens([*system, *kept])) > limit:
        kept = kept[1:]
        while kept and kept[0].role == "assistant":
            kept = kept[1:]
        if not kept:
            raise ContextOverflowError(
                Text(
                    "the last message and the instructions have {count} tokens, but only {limit} fit: "
                    "shorten the message or load the model with a larger max_context",
                    count=count,
                    limit=limit,
                )
            )
    return [*system, *kept]
