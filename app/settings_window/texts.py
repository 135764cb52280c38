# SPDX-License-Identifier: Apache-2.0
"""Sizes and states in words."""

from __future__ import annotations

from app.i18n import Translate, told
from app.settings_window.ports import CompanionView, Presence


def size_text(count: int) -> str:
    """Bytes in the unit that reads best, decimal as disks are sold."""
    if count < 1_000_000_000:
        return f"{count / 1e6:.0f} MB"
    return f"{count / 1e9:.1f} GB"


def engine_text(tr: Translate, view: CompanionView) -> str:
    """Where the engine is in its life."""
    if view.presence is Presence.AWAY:
        return tr("No model is in memory.")
    match view.engine:
        case "ready":
            return tr("Model: {model}, ready").format(model=view.model)
        case "starting" | "loading":
            return tr("The model is being loaded…")
        case "restarting":
            return tr("The engine is being started again…")
        case "failed":
            return f"⚠ {told(tr, view.trouble)}"
        case _:
            return tr("No model is in memory.")
