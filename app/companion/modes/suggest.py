# SPDX-License-Identifier: Apache-2.0
"""Suggest: the next words of what is being typed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from app.companion.context import Edit
from app.companion.lights import DARK, Cue
from app.companion.modes.base import Desk, View
from app.companion.picture import clipped, filled, padded, tail
from app.settings import ModeName
from engine.messages import Event, Failed, Suggest, SuggestionsReady
from firmware_bridge.display.spelling import to_ascii
from firmware_bridge.keys.text_events import TextTyped
from firmware_bridge.protocol.messages import Status

_STEM = re.compile(r"\w*\Z")
_LONGEST_WORD = 64  # characters
_BAR = 5  # characters of the longest probability bar
_FIGURE = 5  # " 100%"
_LEAST_ROOM = (
    8  # columns that a word keeps beside the figure; on a narrower display it has no figure
)
_SEEN = 64  # characters at the end of the text that a display may show
# The light says "thinking" only after this time, so that it stays calm while answers follow the keys.
_PATIENCE_S = 0.5
# Requests without an answer. A stuck engine is not asked for more: it refuses at 256.
_MOST_OPEN = 8


@dataclass(frozen=True, slots=True)
class _Shown:
    """A continuation of the text as it is now; `probability` is None once typing has narrowed it."""

    text: str = field(repr=False)
    probability: float | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open request: the whole text behind it, and when its last key was pressed."""

    text: str = field(repr=False)
    changed_at: float


class SuggestMode:
    """Asks for each new text, at most once an interval.

    The engine finishes the request that runs if the text only grew since, and gives up those that
    wait; so nothing is queued. Of an answer to an earlier text, the candidates that begin with what was
    typed since are shown, without their probability. They are as right as ever: only likelier ones
    may come with the answer to the newest text.
    """

    name = ModeName.SUGGEST

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._shown: tuple[_Shown, ...] = ()
        self._figures = ""
        self._pending: int | None = None
        self._open: dict[int, _Asked | None] = {}  # None: the answer is not wanted any more
        self._is_owed = False
        self._due: float | None = None
        self._sent_at = float("-inf")
        self._changed_at = 0.0
        self._cue: Cue | None = None

    @property
    def deadline(self) -> float | None:
        if self._due is not None:
            return self._due
        if self._pending is not None and self._cue is not Cue.THINKING:
            return self._changed_at + _PATIENCE_S
        return None

    @property
    def typed(self) -> str:
        return self._desk.context.text

    @property
    def reply(self) -> str:
        return self._shown[0].text if self._shown else ""

    @property
    def question(self) -> None:
        """The candidates are shown as soon as they are there."""
        return None

    @property
    def needs_pixels(self) -> bool:
        """Accents do not count: the accept key types from text frames only."""
        texts = (self._desk.context.text[-_SEEN:], *(shown.text for shown in self._shown))
        return any(to_ascii(text).lost for text in texts if not text.isascii())

    def enter(self) -> None:
        self._ask_soon()

    def leave(self) -> None:
        self._desk.cancel(self._pending)
        self._open = dict.fromkeys(self._open)
        self._clear()
        self._due = None
        self._is_owed = False

    def edited(self, edit: Edit, at: float) -> None:
        if not self._desk.context.apply(edit):
            return
        self._changed_at = at
        self._shown = _narrowed(self._shown, edit.text) if isinstance(edit, TextTyped) else ()
        self._ask_soon()

    def commit(self) -> None:
        self._changed_at = self._desk.now()
        self._ask_soon()

    def cancel(self) -> None:
        self.leave()

    def macro(self, number: int) -> None:
        """Macro keys say nothing about the text."""

    def answered(self, event: Event) -> None:
        match event:
            case SuggestionsReady(request=request) | Failed(request=request):
                asked = self._open.pop(request, None)
                if request == self._pending:
                    self._clear()
                if (
                    isinstance(event, SuggestionsReady)
                    and not event.cancelled
                    and asked is not None
                ):
                    self._take(event, asked)
                if self._is_owed:
                    self._ask_soon()

    def engine_came(self) -> None:
        self._ask_soon()

    def engine_left(self) -> None:
        self._open.clear()
        self._clear()

    def wake(self) -> None:
        if self._due is not None and self._due <= self._desk.now():
            self._due = None
            self._ask()
        if self._pending is not None and self._changed_at + _PATIENCE_S <= self._desk.now():
            self._cue = Cue.THINKING

    def resized(self) -> None:
        """The view is drawn for the present size."""

    def wipe(self) -> None:
        self.leave()
        self._figures = ""

    def view(self) -> View:
        size = self._desk.size
        typed = self._desk.context.text
        words = self._words()
        if size.is_tall:
            lines = [*padded(tail(typed, size, 2), 2), "-" * size.columns]
            lines += [*padded(words, size.rows - 4), self._figures]
        elif size.rows > len(words):
            lines = [*tail(typed, size, 1), *words]
        else:
            lines = [*tail(typed, size, 1), clipped("  ".join(self._whole()), size.columns, size)]
        waiting = self._pending is not None or self._due is not None or self._is_owed
        return View(
            tuple(lines),
            Status.THINKING if waiting else Status.LISTENING,
            DARK if self._cue is None else self._desk.palette[self._cue],
            title=self._figures,
        )

    def _ask_soon(self) -> None:
        """Ask for the text as it is now: at once, or when the interval since the last request ends."""
        if not self._desk.context.text.strip():
            self.leave()
            self._figures = ""
            return
        self._pending = None
        self._due = max(self._desk.now(), self._sent_at + self._desk.settings.suggest.interval_s)
        self.wake()

    def _clear(self) -> None:
        """Wait for nothing and show no candidates."""
        self._pending = None
        self._shown = ()
        self._cue = None

    def _ask(self) -> None:
        self._is_owed = len(self._open) >= _MOST_OPEN
        if self._is_owed:
            return
        text = self._desk.context.text
        count = self._desk.settings.suggest.count
        self._pending = self._desk.request(lambda n: Suggest(request=n, text=text, count=count))
        if self._pending is not None:
            self._open[self._pending] = _Asked(text, self._changed_at)
        self._sent_at = self._desk.now()

    def _take(self, answer: SuggestionsReady, asked: _Asked) -> None:
        text = self._desk.context.text
        if not text.startswith(asked.text):
            return  # it answers a text that is no more
        shown = tuple(_Shown(c.text, c.probability) for c in answer.candidates)
        since = text[len(asked.text) :]
        self._shown = _narrowed(shown, since) if since else shown
        if self._pending is None:
            self._cue = Cue.READY if self._shown else None
        total = answer.reused + answer.computed
        self._figures = self._desk.tr("{ms:.0f} ms {computed}/{total} tokens").format(
            ms=answer.milliseconds, computed=answer.computed, total=total
        )
        self._desk.measured(self.name, answer.request, asked.changed_at)

    def _whole(self) -> list[str]:
        """The candidates as whole words."""
        stem = _STEM.findall(self._desk.context.text[-_LONGEST_WORD:])[0]
        return [(s.text if s.text[:1].isspace() else stem + s.text).strip() for s in self._shown]

    def _words(self) -> list[str]:
        """One line per candidate: the whole word, a bar where there is room, the percentage."""
        size = self._desk.size
        figure_columns = _FIGURE if size.columns - _FIGURE >= _LEAST_ROOM else 0
        room = size.columns - figure_columns
        words = [clipped(word, room, size) for word in self._whole()]
        bar = _BAR if max(map(size.width, words), default=0) + 1 + _BAR <= room else 0
        lines = []
        for word, shown in zip(words, self._shown, strict=True):
            share = shown.probability
            figure = "" if share is None or not figure_columns else f"{share:{_FIGURE}.0%}"
            strip = "" if share is None else "=" * round(share * bar)
            lines.append(f"{filled(word, room - bar, size)}{strip:<{bar}}{figure}")
        return lines


def _narrowed(shown: tuple[_Shown, ...], typed: str) -> tuple[_Shown, ...]:
    """The candidates that `typed` has begun and not finished, less what was typed."""
    return tuple(
        _Shown(s.text[len(typed) :], None)
        for s in shown
        if s.text.startswith(typed) and s.text != typed
    )
