# SPDX-License-Identifier: Apache-2.0
"""How a text may go on at length: the best candidate, and what the model writes after it."""

from __future__ import annotations

from collections.abc import Sequence

from app.companion.answer import Answer, Progress
from app.companion.lights import Cue
from app.companion.modes.base import Desk, Preview, View
from app.companion.pager import Pager
from app.companion.picture import Size, padded, tail, wrapped
from app.settings import ModeName
from engine.messages import Complete, Event
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.protocol.messages import Status

_MOST_TOKENS = 24
_NEAR = 256  # characters before the cursor whose letters count, as with the candidates


class Continuation:
    """Shown on the ask key until the person types on. A candidate that is shown is its ready beginning."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._answer = Answer(desk, ModeName.SUGGEST)
        self._pager = Pager(desk.settings.chat.reading_speed)
        self._stem = ""

    @property
    def is_shown(self) -> bool:
        """Whether it stands in the place of the candidates."""
        return self._answer.progress is not Progress.NONE

    @property
    def text(self) -> str:
        """What was written so far, to be appended as it is."""
        return self._answer.shown

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called."""
        times = (self._answer.deadline, self._pager.deadline)
        return min((time for time in times if time is not None), default=None)

    @property
    def needs_pixels(self) -> bool:
        """Whether the firmware's own font cannot show it."""
        return not self._is_plain(self._answer.shown)

    def question(self, best: str) -> Complete | None:
        """What asks for the text after the candidate `best`."""
        if self.is_shown:
            return None
        text = self._desk.context.text + best
        return Complete(request=0, text=text, max_tokens=_MOST_TOKENS)

    def preview(self, stem: str, best: str) -> Preview:
        """What `ask` shows at once."""
        ready = self._desk.ready.expected
        text = best + (ready.text if ready is not None else "")
        is_whole = ready is not None and ready.is_whole

        def view(size: Size) -> View:
            lines = wrapped(stem + text, size)
            rows = _page_rows(size)
            return self._view(size, lines[:rows], len(lines) > rows, is_whole)

        return Preview(not self._is_plain(text), view)

    def ask(self, stem: str, best: str) -> None:
        """Show `best` after the word's beginning `stem`, and what comes after it."""
        question = self.question(best)
        if question is None:
            self._pager.turn(self._desk.now())
            return
        self._stem = stem
        self._answer.ask(question, self._desk.now(), seen=best)
        self._pager.start(self._desk.now())
        self._fill()

    def stop(self) -> bool:
        """Give it up; whether it was shown."""
        was_shown = self.is_shown
        self._answer.stop()
        self._stem = ""
        self._pager.start(self._desk.now())
        return was_shown

    def answered(self, event: Event) -> None:
        """An event of the engine."""
        if self._answer.answered(event):
            self._fill()

    def engine_left(self) -> None:
        """What was shown of it stays no longer than the engine."""
        if self._answer.engine_left():
            self.stop()

    def wake(self) -> None:
        """The deadline has passed."""
        if self._answer.wake():
            self.stop()
        self._pager.turn_if_due(self._desk.now())

    def resized(self) -> None:
        """The display has another size."""
        self._fill()

    def view(self) -> View:
        """A page of it."""
        is_whole = self._answer.progress is Progress.WHOLE
        return self._view(self._desk.size, self._pager.lines, self._pager.has_more, is_whole)

    def _is_plain(self, text: str) -> bool:
        return is_plain(text) and is_plain(self._desk.context.text[-_NEAR:])

    def _fill(self) -> None:
        size = self._desk.size
        lines = wrapped(self._stem + self._answer.shown, size)
        self._pager.update(lines, _page_rows(size), self._desk.now())

    def _view(self, size: Size, page: Sequence[str], has_more: bool, is_whole: bool) -> View:
        context = self._desk.context
        lines = (*tail(context.text, size, 1, context.after), *padded(page, _page_rows(size)))
        status = Status.LISTENING if is_whole else Status.STREAMING
        lights = self._desk.palette[Cue.READY if is_whole else Cue.STREAMING]
        return View(lines, status, lights, has_more=has_more)


def _page_rows(size: Size) -> int:
    """Rows below the one that shows the text before it."""
    return max(size.rows - 1, 1)
