# SPDX-License-Identifier: Apache-2.0
"""Finding a setting by what it is called or does, in the person's language and in English."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.i18n import Translate
from app.settings_window.fields import FieldPath, FieldSpec
from app.settings_window.labels import Place, choice_label, place_title
from app.settings_window.wording import translated


@dataclass(frozen=True, slots=True)
class Hit:
    """A page, or a field on it; `title` is in the person's language."""

    place: Place
    path: FieldPath
    title: str


def find(text: str, fields: Iterable[FieldSpec], tr: Translate) -> list[Hit]:
    """What fits every word of `text`, best first: titles before descriptions. Nothing for no words."""
    words = text.casefold().split()
    if not words:
        return []
    ranked: list[tuple[int, Hit]] = []
    for place in Place:
        title = place_title(tr, place)
        names = (title.casefold(), place_title(str, place).casefold())
        if all(any(word in name for name in names) for word in words):
            ranked.append((0, Hit(place, (), title)))
    for field in fields:
        rank = _rank(words, field, tr)
        if rank is not None:
            ranked.append((rank, Hit(Place(field.page), field.path, tr(field.title))))
    return [hit for _, hit in sorted(ranked, key=lambda row: row[0])]


def _rank(words: list[str], field: FieldSpec, tr: Translate) -> int | None:
    title = f"{tr(field.title)} {field.title} {field.name}".casefold()
    if all(word in title for word in words):
        return 1
    more = [
        translated(tr, field.group), field.group, translated(tr, field.description),
        field.description, *(choice_label(tr, choice) for choice in field.choices),
    ]  # fmt: skip
    whole = " ".join([title, *more]).casefold()
    return 2 if all(word in whole for word in words) else None
