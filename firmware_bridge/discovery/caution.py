# SPDX-License-Identifier: Apache-2.0
"""The caution list: devices that look like keyboards for us and need care (caution.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

from firmware_bridge.discovery.candidates import Caution


@dataclass(frozen=True, slots=True)
class CautionRow:
    """One row. Ids and usages that are None fit every device."""

    action: Caution
    why: str
    source: str
    vendor: int | None = None
    product: int | None = None
    usage_page: int | None = None
    usage: int | None = None

    def fits(self, vendor: int, product: int, usage_page: int, usage: int) -> bool:
        pairs = (
            (self.vendor, vendor), (self.product, product), (self.usage_page, usage_page),
            (self.usage, usage),
        )  # fmt: skip
        return all(own is None or own == other for own, other in pairs)


def load_caution_list(text: str | None = None) -> tuple[CautionRow, ...]:
    """The rows of `text` (TOML), or of the list that comes with Thock.

    Raises:
        ValueError: a row is malformed, or would fit every device.
    """
    if text is None:
        file = resources.files("firmware_bridge.discovery").joinpath("caution.toml")
        text = file.read_text(encoding="utf-8")
    rows = []
    for number, table in enumerate(tomllib.loads(text)["device"], 1):
        try:
            row = CautionRow(**{**table, "action": Caution(table["action"])})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"caution list, row {number}: {error}") from error
        if row.vendor is None and row.usage_page is None:
            raise ValueError(f"caution list, row {number}: fits every device")
        rows.append(row)
    return tuple(rows)
