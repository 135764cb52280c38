# SPDX-License-Identifier: Apache-2.0
"""Every text that the settings window shows: those in its code, and those that the models carry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import app.settings_window
from app.companion.personas import shipped_personas
from app.i18n import Language
from app.settings import Settings
from app.settings_window.fields import FieldSpec, fields_of
from app.settings_window.labels import english_label
from app.settings_window.offers import LAYOUTS, with_offers

PACKAGE = Path(app.settings_window.__file__).parent


def texts_in_code() -> set[str]:
    """What stands in `tr("…")`, in f-strings too."""
    return {
        argument.value
        for file in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute)
        if (call.func.id if isinstance(call.func, ast.Name) else call.func.attr) == "tr"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def texts_of_models() -> set[str]:
    """Titles, help, units and choices of every setting, and the names of what can be chosen."""
    texts = set(LAYOUTS.values())
    texts |= {persona.name for persona in shipped_personas(Language.EN).values()}
    for field in _all_fields():
        texts |= {field.title, field.description, field.unit, field.group}
        texts |= {
            english_label(choice)
            for choice in field.choices
            if type(choice.value) not in (Language, int)  # the same in every language
        }
    return texts - {""}


def every_text() -> set[str]:
    """What the catalog holds."""
    return texts_in_code() | texts_of_models()


def _all_fields() -> Iterator[FieldSpec]:
    for field in fields_of(Settings):
        yield with_offers(field)
        if field.item is not None:
            for inner in fields_of(field.item, field.path):
                yield with_offers(inner)
