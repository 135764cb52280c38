# SPDX-License-Identifier: Apache-2.0
"""The words that go to the model: assets/prompts/NAME.toml, one table per language."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict


class ReactPrompt(BaseModel):
    """assets/prompts/react.toml; `examples` are (line, manner, label)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    user: str
    silence: str
    macro: str
    examples: tuple[tuple[str, str, str], ...]
    rhythm: dict[str, str]


def load_react_prompt(language: str) -> ReactPrompt:
    """The words of react mode in `language` (`zh_CN`), else in its base (`zh`), else in English."""
    return ReactPrompt.model_validate(_load("react", language))


def _load(name: str, language: str) -> dict[str, Any]:
    text = resources.files("assets").joinpath("prompts", f"{name}.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    base = language.partition("_")[0]
    return {**tables["en"], **tables.get(base, {}), **tables.get(language, {})}
