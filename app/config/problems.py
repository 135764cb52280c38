# SPDX-License-Identifier: Apache-2.0
"""What was wrong with a settings file or with a change of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.texts import Text, as_text, listed


@dataclass(frozen=True, slots=True)
class Problem:
    """`place` is a setting (`suggest.count`), a line (`line 12`) or empty; `text` is for the person."""

    place: str
    text: str

    @property
    def told(self) -> Text:
        """Both in one."""
        text = as_text(self.text)
        return Text("{place}: {text}", place=self.place, text=text) if self.place else text

    def __str__(self) -> str:
        return self.told


class SettingsError(Exception):
    """A change was not stored, and nothing was changed. `problems` says why."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(listed([problem.told for problem in self.problems]))
