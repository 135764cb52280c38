# SPDX-License-Identifier: Apache-2.0
"""React: one of a few moods, chosen by one token, shown as a face and a light."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.companion.context import Edit, MacroRan, TextUnknown
from app.companion.lights import DARK, with_intensity
from app.companion.macros import macro_name, typing_macro
from app.companion.modes.base import Desk, View
from app.companion.modes.moods import FACE_ROWS, Mood
from app.companion.modes.rhythm import Rhythm
from app.companion.picture import padded, wrapped
from app.companion.prompts import load_react_prompt
from app.companion.words import mode_name
from app.settings import ModeName
from engine.messages import Choose, Event, Failed, LabelChosen, Turn
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.keys.text_events import Backspace, Enter
from firmware_bridge.protocol.messages import Status

_LINE_CHARS = 80  # of the last line go to the model


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a mood is asked for: a line, a pause or the ask key, or a macro key with its name."""

    at: float
    macro: str = ""


class ReactMode:
    """Asks after a line, a pause, a macro key or the ask key.

    One request at a time, and none before the last change is `interval_s` old: so the face and the
    light change at most once in `interval_s`. Of the causes that come meanwhile the newest is kept.
    """

    name = ModeName.REACT

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._title = mode_name(self.name, desk.tr)
        self._hint = desk.tr("Type a line or\npress a macro key.")
        self._prompt = load_react_prompt(desk.settings.language)
        self._moods = desk.presets.moods
        # One margin for all of them, so that the head stays where it is when the mood changes.
        self._face_columns = max(len(row) for mood in self._moods.values() for row in mood.face)
        self._rhythm = Rhythm()
        self._mood: Mood | None = None
        self._share = 0.0
        self._changed_at = float("-inf")
        self._cause: _Cause | None = None
        self._asked_since = 0.0
        self._pause_at: float | None = None
        self._pending: int | None = None

    @property
    def deadline(self) -> float | None:
        times = [] if self._pause_at is None else [self._pause_at]
        if self._cause is not None and self._pending is None and self._desk.engine_ready:
            times.append(self._changed_at + self._desk.settings.react.interval_s)
        return min(times, default=None)

    @property
    def typed(self) -> str:
        return self._desk.context.text

    @property
    def reply(self) -> str:
        return self._mood.label if self._mood else ""

    @property
    def question(self) -> None:
        """A mood takes one token: there is nothing to compute ahead."""
        return None

    @property
    def preview(self) -> None:
        """No reply is ready."""
        return None

    @property
    def needs_pixels(self) -> bool:
        """A face is drawn where that can be; the hint may be written in hanzi."""
        return self._mood is not None or not is_plain(self._hint)

    def enter(self) -> None:
        """The next cause brings the first mood."""

    def leave(self) -> None:
        self._desk.cancel(self._pending)
        self._pending = None
        self._cause = None
        self._pause_at = None

    def edited(self, edit: Edit, at: float) -> None:
        self._desk.context.apply(edit)
        if isinstance(edit, TextUnknown):
            return  # nobody typed
        self._rhythm.add(at, isinstance(edit, Backspace))
        self._pause_at = at + self._desk.settings.react.pause_s
        if isinstance(edit, Enter):
            self._react_to(_Cause(at))

    def commit(self) -> None:
        self._react_to(_Cause(self._desk.now()))

    def cancel(self) -> None:
        """Give up the request under way and put the face away."""
        self.leave()
        self._mood = None

    def macro(self, number: int) -> None:
        """Its name stands in the context from now on, and what it typed there is unknown."""
        names = self._desk.settings.macros
        if (typing := typing_macro(number, names)) is not None:
            self._desk.context.apply(MacroRan(typing))
        self._react_to(_Cause(self._desk.now(), macro_name(number, names)))

    def answered(self, event: Event) -> None:
        match event:
            case LabelChosen(request=request) if request == self._pending:
                self._pending = None
                if not event.cancelled:
                    self._mood = self._moods[event.label]
                    self._share = event.probability
                    self._changed_at = self._desk.now()
                    self._desk.measured(self.name, request, self._asked_since)
            case Failed(request=request) if request == self._pending:
                self._pending = None

    def engine_came(self) -> None:
        self._ask_if_due()

    def engine_left(self) -> None:
        self._pending = None

    def wake(self) -> None:
        now = self._desk.now()
        if self._pause_at is not None and self._pause_at <= now:
            self._pause_at = None
            self._react_to(_Cause(now))
        self._ask_if_due()

    def resized(self) -> None:
        """The view is drawn for the present size."""

    def wipe(self) -> None:
        self.cancel()
        self._rhythm.wipe()

    def view(self) -> View:
        status = Status.LISTENING if self._pending is None else Status.THINKING
        size = self._desk.size
        if self._mood is None:
            title = [] if size.has_pixels else [self._title]
            return View((*title, *wrapped(self._hint, size)), status, DARK)
        lights = with_intensity(self._mood.lights, self._share)
        name = (self._mood.name, f"{self._share:.0%}")
        if size.has_pixels:
            return View(name, status, lights, art=self._mood.art)
        margin = " " * (max(size.columns - 1 - self._face_columns, 0) // 2)
        lines = padded([margin + row for row in self._mood.face], FACE_ROWS)
        if size.is_tall:
            lines = [self._title, *lines, "", " ".join(name)]
        return View(tuple(lines), status, lights)

    def _react_to(self, cause: _Cause) -> None:
        self._cause = cause
        self._ask_if_due()

    def _ask_if_due(self) -> None:
        interval = self._desk.settings.react.interval_s
        if self._cause is None or self._pending is not None:
            return
        if self._desk.now() < self._changed_at + interval:
            return
        turns = self._turns(self._cause)
        labels = list(self._moods)
        self._pending = self._desk.request(lambda n: Choose(request=n, turns=turns, labels=labels))
        if self._pending is not None:
            self._asked_since = self._cause.at
            self._cause = None

    def _examples(self) -> Iterator[tuple[str, str, str]]:
        """Lines with the label that the model is to answer, those of the moods there are."""
        yield from (example for example in self._prompt.examples if example[2] in self._moods)
        for label, mood in self._moods.items():
            yield from ((line, manner, label) for line, manner in mood.examples)

    def _turns(self, cause: _Cause) -> list[Turn]:
        prompt = self._prompt
        turns = [Turn(role="system", content=prompt.system)]
        for line, manner, label in self._examples():
            turns.append(Turn(role="user", content=prompt.user.format(line=line, manner=manner)))
            turns.append(Turn(role="assistant", content=label))
        line = self._desk.context.last_line[-_LINE_CHARS:] or prompt.silence
        manner = self._rhythm.describe(prompt.rhythm, self._desk.now())
        if cause.macro:
            manner = prompt.macro.format(rhythm=manner, name=cause.macro)
        turns.append(Turn(role="user", content=prompt.user.format(line=line, manner=manner)))
        return turns
