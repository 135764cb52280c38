# SPDX-License-Identifier: Apache-2.0
"""A short text over any view, for a moment."""

from __future__ import annotations

from app.companion.modes.base import View
from app.companion.overlays import with_notice
from app.companion.picture import Size

NOTICE_S = 2.0


class Notice:
    """The newest notice; all times are seconds of one clock."""

    def __init__(self) -> None:
        self._text = ""
        self._until = 0.0

    @property
    def deadline(self) -> float | None:
        """When it goes away."""
        return self._until if self._text else None

    def say(self, text: str, now: float) -> None:
        """Show `text` from now on."""
        self._text = text
        self._until = now + NOTICE_S

    @property
    def text(self) -> str:
        """What it says; empty if there is none."""
        return self._text

    def wake(self, now: float) -> None:
        """Take it away if its time is over."""
        if self._text and now >= self._until:
            self._text = ""

    def over(self, view: View, size: Size) -> View:
        """`view`, with the notice in its last line if there is one."""
        return with_notice(view, self._text, size) if self._text else view
