# SPDX-License-Identifier: Apache-2.0
"""What can be set, read from the pydantic models: they are the only place that knows names and limits.

Titles and descriptions come from `Field(title=, description=)`, limits from the constraints, and from
`json_schema_extra`: `page` (an `app.settings.Page`; the fields of a group stand on the group's page), `unit`
(shown behind the number), `restart` (true: holds from the next start on), `hidden` (true: not for the window).
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, StringConstraints
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from app.settings import Page

FieldPath = tuple[str, ...]


class FieldKind(enum.Enum):
    """Which control fits a field."""

    SWITCH = "switch"
    WHOLE = "whole"
    DECIMAL = "decimal"
    CHOICE = "choice"
    TEXT = "text"
    FILE = "file"
    TEXTS = "texts"  # any number, one a line
    RECORDS = "records"  # models by name


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a CHOICE; `label` is English and goes through `tr`."""

    value: object
    label: str


NOTHING = Choice(None, "As in the settings")
"""What stands for None among choices."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field. Limits are inclusive; None where there is none. `title` and `description` are English.

    `group` is the title of the nested model that holds it, empty at the top. `item` is the model of one of
    RECORDS, else None.
    """

    path: FieldPath
    page: Page
    kind: FieldKind
    title: str
    description: str
    group: str
    default: object
    is_optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    unit: str = ""
    choices: tuple[Choice, ...] = ()
    needs_restart: bool = False
    item: type[BaseModel] | None = None

    @property
    def name(self) -> str:
        """The path as it stands in messages and in search: `chat.max_tokens`."""
        return ".".join(self.path)


def fields_of(
    model: type[BaseModel], prefix: FieldPath = (), page: Page = Page.GENERAL
) -> tuple[FieldSpec, ...]:
    """Every field of `model`, which stands at `prefix`, that a person may set; nested models in their place.

    Raises:
        TypeError: a field is of a type that no control fits.
    """
    return tuple(_walk(model, prefix, "", page))


def _walk(model: type[BaseModel], prefix: FieldPath, group: str, page: Page) -> Iterator[FieldSpec]:
    for name, info in model.model_fields.items():
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, Mapping) else {}
        if extra.get("hidden"):
            continue
        path = (*prefix, name)
        at = Page(str(extra.get("page", page)))
        kind = _Kind.of(info.annotation, path)
        title = info.title or _title_of(name)
        if kind.nested is not None:
            yield from _walk(kind.nested, path, title, at)
            continue
        minimum, maximum, max_length = _limits([*info.metadata, *kind.metadata])
        yield FieldSpec(
            path=path,
            page=at,
            kind=kind.kind,
            title=title,
            description=info.description or "",
            group=group,
            default=default_of(info),
            is_optional=kind.is_optional,
            minimum=minimum,
            maximum=maximum,
            max_length=max_length,
            unit=str(extra.get("unit", "")),
            choices=kind.choices,
            needs_restart=bool(extra.get("restart", False)),
            item=kind.item,
        )


def default_of(info: FieldInfo) -> object:
    """The default of a field; None where a value must be given."""
    value = info.get_default(call_default_factory=True, validated_data={})
    return None if value is PydanticUndefined else value


def value_at(model: BaseModel, path: FieldPath) -> object:
    """What stands in `model` at `path`."""
    value: object = model
    for name in path:
        value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    return value


def with_value(model: BaseModel, path: FieldPath, value: object) -> dict[str, Any]:
    """The dump of `model` with another value at `path`, not validated."""
    table = model.model_dump()
    inner = table
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return table


def changes_between(before: BaseModel, after: BaseModel) -> dict[str, Any]:
    """What leads from one tree to the other, as `app.config.store.Changes`: None where a default comes back.

    A record is told as a whole, because one that says nothing would vanish from the file.
    """
    return _differences(
        before.model_dump(mode="json"),
        after.model_dump(mode="json"),
        type(after)().model_dump(mode="json"),
    )


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], default: Mapping[str, Any]
) -> dict[str, Any]:
    changes: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old, usual = before.get(name), default.get(name)
        if name in before and value == old:
            continue
        if isinstance(value, Mapping) and isinstance(usual, Mapping):
            changes[name] = _differences(old or {}, value, usual)
        else:
            changes[name] = None if name in default and value == usual else value
    return changes


def _title_of(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an annotation means. `nested` is a model that stands in the tree itself."""

    kind: FieldKind = FieldKind.TEXT
    is_optional: bool = False
    choices: tuple[Choice, ...] = ()
    item: type[BaseModel] | None = None
    nested: type[BaseModel] | None = None
    metadata: tuple[object, ...] = ()

    @staticmethod
    def of(annotation: object, path: FieldPath) -> _Kind:
        inner, metadata = _bare(annotation)
        if get_origin(inner) in (Union, types.UnionType):
            others = [a for a in get_args(inner) if a is not type(None)]
            if len(others) == 1:
                return replace(_Kind.of(others[0], path), is_optional=True).with_nothing()
        kind = _simple_kind(inner) or _list_kind(inner)
        if kind is None:
            raise TypeError(f"{'.'.join(path)}: no control fits {inner!r}")
        return replace(kind, metadata=metadata)

    def with_nothing(self) -> _Kind:
        """Optional: what can be chosen gets one more choice, and so does yes and no."""
        choices = self.choices
        if self.kind is FieldKind.SWITCH:
            choices = (Choice(True, "Yes"), Choice(False, "No"))
        if not choices:
            return self
        return replace(self, kind=FieldKind.CHOICE, choices=(NOTHING, *choices))


def _bare(annotation: object) -> tuple[object, tuple[object, ...]]:
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return inner, tuple(metadata)
    return annotation, ()


def _simple_kind(inner: object) -> _Kind | None:
    if get_origin(inner) is Literal:
        choices = tuple(Choice(value, label_of(value)) for value in get_args(inner))
        return _Kind(FieldKind.CHOICE, choices=choices)
    if not isinstance(inner, type):
        return None
    if issubclass(inner, BaseModel):
        return _Kind(nested=inner)
    if issubclass(inner, enum.Enum):
        return _Kind(FieldKind.CHOICE, choices=_members(inner))
    plain: dict[type, FieldKind] = {
        bool: FieldKind.SWITCH,
        int: FieldKind.WHOLE,
        float: FieldKind.DECIMAL,
        str: FieldKind.TEXT,
        Path: FieldKind.FILE,
    }
    return _Kind(plain[inner]) if inner in plain else None


def _list_kind(inner: object) -> _Kind | None:
    """Texts in a tuple, models by name in a dict."""
    arguments = [_bare(a)[0] for a in get_args(inner) if a is not Ellipsis]
    if get_origin(inner) is tuple and arguments == [str]:
        return _Kind(FieldKind.TEXTS)
    if get_origin(inner) is dict and len(arguments) == 2 and arguments[0] is str:
        item = arguments[1]
        if isinstance(item, type) and issubclass(item, BaseModel):
            return _Kind(FieldKind.RECORDS, item=item)
    return None


def _members(enumeration: type[enum.Enum]) -> tuple[Choice, ...]:
    return tuple(Choice(member, label_of(member.value)) for member in enumeration)


def label_of(value: object) -> str:
    """A value such as `next_word` in words."""
    return str(value).replace("_", " ").capitalize()


def _limits(metadata: Iterable[object]) -> tuple[float | None, float | None, int | None]:
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    for mark in metadata:
        match mark:
            case annotated_types.Ge(ge=bound) | annotated_types.Gt(gt=bound):
                minimum = _number(bound)
            case annotated_types.Le(le=bound) | annotated_types.Lt(lt=bound):
                maximum = _number(bound)
            case annotated_types.MaxLen(max_length=length):
                max_length = length
            case StringConstraints(max_length=length) if length is not None:
                max_length = length
            case _:
                pass
    return minimum, maximum, max_length


def _number(bound: object) -> float:
    assert isinstance(bound, int | float)
    return bound
