# SPDX-License-Identifier: Apache-2.0
"""Ready replies: what the engine computed before anybody asked, held by a hash of what it answers.

The hash covers everything that the engine would be asked, so a reply can be found by nothing but the
same question. It is keyed with a random key of this run, so it tells nothing about the question.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.companion.ports import EngineCommand
from app.settings import ReadySettings
from engine.messages import Chat, Complete, Event, Failed, Prepare, Prepared, ReplyReady

# Some, because a typo that is taken back leads to a context whose reply was ready a moment ago.
MOST_HELD = 8
# Prepares without an answer. A stuck engine is not asked for more: it refuses at 256.
MOST_OPEN = 8
_KEY_BYTES = 32
_HASH_BYTES = 16

Question = Chat | Complete
"""What may be asked; its request number means nothing."""


@dataclass(frozen=True, slots=True)
class ReadyReply:
    """The beginning of a reply; `is_whole`: all of it."""

    text: str = field(repr=False)
    tokens: tuple[int, ...] = field(repr=False)
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ReadyStats:
    """Triggers that found their reply ready and those that did not; tokens computed ahead, and those
    of them that were dropped unused.
    """

    hits: int = 0
    misses: int = 0
    computed: int = 0
    wasted: int = 0


class ReadyReplies:
    """Has the engine compute the reply to what would be asked now. Owned by the companion's thread.

    `request` and `cancel` are those of the modes' desk.
    """

    def __init__(
        self,
        request: Callable[[Callable[[int], EngineCommand]], int | None],
        cancel: Callable[[int | None], None],
    ) -> None:
        self._request = request
        self._cancel = cancel
        self._settings = ReadySettings()
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._question: Question | None = None
        self._context = ""
        self._is_owed = False
        self._open: dict[int, str] = {}  # with the context; "" of those whose reply is not wanted
        self._held: OrderedDict[str, ReadyReply] = OrderedDict()
        self.stats = ReadyStats()

    def configure(self, settings: ReadySettings) -> None:
        """Work by these settings from now on."""
        self.wipe()
        self._settings = settings

    def expect(self, question: Question | None) -> None:
        """`question` is what would be asked now; None: nothing can be asked."""
        if not self._settings.enabled:
            question = None
        context = "" if question is None else self._hash(question)
        if context != self._context:
            self._question, self._context = question, context
            self._prepare()

    @property
    def expected(self) -> ReadyReply | None:
        """The reply to what is expected, if it is ready."""
        return self._held.get(self._context)

    def take(self, question: Question, *, is_begun: bool = False) -> ReadyReply | None:
        """`question` is asked now: its reply, if it is ready, is handed over and counted.

        `is_begun`: the beginning of the reply is known otherwise, so it counts as ready.
        """
        if not self._settings.enabled:
            return None
        reply = self._held.pop(self._hash(question), None)
        if reply is None and not is_begun:
            self.stats = replace(self.stats, misses=self.stats.misses + 1)
        else:
            self.stats = replace(self.stats, hits=self.stats.hits + 1)
        return reply

    def answered(self, event: Event) -> bool:
        """Take an event of the engine; whether it was about a reply that nobody asked for."""
        match event:
            case ReplyReady(request=request, context=context):
                if context and self._open.get(request) == context:
                    self._hold(context, ReadyReply(event.text, tuple(event.tokens), event.is_whole))
                return True
            case Prepared(request=request):
                self.stats = replace(
                    self.stats,
                    computed=self.stats.computed + event.computed,
                    wasted=self.stats.wasted + event.wasted,
                )
                self._ended(request)
                return True
            case Failed(request=request) if request in self._open:
                self._ended(request)
                return True
            case _:
                return False

    def engine_left(self) -> None:
        """No request will be answered, and the next engine may have another model."""
        self._open.clear()
        self._drop()

    def wipe(self) -> None:
        """Forget every question and reply, and have the engine stop."""
        self._cancel(next(reversed(self._open), None))
        self._open = dict.fromkeys(self._open, "")
        self._drop()

    def _drop(self) -> None:
        self._held.clear()
        self._question, self._context = None, ""
        self._is_owed = False

    def _prepare(self) -> None:
        """Tell the engine what is expected; a newer Prepare stops the one before."""
        question, context = self._question, self._context
        self._is_owed = question is not None and len(self._open) >= MOST_OPEN
        if question is None or self._is_owed:
            self._cancel(next(reversed(self._open), None))
            return
        settings = self._settings
        number = self._request(
            lambda n: Prepare(
                request=n,
                context=context,
                ask=question,
                ahead=settings.tokens,
                rest_ms=settings.rest_s * 1000.0,
            )
        )
        if number is None:  # the engine is not there; expected anew once it is
            self._question, self._context = None, ""
        else:
            self._open[number] = context

    def _ended(self, request: int) -> None:
        self._open.pop(request, None)
        if self._is_owed:
            self._prepare()

    def _hold(self, context: str, reply: ReadyReply) -> None:
        if not reply.text and not reply.is_whole:
            return  # nothing to show yet: half a character, or a token without text
        before = self._held.pop(context, None)
        known = before is not None and before.tokens[: len(reply.tokens)] == reply.tokens
        self._held[context] = before if before is not None and known else reply
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)

    def _hash(self, question: Question) -> str:
        content = question.model_dump_json(exclude={"request", "begun"})
        digest = hashlib.blake2b(content.encode(), key=self._key, digest_size=_HASH_BYTES)
        return digest.hexdigest()
