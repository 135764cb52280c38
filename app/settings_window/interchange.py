# SPDX-License-Identifier: Apache-2.0
"""Settings to a file of their own, and from one."""

from __future__ import annotations

from app.config.document import updated
from app.config.migrations import SCHEMA_VERSION, VERSION_KEY, migrate, version_of
from app.config.problems import Problem
from app.config.salvage import parse_lines, valid_part
from app.settings import Settings


def exported(settings: Settings) -> bytes:
    """What differs from the defaults, as TOML."""
    values = settings.model_dump(mode="json", exclude_defaults=True)
    return updated("", {VERSION_KEY: SCHEMA_VERSION, **values})


def imported(data: bytes) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings in a file, and what in it was not used. All the rest has its default."""
    _, table, problems = parse_lines(data)
    if version_of(table) > SCHEMA_VERSION:
        problems.append(Problem("", "The file was written by a newer Thock."))
    settings, _, more = valid_part(migrate(table))
    return settings, (*problems, *more)
