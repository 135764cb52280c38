# SPDX-License-Identifier: Apache-2.0
"""Personas and moods: those of the program, and the person's own over them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from app.companion.modes.moods import Mood, MoodsError, load_moods, load_own_moods
from app.companion.own_files import OwnFiles
from app.companion.personas import (
    DEFAULT_PERSONA,
    Persona,
    PersonaError,
    load_personas,
    shipped_personas,
)
from app.i18n import Language

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Presets:
    """`problems` say what is wrong with the person's own files; the shipped ones hold then."""

    personas: Mapping[str, Persona]
    moods: Mapping[str, Mood]
    problems: tuple[PersonaError | MoodsError, ...] = ()

    def persona(self, key: str) -> Persona:
        """The persona `key`; the default one if there is none of that name (its file was removed)."""
        return self.personas.get(key) or self.personas[DEFAULT_PERSONA]


def load_presets(language: Language, own: OwnFiles) -> Presets:
    """What is there now. Problems are logged."""
    problems: tuple[PersonaError | MoodsError, ...] = ()
    if own.personas is None:
        personas = shipped_personas(language)
    else:
        personas, problems = load_personas(language, own.personas)
    moods = load_moods(language)
    if own.moods is not None:
        try:
            moods = load_own_moods(own.moods, language) or moods
        except MoodsError as error:
            problems = (*problems, error)
    for problem in problems:
        _log.warning("%s", problem)
    return Presets(personas, moods, problems)
