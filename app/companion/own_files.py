# SPDX-License-Identifier: Apache-2.0
"""Where the person's own files for the companion are. None: nowhere, as in the demo and in tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """`words` and `history` are written if the person wants that, `personas` and `moods` only read."""

    words: Path | None = None
    history: Path | None = None
    personas: Path | None = None
    moods: Path | None = None
