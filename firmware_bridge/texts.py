# SPDX-License-Identifier: Apache-2.0
"""Texts for the person that can still be said in another language.

Why a keyboard cannot be used is shown far from here, in the person's language. So a text keeps what it was
made of: a template, which stands in a catalogue, and the values in it. Nothing here translates.

`engine.texts` is its twin: neither package may import the other, and the app says both (app.i18n, Template).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType


class Text(str):
    """`Text("{program} holds it", program="x")` is the str "x holds it" and knows its template and values.

    A value that is a Text is said in the other language too; any other str is a name and stays as it is.
    `str()` of a Text is that Text, so an error that was made with one gives it back.
    """

    template: str
    values: Mapping[str, str | int | float]

    def __new__(cls, template: str, /, **values: object) -> Text:
        kept = {
            name: value if isinstance(value, Text | int | float) else str(value)
            for name, value in values.items()
        }
        text = super().__new__(cls, template.format(**kept) if kept else template)
        text.template, text.values = template, MappingProxyType(kept)
        return text

    def __str__(self) -> str:
        return self


def as_text(text: str) -> Text:
    """`text` itself if it is a Text, else one without values: the whole of it stands in a catalogue."""
    return text if isinstance(text, Text) else Text(text)


def listed(texts: Sequence[Text]) -> Text:
    """All of them, one after the other."""
    if len(texts) < 2:
        return texts[0] if texts else Text("")
    return Text("{first} {rest}", first=texts[0], rest=listed(texts[1:]))
