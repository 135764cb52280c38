# SPDX-License-Identifier: Apache-2.0
"""Suggest: the next words of what is being typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.companion.accept import AcceptKey, Typeable
from app.companion.context import Edit, MacroRan
from app.companion.lights import DARK, Cue
from app.companion.macros import typing_macro
from app.companion.modes.base import Desk, Preview, View
from app.companion.modes.candidates import MARK, Shown, candidate_lines, fitting, narrowed
from app.companion.modes.continuation import Continuation
from app.companion.picture import clipped, padded, tail
from app.settings import ModeName
from engine.messages import Complete, Event, Failed, Suggest, SuggestionsReady
from firmware_bridge.display.spelling import is_plain, to_ascii
from firmware_bridge.keys.text_events import Escape, TextTyped
from firmware_bridge.protocol.messages import Status

_STEM = re.compile(r"\w*\Z")
_LONGEST_WORD = 64  # characters
# Characters around the cursor whose letters decide between text and pixels: more than a display shows, so that
# it does not change to and fro with every accent that comes and goes.
_NEAR = 256
# The light says "thinking" only after this time, so that it stays calm while answers follow the keys.
_PATIENCE_S = 0.5
# Phrases are asked for when no key came for so long: about the time between keys at 60 words a minute.
_REST_S = 0.2
# Requests without an answer. A stuck engine is not asked for more: it refuses at 256.
_MOST_OPEN = 8


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open request: the whole text behind it, when its last key was pressed, and words in a phrase."""

    text: str = field(repr=False)
    changed_at: float
    words: int


class SuggestMode:
    """Asks for each new text, at most once an interval; for phrases, when the person rests.

    The engine finishes the request that runs if the text only grew since, and gives up those that
    wait; so nothing is queued. Of an answer to an earlier text, the candidates that begin with what was
    typed since are shown, without their probability. They are as right as ever: only likelier ones
    may come with the answer to the newest text.
    """

    name = ModeName.SUGGEST

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._accept = AcceptKey(desk.settings)
        self._shown: tuple[Shown, ...] = ()
        self._figures = ""
        self._pending: int | None = None
        self._open: dict[int, _Asked | None] = {}  # None: the answer is not wanted any more
        self._is_owed = False
        self._due: float | None = None
        self._phrases_due: float | None = None
        self._sent_at = float("-inf")
        self._changed_at = 0.0
        self._cue: Cue | None = None
        self._continuation = Continuation(desk)

    @property
    def deadline(self) -> float | None:
        if self._due is not None:
            return self._due
        if self._continuation.is_shown:
            return self._continuation.deadline
        if self._pending is not None and self._cue is not Cue.THINKING:
            return self._changed_at + _PATIENCE_S
        return self._phrases_due

    @property
    def typed(self) -> str:
        return self._desk.context.text

    @property
    def reply(self) -> str:
        if self._continuation.is_shown:
            return self._continuation.text
        return self._shown[0].text if self._shown else ""

    @property
    def question(self) -> Complete | None:
        """How the text goes on after the best candidate, once that is known."""
        return self._continuation.question(self._best) if self._best else None

    @property
    def preview(self) -> Preview | None:
        if not self._best or self._continuation.is_shown:
            return None
        return self._continuation.preview(self._stem, self._best)

    @property
    def needs_pixels(self) -> bool:
        """The accept key types from text frames only, letter by letter as they stand there. So with it on,
        accents count in what it would type, and all else is spelled without where it can be.
        """
        if self._continuation.is_shown:
            return self._continuation.needs_pixels
        context, shown = self._desk.context, self._shown
        texts = [context.text[-_NEAR:], context.after[:_NEAR], *(each.text for each in shown)]
        if self._accept.is_on and (not shown or is_plain(shown[0].text)):
            return any(to_ascii(text).lost for text in texts if not text.isascii())
        return not all(map(is_plain, texts))

    def enter(self) -> None:
        self._ask_soon()

    def leave(self) -> None:
        self._continuation.stop()
        self._desk.cancel(self._pending)
        for request, asked in self._open.items():
            if asked is not None and asked.words > 1:
                self._desk.cancel(request)
        self._open = dict.fromkeys(self._open)
        self._clear()
        self._due = None
        self._phrases_due = None
        self._is_owed = False

    def edited(self, edit: Edit, at: float) -> None:
        if isinstance(edit, Escape):
            self._continuation.stop()
        if not self._desk.context.apply(edit):
            return
        self._continuation.stop()
        self._changed_at = at
        self._shown = narrowed(self._shown, edit.text) if isinstance(edit, TextTyped) else ()
        if isinstance(edit, TextTyped):
            self._desk.personal.typed(self._desk.context.text)
        self._ask_soon()

    def commit(self) -> None:
        """Show how the text may go on at length; ask again, if nothing is known of that."""
        self._changed_at = self._desk.now()
        if self._best:
            self._phrases_due = None
            self._continuation.ask(self._stem, self._best)
        else:
            self._ask_soon()

    def cancel(self) -> None:
        if not self._continuation.stop():
            self.leave()

    def macro(self, number: int) -> None:
        """What a macro types is unknown."""
        if (name := typing_macro(number, self._desk.settings.macros)) is not None:
            self.edited(MacroRan(name), self._desk.now())

    def refusal(self) -> str:
        """Why the accept key types nothing now; empty if it may type."""
        tr, shown = self._desk.tr, self._fitted
        if not self._accept.is_on:
            return tr("accept key is off")
        if not shown or self._continuation.is_shown:
            return tr("nothing to type")
        view = self.view()
        if view.typeable is None or self._desk.size.has_pixels:
            return tr("cannot be typed")
        return "" if view.typeable.stands_in(view.lines) else tr("cannot be typed")

    def answered(self, event: Event) -> None:
        self._continuation.answered(event)
        match event:
            case SuggestionsReady(request=request) | Failed(request=request):
                asked = self._open.pop(request, None)
                if request == self._pending:
                    self._clear()
                if asked is not None and asked.words > 1 and asked.text != self._desk.context.text:
                    asked = None
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
        self._continuation.engine_left()
        self._open.clear()
        self._clear()

    def wake(self) -> None:
        self._continuation.wake()
        if self._due is not None and self._due <= self._desk.now():
            self._due = None
            self._ask()
        if self._pending is not None and self._changed_at + _PATIENCE_S <= self._desk.now():
            self._cue = Cue.THINKING
        if self._phrases_due is not None and self._phrases_due <= self._desk.now():
            self._phrases_due = None
            self._request(self._desk.settings.suggest.words)

    def resized(self) -> None:
        self._continuation.resized()

    def wipe(self) -> None:
        self.leave()
        self._figures = ""

    def view(self) -> View:
        if self._continuation.is_shown:
            return self._continuation.view()
        size = self._desk.size
        context = self._desk.context
        shown = self._fitted
        words = self._lines(shown)
        lines = tail(context.text, size, 2 if size.is_tall else 1, context.after)
        if size.is_tall:
            lines = [*padded(lines, 2), "-" * size.columns]
        first = len(lines)
        if size.is_tall:
            lines += [*padded(words, size.rows - 4), self._figures]
        elif size.rows > len(words):
            lines += words
        else:
            whole = [candidate.whole(self._stem).strip() for candidate in shown]
            lines.append(clipped("  ".join(whole), size.columns, size))
        waiting = self._pending is not None or self._due is not None or self._is_owed
        return View(
            tuple(lines),
            Status.THINKING if waiting else Status.LISTENING,
            DARK if self._cue is None else self._desk.palette[self._cue],
            title=self._figures,
            typeable=self._typeable(shown, first),
        )

    def _ask_soon(self) -> None:
        """Ask for the text as it is now: at once, or when the interval since the last request ends.

        Not inside a word: the model sees only what stands before the cursor.
        """
        self._phrases_due = None
        if not self._desk.context.text.strip() or self._desk.context.is_inside_word:
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
        if not self._is_owed:
            self._pending = self._request(words=1)
            self._sent_at = self._desk.now()

    def _request(self, words: int) -> int | None:
        text = self._desk.context.text
        count = self._desk.settings.suggest.count
        request = self._desk.request(
            lambda n: Suggest(request=n, text=text, count=count, words=words)
        )
        if request is not None:
            self._open[request] = _Asked(text, self._changed_at, words)
        return request

    def _take(self, answer: SuggestionsReady, asked: _Asked) -> None:
        text = self._desk.context.text
        if not text.startswith(asked.text) or self._desk.context.is_inside_word:
            return  # it answers a text that is no more
        found = [(c.text, c.probability) for c in answer.candidates]
        since = text[len(asked.text) :]
        if since:
            self._shown = narrowed([Shown(*pair) for pair in found], since)
        else:
            count = self._desk.settings.suggest.count
            mixed = self._desk.personal.mixed(found, self._stem, count)
            self._shown = tuple(Shown(*pair) for pair in mixed)
        if self._pending is None:
            self._cue = Cue.READY if self._shown else None
        if asked.words > 1:
            return
        if self._shown and not since and self._desk.settings.suggest.words > 1:
            self._phrases_due = max(self._desk.now(), self._changed_at + _REST_S)
        total = answer.reused + answer.computed
        self._figures = self._desk.tr("{ms:.0f} ms {computed}/{total} tokens").format(
            ms=answer.milliseconds, computed=answer.computed, total=total
        )
        self._desk.measured(self.name, answer.request, asked.changed_at)

    @property
    def _best(self) -> str:
        """The first candidate for the text as it is now; empty while none is known."""
        is_waiting = self._pending is not None or self._due is not None or self._is_owed
        is_known = bool(self._shown) and self._shown[0].probability is not None
        return self._shown[0].text if is_known and not is_waiting else ""

    @property
    def _stem(self) -> str:
        """The word that is being typed, as far as it is there."""
        stem: str = _STEM.findall(self._desk.context.text[-_LONGEST_WORD:])[0]
        return stem

    @property
    def _fitted(self) -> tuple[Shown, ...]:
        """The candidates as this display has room for them."""
        margin = len(MARK) if self._accept.is_on else 0
        return fitting(self._shown, self._stem, self._desk.size, margin)

    def _lines(self, shown: Sequence[Shown]) -> list[str]:
        """The candidates; with the accept key on, the one that it types is marked."""
        size = self._desk.size
        marks = [" "] * len(shown) if self._accept.is_on else []
        if shown and not size.has_pixels and self._accept.may_type(shown[0].text):
            marks[0] = MARK
        return candidate_lines(shown, self._stem, size, marks)

    def _typeable(self, shown: Sequence[Shown], row: int) -> Typeable | None:
        """The first candidate, less what of its word is there already."""
        if not shown or not self._accept.may_type(shown[0].text):
            return None
        text = shown[0].text
        word = self._desk.size.spelled(shown[0].whole(self._stem))  # a sharp s takes two columns
        column = len(MARK) + len(word) - len(text)
        return Typeable(row, column, text)
