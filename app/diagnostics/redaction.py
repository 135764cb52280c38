# SPDX-License-Identifier: Apache-2.0
"""What a report may hold. Settings of free text are counted, never copied: a person writes into them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from app.log import without_home

SERIAL = "(serial number)"


def shown_settings(model: BaseModel) -> dict[str, Any]:
    """Numbers, switches and choices as they are; of anything else only how much there is."""
    return {name: _shown(getattr(model, name)) for name in type(model).model_fields}


def _shown(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return shown_settings(value)
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):
        return f"({len(str(value))} characters)" if str(value) else ""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return f"({len(value)} entries)"
    return f"({type(value).__name__})"


def redacted(text: str, serials: Iterable[str], home: Path) -> str:
    """`text` without serial numbers and without the name of the person's folder."""
    for serial in sorted(filter(None, serials), key=len, reverse=True):
        text = text.replace(serial, SERIAL)
    return without_home(text, str(home))
