# SPDX-License-Identifier: Apache-2.0
"""A TOML text brought to other values, with its comments, order and spacing."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

_HEAD = "Settings of Thock. Only what differs from the defaults stands here; comments are kept."


def updated(text: str, data: Mapping[str, Any]) -> bytes:
    """`text` with exactly the values of `data`. What tomlkit cannot read is replaced."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        document = tomlkit.document()
    if not document.as_string().strip():
        document = tomlkit.document()
        document.add(tomlkit.comment(_HEAD))
    _update(document, data)
    return document.as_string().encode()


def _update(table: MutableMapping[str, Any], data: Mapping[str, Any]) -> None:
    for key in [key for key in table if key not in data]:
        del table[key]
    for key, value in data.items():
        old = table.get(key)
        if isinstance(value, Mapping):
            if not isinstance(old, MutableMapping):
                table[key] = old = tomlkit.table()
            _update(table[key], value)
        elif not _same(old, value):
            table[key] = value


def _same(item: Any, value: Any) -> bool:
    plain = item.unwrap() if hasattr(item, "unwrap") else item
    return type(plain) is type(value) and bool(plain == value)
