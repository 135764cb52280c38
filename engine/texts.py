# SPDX-License-Identifier: Apache-2.0
"""Texts for the person that can still be said in another language.

What goes wrong in the engine is shown by whoever runs it, in the person's language. So a text keeps what it
was made of: a template, which stands in a catalogue, and the values in it. Nothing here translates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

Value: TypeAlias = "str | int | float"

_TEMPLATE, _VALUES = "$text", "$values"
_MOST_NESTED = 8  # a cause of a cause of a cause


class Text(str):
    """`Text("{free} MiB free", free=512)` is the str "512 MiB free" and knows its template and values.

    A value that is a Text is said in the other language too; any other str is a name and stays as it is.
    `str()` of a Text is that Text, so an error that was made with one gives it back.
    """

    template: str
    values: Mapping[str, Value]

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

    def renamed(self, change: Callable[[str], str]) -> Text:
        """The same text with other names in it: `change` of each value that is a plain str."""
        return Text(self.template, **{n: _renamed(v, change) for n, v in self.values.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.template, dict(self.values))


def as_text(text: str) -> Text:
    """`text` itself if it is a Text, else one without values: the whole of it stands in a catalogue."""
    return text if isinstance(text, Text) else Text(text)


def system_reason(error: OSError) -> Text:
    """What the system says of it, as "No such file or directory"; the file is not named."""
    return Text(error.strerror or type(error).__name__)


def listed(texts: Sequence[Text]) -> Text:
    """All of them, one after the other."""
    if not texts:
        return Text("")
    first, *rest = texts
    return Text("{first}; {rest}", first=first, rest=listed(rest)) if rest else first


def first_line(text: str) -> str:
    """`text` without what follows its first line: a log, as a rule."""
    if isinstance(text, Text) and "\n" in text.template:
        head = text.template.partition("\n")[0]
        return next(
            (v for n, v in text.values.items() if isinstance(v, str) and head == f"{{{n}}}"), head
        )
    return text if isinstance(text, Text) else text.partition("\n")[0]


def with_log(text: Text, log: str) -> Text:
    """`text`, and below it what a log said last, if it said anything."""
    return Text("{text}\n{log}", text=text, log=log) if log else text


def log_of(text: str) -> str:
    """What `with_log` put below the text."""
    return str(text).partition("\n")[2]


def to_wire(text: str) -> object:
    """`text` as a JSON value; a plain str stays one."""
    if not isinstance(text, Text):
        return text
    values = {name: to_wire(v) if isinstance(v, str) else v for name, v in text.values.items()}
    return {_TEMPLATE: text.template, _VALUES: values}


def is_wired(value: object) -> bool:
    """Whether `value` is what `to_wire` makes of a Text."""
    return isinstance(value, dict) and value.keys() == {_TEMPLATE, _VALUES}


def from_wire(value: object, depth: int = 0) -> str:
    """The text that `to_wire` made `value` of.

    Raises:
        ValueError: it made none such.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not is_wired(value) or depth > _MOST_NESTED:
        raise ValueError("this is no text")
    template, values = value[_TEMPLATE], value[_VALUES]
    if not isinstance(template, str) or not isinstance(values, dict):
        raise ValueError("this is no text")
    known = {
        name: part if isinstance(part, int | float) else from_wire(part, depth + 1)
        for name, part in values.items()
    }
    try:
        return _made(template, known)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise ValueError("this text has other values than its template") from error


def revived(value: dict[str, Any]) -> Any:
    """For `json.loads`, as its `object_hook`: every text in what came is a Text again."""
    return from_wire(value) if is_wired(value) else value


def _made(template: str, values: Mapping[str, Value]) -> Text:
    return Text(template, **values)


def _renamed(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, Text):
        return value.renamed(change)
    return change(value) if isinstance(value, str) else value
