# SPDX-License-Identifier: Apache-2.0
"""Chat: a typed question, a streamed reply.

Keys that the keyboard does not hold back (a capture) reach the computer as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.companion.answer import Answer, Progress
from app.companion.asked import ReplyEnd, Ticket
from app.companion.context import Edit, TypingContext
from app.companion.lights import DARK, Cue
from app.companion.modes.base import Desk, Preview, View
from app.companion.pager import Pager
from app.companion.picture import Size, clipped, padded, tail, wrapped
from app.companion.ready import ReadyReply
from app.companion.words import mode_name
from app.settings import ModeName
from engine.messages import Chat, Event, ReplyFinished, Turn
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.keys.text_events import (
    Backspace,
    CursorMoved,
    Direction,
    Enter,
    Escape,
    TextTyped,
)
from firmware_bridge.protocol.messages import Status


class ChatMode:
    """One question at a time; a new one cancels the reply under way. History is kept in memory only."""

    name = ModeName.CHAT

    def __init__(self, desk: Desk) -> None:
        settings = desk.settings.chat
        self._desk = desk
        self._title = mode_name(self.name, desk.tr)
        self._hint = desk.tr("Type a question.\nEnter asks,\nEsc cancels.")
        self._no_answer = desk.tr("(no answer)")
        self._persona = desk.presets.persona(settings.persona)
        self._typed = TypingContext(settings.question_chars)
        self._pager = Pager(settings.reading_speed)
        self._answer = Answer(desk, self.name)
        self._question = ""

    @property
    def deadline(self) -> float | None:
        times = [self._pager.deadline, self._answer.deadline]
        return min((time for time in times if time is not None), default=None)

    @property
    def typed(self) -> str:
        return self._typed.text

    @property
    def reply(self) -> str:
        return self._answer.shown

    @property
    def question(self) -> Chat | None:
        """What was typed so far, as if Enter came now."""
        typed = self._typed.text.strip()
        return self._about(typed) if typed else None

    @property
    def is_answering(self) -> bool:
        """A reply is under way."""
        return self._answer.is_under_way

    @property
    def is_showing_reply(self) -> bool:
        """A reply is under way, or stays until it is read."""
        return self._answer.progress is not Progress.NONE

    @property
    def preview(self) -> Preview | None:
        ready = self._desk.ready.expected
        if ready is None:
            return None
        asked = self._typed.text.strip()
        needs_pixels = self._is_in_pixels(asked, ready.text)
        return Preview(needs_pixels, lambda size: self._ready_view(asked, ready, size), True)

    @property
    def needs_pixels(self) -> bool:
        return self._is_in_pixels(self._question, self._answer.shown, self._typed.text)

    def _is_in_pixels(self, *texts: str) -> bool:
        return not all(map(is_plain, (*texts, self._hint, self._no_answer)))

    def enter(self) -> None:
        """Keys typed here go to the question, and what stands in the person's window is unknown after."""
        self._desk.context.wipe()

    def leave(self) -> None:
        self._stop()
        self._typed.wipe()

    def edited(self, edit: Edit, at: float) -> None:
        """The end of the question is the only place to type. Up and down turn the pages of the reply."""
        match edit:
            case Enter():
                self._commit(at)
            case Escape():
                self.cancel()
            case CursorMoved(direction=Direction.UP | Direction.PAGE_UP):
                self._pager.turn_back(self._desk.now())
            case CursorMoved(direction=Direction.DOWN | Direction.PAGE_DOWN):
                if self._pager.has_more:
                    self._pager.turn(self._desk.now())
            case TextTyped() | Backspace():
                if self._answer.progress is Progress.WHOLE:
                    self._start_typing()
                self._typed.apply(edit)
                self._fill_pager()

    def commit(self) -> None:
        self._commit(self._desk.now())

    def cancel(self) -> None:
        """Stop the reply; with none under way, clear the question."""
        if self.is_answering:
            self._stop()
        else:
            self._typed.wipe()
            self._start_typing()

    def macro(self, number: int) -> None:
        """Macro keys say nothing in a chat."""

    def ask(self, question: str, at: float, ticket: Ticket | None = None) -> None:
        """Ask `question` now, or as soon as the engine is there; `ticket` follows what becomes of it."""
        self._stop(ReplyEnd.REPLACED)
        self._question = question
        self._answer.ask(self._about(question), at, ticket=ticket)
        self._grown()

    def answered(self, event: Event) -> None:
        is_new = not self._answer.text
        if not self._answer.answered(event):
            return
        if self._answer.progress is Progress.NONE:
            self._start_typing()
            return
        if is_new:
            self._pager.start(self._desk.now())
        self._grown(is_kept=not isinstance(event, ReplyFinished) or event.reason != "cancelled")

    def engine_came(self) -> None:
        self._answer.engine_came()

    def engine_left(self) -> None:
        if self._answer.engine_left():
            self._start_typing()

    def wake(self) -> None:
        if self._answer.wake():
            self._start_typing()
        self._pager.turn_if_due(self._desk.now())

    def wipe(self) -> None:
        self.leave()
        self._desk.history.wipe()

    def resized(self) -> None:
        self._fill_pager()

    def view(self) -> View:
        palette = self._desk.palette
        match self._answer.progress:
            case Progress.NONE:
                return View(self._typed_lines(), Status.LISTENING, DARK)
            case Progress.WAITING | Progress.THINKING:
                status, lights = Status.THINKING, palette[Cue.THINKING]
                return View(self._asked_lines(), status, lights)
            case Progress.STREAMING | Progress.WHOLE:
                pager = self._pager
                page = _Page(self._question, pager.lines, pager.has_more, self._draft())
                is_whole = self._answer.progress is Progress.WHOLE
                return self._reply_view(page, is_whole, self._desk.size)

    # ---------------------------------------------------------------- what happens

    def _commit(self, at: float) -> None:
        """Ask what was typed; with nothing typed, turn the page of the reply."""
        question = self._typed.text.strip()
        if question:
            self._typed.wipe()
            self.ask(question, at)
        elif self._answer.progress in (Progress.STREAMING, Progress.WHOLE):
            self._pager.turn(self._desk.now())

    def _about(self, question: str) -> Chat:
        """What asks `question` after the chat so far."""
        turns = [Turn(role="system", content=self._persona.system)]
        for asked, reply in self._desk.history:
            turns.append(Turn(role="user", content=asked))
            turns.append(Turn(role="assistant", content=reply))
        turns.append(Turn(role="user", content=question))
        return Chat(request=0, turns=turns, max_tokens=self._desk.settings.chat.max_tokens)

    def _grown(self, is_kept: bool = True) -> None:
        """The reply is longer now, or whole."""
        if self._answer.progress is Progress.WHOLE and is_kept:
            self._desk.history.add(self._question, self._answer.text)
        self._fill_pager()

    def _stop(self, end: ReplyEnd = ReplyEnd.CANCELLED) -> None:
        """Give up the question under way, and its reply as far as it came."""
        self._answer.stop(end)
        self._start_typing()

    def _start_typing(self) -> None:
        self._answer.stop()
        self._question = ""
        self._pager.start(self._desk.now())

    # ---------------------------------------------------------------- what is seen

    def _typed_lines(self) -> tuple[str, ...]:
        size = self._desk.size
        if not len(self._typed):
            title = [] if size.has_pixels else [self._title]
            return (*title, *wrapped(self._hint, size))
        return tuple(tail("> " + self._typed.text, size, size.rows))

    def _asked_lines(self) -> tuple[str, ...]:
        size = self._desk.size
        asked = wrapped(f"> {self._question}", size)
        return (*padded(asked, size.rows - 1), *(self._draft() or ["..."]))

    def _reply_view(self, page: _Page, is_whole: bool, size: Size) -> View:
        lights = self._desk.palette[Cue.READY] if is_whole else self._persona.lights
        status = Status.LISTENING if is_whole else Status.STREAMING
        lines, asked = page.lines(size), f"> {page.question}"
        return View(lines, status, lights, title=asked, has_more=page.has_more)

    def _ready_view(self, question: str, ready: ReadyReply, size: Size) -> View:
        """What `ask` shows of a ready reply."""
        lines = self._reply_lines(ready.text, ready.is_whole, size)
        rows = _page_rows(size, [])
        page = _Page(question, tuple(lines[:rows]), len(lines) > rows, [])
        return self._reply_view(page, ready.is_whole, size)

    def _reply_lines(self, reply: str, is_whole: bool, size: Size) -> list[str]:
        return wrapped(reply, size) or ([self._no_answer] if is_whole else [])

    def _draft(self) -> list[str]:
        """The end of the next question, if it was begun during the reply to the last one."""
        return tail("> " + self._typed.text, self._desk.size, 1) if len(self._typed) else []

    def _fill_pager(self) -> None:
        size = self._desk.size
        is_whole = self._answer.progress is Progress.WHOLE
        lines = self._reply_lines(self._answer.shown, is_whole, size)
        self._pager.update(lines, _page_rows(size, self._draft()), self._desk.now())


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a reply, its question above it where there is room, and the next question's beginning."""

    question: str = field(repr=False)
    reply: tuple[str, ...] = field(repr=False)
    has_more: bool
    draft: list[str] = field(repr=False)

    def lines(self, size: Size) -> tuple[str, ...]:
        heading = [clipped(f"> {self.question}", size.line, size)] if size.is_tall else []
        return (*heading, *padded(self.reply, _page_rows(size, self.draft)), *self.draft)


def _page_rows(size: Size, draft: Sequence[str]) -> int:
    """Rows for the reply, beside what stands above and below it."""
    return max(size.rows - size.is_tall - len(draft), 1)
