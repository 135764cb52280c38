# SPDX-License-Identifier: Apache-2.0
"""The settings file: read whatever is in it, changed without losing what a person wrote into it.

Only what somebody has set stands in the file; everything else follows the defaults of this version.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.config import salvage
from app.config.atomic import write_atomically
from app.config.migrations import SCHEMA_VERSION, VERSION_KEY, migrate, version_of
from app.config.paths import settings_file
from app.config.problems import Problem, SettingsError
from app.settings import Settings
from engine.texts import Text, system_reason

Check = Callable[[Settings], Sequence[Problem]]
Changes = Mapping[str, Any]
"""Part of the tree as plain JSON values: `{"suggest": {"count": 2}}`. None sets the default again."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file gave. `backup` is the copy of a file that had problems."""

    settings: Settings
    problems: tuple[Problem, ...] = ()
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class _Content:
    text: str
    data: dict[str, Any]
    loaded: Loaded
    is_newer: bool


class SettingsStore:
    """One settings file. Any thread may call; changes of one process come one after the other."""

    def __init__(self, path: Path | None = None, check: Check = lambda _: ()) -> None:
        """`check` finds what settings name and is not there, see app.choices."""
        self.path = path or settings_file()
        self._check = check
        self._lock = threading.Lock()

    def load(self) -> Loaded:
        """The settings; never raises for what stands in the file. A file with problems is copied beside it."""
        with self._lock:
            loaded = self._read().loaded
            return replace(loaded, problems=(*loaded.problems, *self._check(loaded.settings)))

    def change(self, changes: Changes) -> Settings:
        """Store part of the settings; comments and order of the file stay.

        Raises:
            SettingsError: a value is not allowed, the file was written by a newer Thock, or it cannot be
                written. Nothing was changed.
        """
        with self._lock:
            content = self._read()
            if content.is_newer:
                raise SettingsError(
                    [
                        Problem(
                            "",
                            Text(
                                "{path} was written by a newer Thock; use that, or move it.",
                                path=self.path,
                            ),
                        )
                    ]
                )
            data = merged(content.data, changes)
            try:
                settings = Settings.model_validate(data)
            except ValidationError as error:
                raise SettingsError(
                    Problem(".".join(place), text) for place, text in salvage.reasons(error)
                ) from None
            before = self._check(content.loaded.settings)
            if wrong := [problem for problem in self._check(settings) if problem not in before]:
                raise SettingsError(wrong)
            self._write(content.text, _as_stored(settings.model_dump(mode="json"), data))
            return settings

    def _read(self) -> _Content:
        try:
            with self.path.open("rb") as file:
                raw = file.read(salvage.MAX_BYTES + 1)
        except FileNotFoundError:
            return _Content("", {}, Loaded(Settings()), is_newer=False)
        except OSError as error:
            problem = Problem(
                "",
                Text("{path} cannot be read: {error}.", path=self.path, error=system_reason(error)),
            )
            return _Content("", {}, Loaded(Settings(), (problem,)), is_newer=False)
        text, table, problems = salvage.parse_lines(raw)
        is_newer = version_of(table) > SCHEMA_VERSION
        settings, data, more = salvage.valid_part(migrate(table))
        problems += more
        if is_newer:
            problems.append(Problem("", "The file was written by a newer Thock and is only read."))
        backup = self._back_up(raw) if problems else None
        return _Content(text, data, Loaded(settings, tuple(problems), backup), is_newer)

    def _back_up(self, raw: bytes) -> Path | None:
        """A copy under a name that follows from the content, so that each start makes the same one."""
        name = f"{self.path.stem}.broken-{hashlib.sha256(raw).hexdigest()[:8]}{self.path.suffix}"
        backup = self.path.with_name(name)
        try:
            if not backup.exists():
                write_atomically(backup, self.path.read_bytes())  # all of it, also what is too long
        except OSError:
            return None  # a full disk or a read-only folder; the problems are told all the same
        return backup

    def _write(self, text: str, data: dict[str, Any]) -> None:
        from app.config.document import updated  # tomlkit is needed only to write

        try:
            write_atomically(self.path, updated(text, {VERSION_KEY: SCHEMA_VERSION, **data}))
        except OSError as error:
            reason = system_reason(error)
            raise SettingsError(
                [
                    Problem(
                        "",
                        Text("{path} cannot be written: {reason}.", path=self.path, reason=reason),
                    )
                ]
            ) from None


def _as_stored(values: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Of `values`, those that `data` names: in the types of the model, whatever the change came as."""
    return {
        key: _as_stored(values[key], inner) if isinstance(inner, Mapping) else values[key]
        for key, inner in data.items()
    }


def merged(data: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """`data` with `changes` in it; tables are merged, None takes a key out, and empty tables go."""
    result = dict(data)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            inner = merged(old if isinstance(old, Mapping) else {}, value)
            result[key] = inner
            if not inner:
                del result[key]
        else:
            result[key] = value
    return result
