# SPDX-License-Identifier: Apache-2.0
"""What the window reads from the models, and what it sends when something changes."""

from __future__ import annotations

import enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from app.config.store import merged
from app.settings import ModeName, Page, Settings
from app.settings_window.fields import FieldKind, changes_between, fields_of, value_at, with_value


class Colour(enum.StrEnum):
    RED = "red"
    DARK_BLUE = "dark_blue"


class Inner(BaseModel):
    length: float = Field(default=1.5, gt=0, lt=9, title="Length", json_schema_extra={"unit": "m"})
    hidden: int = Field(default=0, json_schema_extra={"hidden": True})


class Tree(BaseModel):
    is_on: bool = Field(default=True, title="On", description="Whether it is on.")
    count: int = Field(default=2, ge=1, le=5, json_schema_extra={"restart": True})
    colour: Colour = Colour.RED
    file: Path | None = None
    name: str = Field(default="", max_length=7)
    inner: Inner = Field(default=Inner(), title="Inside", json_schema_extra={"page": Page.PRIVACY})


def test_every_kind_of_field_is_read_with_its_metadata() -> None:
    fields = {field.name: field for field in fields_of(Tree)}
    assert list(fields) == ["is_on", "count", "colour", "file", "name", "inner.length"]
    kinds = [field.kind for field in fields.values()]
    assert kinds == [
        FieldKind.SWITCH, FieldKind.WHOLE, FieldKind.CHOICE, FieldKind.FILE, FieldKind.TEXT,
        FieldKind.DECIMAL,
    ]  # fmt: skip
    assert (fields["is_on"].title, fields["is_on"].description) == ("On", "Whether it is on.")
    count = fields["count"]
    assert (count.title, count.minimum, count.maximum, count.needs_restart) == ("Count", 1, 5, True)
    labels = [choice.label for choice in fields["colour"].choices]
    assert labels == ["Red", "Dark blue"]
    assert fields["file"].is_optional
    assert fields["name"].max_length == 7
    inner = fields["inner.length"]
    assert (inner.group, inner.page, inner.unit) == ("Inside", Page.PRIVACY, "m")


def test_a_type_without_a_control_is_refused_by_name() -> None:
    class Odd(BaseModel):
        odd: complex = 1j

    with pytest.raises(TypeError, match="odd: no control fits"):
        fields_of(Odd)


def test_every_setting_has_a_title_a_page_and_a_control() -> None:
    fields = fields_of(Settings)
    assert len({field.path for field in fields}) == len(fields)
    for field in fields:
        assert field.title, field.name
        assert field.description, field.name
        assert field.description.endswith((".", "?")), field.name


def test_values_are_read_and_set_by_path() -> None:
    settings = Settings()
    assert value_at(settings, ("chat", "max_tokens")) == settings.chat.max_tokens
    table = with_value(settings, ("chat", "max_tokens"), 7)
    assert Settings.model_validate(table).chat.max_tokens == 7
    assert settings.chat.max_tokens != 7


some_settings = st.builds(
    lambda mode, count, tokens, wipe, enabled: Settings.model_validate(
        {
            "mode": mode,
            "suggest": {"count": count},
            "chat": {"max_tokens": tokens},
            "idle_wipe_s": wipe,
            "hotkeys": {"enabled": enabled},
        }
    ),
    st.sampled_from(ModeName),
    st.integers(1, 3),
    st.sampled_from([1, 96, 500]),
    st.sampled_from([10.0, 300.0]),
    st.booleans(),
)


@given(some_settings, some_settings)
def test_changes_lead_from_one_tree_to_the_other(before: Settings, after: Settings) -> None:
    stored = before.model_dump(mode="json", exclude_defaults=True)
    changes = changes_between(before, after)
    assert Settings.model_validate(merged(stored, changes)) == after
    assert (not changes) == (before == after)
