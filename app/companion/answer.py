# SPDX-License-Identifier: Apache-2.0
"""One reply on its way: ready before it was asked for, or from the engine, or one after the other."""

from __future__ import annotations

import enum

from app.companion.asked import ReplyEnd, Ticket
from app.companion.modes.base import Desk
from app.companion.ready import Question
from app.settings import ModeName
from engine.messages import Event, Failed, ReplyFinished, ReplyGrew

_CUT_OFF = " ..."  # the reply reached its longest length
# The engine is told to go on with what is shown when the keyboard has got it: nothing comes in its way.
_GO_ON_AFTER_S = 0.002
_ENGINE_LEFT = "the engine ended in the middle of the answer"


class Progress(enum.Enum):
    """How far a reply has come."""

    NONE = "none"
    WAITING = "waiting"  # asked, but the engine is not there yet
    THINKING = "thinking"
    STREAMING = "streaming"
    WHOLE = "whole"


class Answer:
    """The reply to the newest question of one mode; a new question gives up the one before."""

    def __init__(self, desk: Desk, mode: ModeName) -> None:
        self._desk = desk
        self._mode = mode
        self._question: Question | None = None
        self._pending: int | None = None
        self._begun: list[int] = []
        self._go_on_at: float | None = None
        self._asked_at = 0.0
        self._is_cut_off = False
        self._ticket: Ticket | None = None
        self.progress = Progress.NONE
        self.text = ""

    @property
    def shown(self) -> str:
        """The text, and that it goes on if it was cut off."""
        return self.text + _CUT_OFF * self._is_cut_off

    @property
    def is_under_way(self) -> bool:
        """More of it is to come."""
        return self.progress not in (Progress.NONE, Progress.WHOLE)

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called."""
        return self._go_on_at

    def ask(
        self, question: Question, at: float, seen: str = "", ticket: Ticket | None = None
    ) -> None:
        """Ask now, or as soon as the engine is there. `seen` is the beginning of the reply, known already.

        What is ready is the reply at once; the engine is told later. `ticket` is told what becomes of it.
        """
        self.stop(ReplyEnd.REPLACED)
        self._question = question
        self._ticket = ticket
        self._asked_at = at
        ready = self._desk.ready.take(question, is_begun=bool(seen))
        self.text = seen + (ready.text if ready is not None else "")
        self._begun = list(ready.tokens) if ready is not None else []
        if ready is not None and ready.is_whole:
            self.progress = Progress.WHOLE
        elif self.text:
            self.progress = Progress.STREAMING
            self._go_on_at = self._desk.now() + _GO_ON_AFTER_S
        else:
            self.progress = Progress.WAITING
            self._send()
            return
        self._tell()
        self._desk.measured(self._mode, self._desk.number(), at, is_ready=True)

    def stop(self, end: ReplyEnd = ReplyEnd.CANCELLED) -> None:
        """Give the reply up, as far as it came, and forget it. `end` says why."""
        self._desk.cancel(self._pending)
        self._clear(end)

    def answered(self, event: Event) -> bool:
        """Take an event of the engine; whether it changed the reply. One that failed is none."""
        match event:
            case ReplyGrew(request=request, text=text) if request == self._pending:
                if not self.text:
                    self._desk.measured(self._mode, request, self._asked_at)
                self.progress = Progress.STREAMING
                self.text += text
                self._tell()
            case ReplyFinished(request=request, reason=reason) if request == self._pending:
                self._pending = None
                self.progress = Progress.WHOLE
                self._is_cut_off = reason == "length"
                self._tell(ReplyEnd.CANCELLED if reason == "cancelled" else ReplyEnd.WHOLE)
            case Failed(request=request, message=message) if request == self._pending:
                self._clear(ReplyEnd.FAILED, message)
            case _:
                return False
        return True

    def engine_came(self) -> None:
        """Requests go through from now on."""
        if self.progress is Progress.WAITING:
            self._send()

    def engine_left(self) -> bool:
        """The reply under way is lost; whether there was one.

        The question is not asked again by itself, as it may be what killed the engine.
        """
        is_lost = self._pending is not None or self._go_on_at is not None
        if is_lost:
            self._clear(ReplyEnd.FAILED, _ENGINE_LEFT)
        return is_lost

    def wake(self) -> bool:
        """Go on with what is shown, if it is time; whether the engine had left and the reply is lost."""
        if self._go_on_at is None or self._desk.now() < self._go_on_at:
            return False
        self._go_on_at = None
        self._send()
        if self._pending is None:
            self._clear(ReplyEnd.FAILED, _ENGINE_LEFT)
        return self._pending is None

    def _send(self) -> None:
        question, begun = self._question, self._begun
        assert question is not None
        self._pending = self._desk.request(
            lambda n: question.model_copy(update={"request": n, "begun": begun})
        )
        if self._pending is not None and self.progress is Progress.WAITING:
            self.progress = Progress.THINKING

    def _tell(self, end: ReplyEnd | None = None) -> None:
        """Tell whoever asked."""
        if self._ticket is None:
            return
        self._ticket.grow(self.shown)
        if end is None and self.progress is Progress.WHOLE:
            end = ReplyEnd.WHOLE
        if end is not None:
            self._ticket.close(end)
            self._ticket = None

    def _clear(self, end: ReplyEnd, reason: str = "") -> None:
        if self._ticket is not None:
            self._ticket.close(end, reason)
            self._ticket = None
        self._question = None
        self._pending = None
        self._begun = []
        self._go_on_at = None
        self._is_cut_off = False
        self.progress = Progress.NONE
        self.text = ""
