# SPDX-License-Identifier: Apache-2.0
"""One reply that grows in a session, and can be taken up again after other work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence

from engine.session import FinishReason, Session, common_prefix, never


class GrowingReply:
    """The likeliest reply to `prompt` after the tokens `begun`, as far as it is known.

    It owns no rows: `grow` computes what the session lacks, which is nothing but the newest token
    while nobody else used the session.
    """

    def __init__(
        self,
        session: Session,
        stop_ids: Collection[int],
        prompt: Sequence[int],
        begun: Sequence[int] = (),
    ) -> None:
        self._session = session
        self._stop_ids = stop_ids
        self._prompt = list(prompt)
        self._tokens = list(begun)
        self._is_whole = False

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens that are known, those that it began with among them."""
        return tuple(self._tokens)

    @property
    def is_whole(self) -> bool:
        """Whether the model has ended it."""
        return self._is_whole

    def answers(self, prompt: Sequence[int], begun: Sequence[int]) -> bool:
        """Whether it is a reply to `prompt` that begins with `begun`."""
        return prompt == self._prompt and self._tokens[: len(begun)] == list(begun)

    def grow(
        self, most: int, cancelled: Callable[[], bool] = never, *, ahead: bool = False
    ) -> Generator[int, None, FinishReason]:
        """Yield further tokens until there are `most` in all; the value says why it ended.

        `ahead`: nobody asked for them yet. Neither the session nor another reply in it may be used
        before the generator is done or closed.

        Raises:
            ContextOverflowError: the prompt is longer than the context.
            OperationCancelledError: `cancelled()` held before the prompt was computed.
        """
        known = [*self._prompt, *self._tokens]
        is_full = bool(self._tokens) and len(known) > self._session.max_context
        if self._is_whole or is_full or len(self._tokens) >= most:
            if not ahead:
                self._session.rows.use(common_prefix(self._session.tokens, known))
            return FinishReason.STOP if self._is_whole else FinishReason.LENGTH
        self._session.update(known, cancelled, ahead=ahead)
        rest = self._session.generate(
            most - len(self._tokens), self._stop_ids, cancelled, ahead=ahead
        )
        while True:
            try:
                token = next(rest)
            except StopIteration as end:
                reason: FinishReason = end.value
                self._is_whole = reason is FinishReason.STOP
                return reason
            self._tokens.append(token)
            yield token
