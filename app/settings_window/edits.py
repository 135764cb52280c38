# SPDX-License-Identifier: Apache-2.0
"""Changing settings: check, save, remember how to go back.

A change holds at once and as a whole: either it is valid and stored, or nothing has changed and the
problem is told beside the field.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from app.config.reasons import reason_of
from app.settings import Settings
from app.settings_window.fields import (
    FieldPath,
    FieldSpec,
    changes_between,
    fields_of,
    value_at,
    with_value,
)
from app.settings_window.ports import SettingsPort, SettingsRefusedError

_MOST_STEPS = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value was not taken; `text` is for the person, through `told`."""

    path: FieldPath
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A step that can be undone; `path` is empty when several fields changed at once.

    A path that leads into a record belongs to a step that is undone as a whole: the record may be gone.
    """

    path: FieldPath
    before: Settings
    after: Settings


Listener = Callable[[], None]


class Edits:
    """The settings in force and the way back. Owned by the window's thread.

    Raises (by the constructor):
        SettingsRefusedError: the settings cannot be read.
    """

    def __init__(self, port: SettingsPort) -> None:
        self._port = port
        loaded = port.load()
        self._settings = loaded.settings
        self.problems = loaded.problems
        """What in the settings file could not be used."""
        self._steps: list[Change] = []
        self._echoes: deque[Settings] = deque(maxlen=_MOST_STEPS)
        self._listeners: list[Listener] = []
        self.fields: tuple[FieldSpec, ...] = fields_of(type(self._settings))
        self._by_path = {field.path: field for field in self.fields}

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def last(self) -> Change | None:
        """The step that `undo` takes back."""
        return self._steps[-1] if self._steps else None

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every change, until `ignore`."""
        self._listeners.append(listener)

    def ignore(self, listener: Listener) -> None:
        """Call `listener` no more."""
        self._listeners.remove(listener)

    def value(self, path: FieldPath) -> object:
        return value_at(self._settings, path)

    def field(self, path: FieldPath) -> FieldSpec:
        """The field at `path`, or the one that holds what stands there."""
        while path not in self._by_path:
            path = path[:-1]
        return self._by_path[path]

    def is_default(self, field: FieldSpec) -> bool:
        return self.value(field.path) == field.default

    def change(self, path: FieldPath, value: object) -> Problem | None:
        """Set one field. The problem, if it was not taken."""
        if value == self.value(path):
            return None
        try:
            wanted = type(self._settings).model_validate(with_value(self._settings, path, value))
        except ValidationError as error:
            return _problem(path, error)
        return self._take(path, wanted)

    def reset(self, field: FieldSpec) -> Problem | None:
        """Set one field to its default."""
        return self.change(field.path, field.default)

    def replace(self, settings: Settings) -> Problem | None:
        """Take other settings as a whole, as one step."""
        return None if settings == self._settings else self._take((), settings)

    def undo(self) -> Problem | None:
        """Take the last step back. What others have changed since then stays."""
        if not self._steps:
            return None
        step = self._steps[-1]
        wanted = step.before
        if step.path in self._by_path:
            value = value_at(step.before, step.path)
            table = with_value(self._settings, step.path, value)
            wanted = type(self._settings).model_validate(table)
        problem = self._store(step.path, wanted)
        if problem is None:
            self._steps.pop()
            self._tell()
        return problem

    def others_changed(self, settings: Settings) -> None:
        """The settings are told anew, after a change by somebody else or as the echo of one from here.

        Echoes of older changes come while newer ones are made: they must not put a control back.
        """
        if settings in self._echoes:
            while self._echoes.popleft() != settings:
                pass
            if self._echoes:
                return
        self._echoes.clear()
        if settings != self._settings:
            self._settings = settings
            self._tell()

    def _take(self, path: FieldPath, wanted: Settings) -> Problem | None:
        before = self._settings
        problem = self._store(path, wanted)
        if problem is None:
            self._steps = [*self._steps[1 - _MOST_STEPS :], Change(path, before, wanted)]
            self._tell()
        return problem

    def _store(self, path: FieldPath, wanted: Settings) -> Problem | None:
        try:
            self._settings = self._port.change(changes_between(self._settings, wanted))
        except SettingsRefusedError as error:
            return Problem(path, str(error))
        self._echoes.append(self._settings)
        return None

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            if listener in self._listeners:  # one may have sent another one away
                listener()


def _problem(path: FieldPath, error: ValidationError) -> Problem:
    first = error.errors(include_url=False, include_input=False)[0]
    return Problem(path, reason_of(first))
