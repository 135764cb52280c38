# SPDX-License-Identifier: Apache-2.0
"""Texts of which only some make sense: the layouts and personas that there are, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from app.companion.personas import load_personas
from app.config.paths import personas_folder
from app.i18n import Language
from app.settings_window.fields import NOTHING, Choice, FieldKind, FieldSpec
from firmware_bridge.keys.dead_keys import System
from firmware_bridge.keys.layout import SYSTEM_LAYOUT, layout_names, this_system

LAYOUTS: Mapping[str, str] = MappingProxyType(
    {
        "system": "As the system",
        "us": "English (US)",
        "uk": "English (UK)",
        "de": "German",
        "fr": "French",
        "es": "Spanish",
        "it": "Italian",
        "pt-br": "Portuguese (Brazil)",
        "se": "Swedish",
        "no": "Norwegian",
        "dk": "Danish",
        "fi": "Finnish",
        "jis": "Japanese",
        "dvorak": "Dvorak",
        "colemak": "Colemak",
    }
)


def with_offers(field: FieldSpec) -> FieldSpec:
    """`field` as a choice, if it is one of these texts. What the person wrote into the file stays."""
    match field.path[-1]:
        case "layout" | "accept_layout":
            choices = _layouts()
        case "persona":
            choices = _personas()
        case _:
            return field
    nothing = (NOTHING,) if field.is_optional else ()
    return replace(field, kind=FieldKind.CHOICE, choices=(*nothing, *choices))


def _layouts() -> tuple[Choice, ...]:
    names = layout_names()
    if this_system() is System.LINUX:
        names = [SYSTEM_LAYOUT, *names]
    return tuple(Choice(name, LAYOUTS.get(name, name)) for name in names)


def _personas() -> tuple[Choice, ...]:
    """Those of the program, and the person's own; what is wrong with a file, the log says."""
    personas, _ = load_personas(Language.EN, personas_folder())
    return tuple(Choice(key, persona.name) for key, persona in personas.items())
