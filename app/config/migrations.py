# SPDX-License-Identifier: Apache-2.0
"""Files of older versions of Thock, brought to the present schema before they are validated.

A migration takes the plain dict of one version and returns that of the next. It must take any dict: what
a person broke by hand is judged later. tests/golden/config holds one file for each version, for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Table = dict[str, Any]
Migration = Callable[[Table], Table]

SCHEMA_VERSION = 1
VERSION_KEY = "schema_version"

MIGRATIONS: Mapping[int, Migration] = {}
"""From which version; the result is of the version above. Empty: no other version was ever released."""


def version_of(data: Mapping[str, Any]) -> int:
    """The version that a file says it has; a file without one is taken for the present version."""
    version = data.get(VERSION_KEY, SCHEMA_VERSION)
    return version if type(version) is int and version >= 1 else SCHEMA_VERSION


def migrate(
    data: Table,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    newest: int = SCHEMA_VERSION,
) -> Table:
    """`data` in the newest version, without its version number. Newer files are left as they are."""
    for version in range(version_of(data), newest):
        data = migrations[version](data)
    return {key: value for key, value in data.items() if key != VERSION_KEY}
