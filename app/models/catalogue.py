# SPDX-License-Identifier: Apache-2.0
"""The models that can be fetched by name (assets/models.toml)."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class CatalogueEntry(BaseModel):
    """One file inside one wheel. `sha256` is of the extracted file, `size` is in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    license: str
    requirement: str
    member: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(alias="bytes", gt=0)


def load_catalogue() -> dict[str, CatalogueEntry]:
    """All entries by name."""
    text = resources.files("assets").joinpath("models.toml").read_text(encoding="utf-8")
    return {name: CatalogueEntry.model_validate(row) for name, row in tomllib.loads(text).items()}


def title_of(model: Path) -> str:
    """What the catalogue calls the installed file `model`; empty where it is none of the catalogue.

    Known by name and size: a hash of the whole file would take longer than to load it.
    """
    entry = load_catalogue().get(model.stem)
    if entry is None or not model.is_file() or model.stat().st_size != entry.size:
        return ""
    return entry.title
