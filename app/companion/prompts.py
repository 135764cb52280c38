# SPDX-License-Identifier: Apache-2.0
"""The words that go to the model: assets/prompts/NAME.toml, one table per language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources


def load_prompt(name: str, language: str) -> Mapping[str, str]:
    """The texts of one file in `language` (`zh_CN`); what it lacks comes from `zh`, then from `en`."""
    text = resources.files("assets").joinpath("prompts", f"{name}.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    base = language.partition("_")[0]
    return {**tables["en"], **tables.get(base, {}), **tables.get(language, {})}
