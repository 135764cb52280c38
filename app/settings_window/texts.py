# SPDX-License-Identifier: Apache-2.0
"""Sizes and times in words."""

from __future__ import annotations


def size_text(count: int) -> str:
    """Bytes in the unit that reads best, decimal as disks are sold."""
    if count < 1_000_000_000:
        return f"{count / 1e6:.0f} MB"
    return f"{count / 1e9:.1f} GB"
