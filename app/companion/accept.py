# SPDX-License-Identifier: Apache-2.0
"""The accept key: what the keyboard may type, and why it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.settings import Settings
from firmware_bridge.display.frame import DisplayFrame, TextFrame
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import comes_out
from firmware_bridge.protocol.messages import Offer


@dataclass(frozen=True, slots=True)
class Typeable:
    """A piece of a view's line that the accept key may type."""

    row: int
    column: int
    text: str = field(repr=False)

    def offer_in(self, frame: DisplayFrame) -> Offer | None:
        """The offer, if `frame` shows exactly this text there."""
        if not isinstance(frame, TextFrame) or not self.stands_in(frame.rows):
            return None
        return Offer(self.row, self.column, len(self.text))

    def stands_in(self, lines: Sequence[str]) -> bool:
        """Whether exactly this text stands in its place in `lines`."""
        if self.row >= len(lines):
            return False
        return lines[self.row][self.column : self.column + len(self.text)] == self.text


class AcceptKey:
    """By the settings: whether typing is wanted, and which texts come out of the computer as they are shown.

    The firmware knows ASCII and the layout that it was built with; the system reads its keys under the
    person's layout.
    """

    def __init__(self, settings: Settings) -> None:
        self.is_on = settings.suggest.accept
        self._firmware = load_layout(settings.suggest.accept_layout)
        self._system = load_layout(settings.layout)

    def may_type(self, text: str) -> bool:
        """Whether the key may type `text`."""
        return self.is_on and bool(text) and comes_out(text, self._firmware, self._system)
