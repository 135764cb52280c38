# SPDX-License-Identifier: Apache-2.0
"""Settings that name something: whether it is there, and whether it can be used.

A settings model knows what a value may look like. Whether there is such a persona or model is for the disk to
tell, so it is looked up when a setting is changed and when the file is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from app.companion.personas import DEFAULT_PERSONA, load_personas
from app.config.paths import personas_folder
from app.config.problems import Problem
from app.config.store import SettingsStore
from app.hotkey.bindings import bindings
from app.models.errors import ModelStoreError
from app.models.store import ModelStore
from app.settings import Settings
from engine.texts import Text


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to choose from."""

    models: ModelStore = field(default_factory=ModelStore)
    personas: Path = field(default_factory=personas_folder)

    def __call__(self, settings: Settings) -> list[Problem]:
        """A problem for each setting that names nothing that can be used."""
        return [
            *self._of_personas(settings),
            *self._of_the_model(settings),
            *(Problem(f"hotkeys.{n}", text) for n, text in bindings(settings.hotkeys)[1].items()),
        ]

    def _of_personas(self, settings: Settings) -> list[Problem]:
        chosen = {"chat.persona": settings.chat.persona} | {
            f"profiles.{name}.persona": profile.persona
            for name, profile in settings.profiles.items()
            if profile.persona is not None
        }
        if set(chosen.values()) == {DEFAULT_PERSONA}:
            return []  # the files need not be read
        known = load_personas(settings.language, self.personas)[0]
        return [
            Problem(
                place,
                Text(
                    "there is no persona {persona}; there are {known}",
                    persona=repr(persona),
                    known=", ".join(known),
                ),
            )
            for place, persona in chosen.items()
            if persona not in known
        ]

    def _of_the_model(self, settings: Settings) -> list[Problem]:
        if settings.model is None:
            return []
        try:
            self.models.find(str(settings.model))
        except ModelStoreError as error:
            return [Problem("model", str(error))]
        return []


def settings_store(path: Path | None = None) -> SettingsStore:
    """The settings of this person, with what they name looked up."""
    return SettingsStore(path, Choices())
