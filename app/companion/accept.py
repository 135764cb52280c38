# SPDX-License-Identifier: Apache-2.0
"""The accept key: what the keyboard may type, and why it may not."""

from __future__ import annotations

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
        if not isinstance(frame, TextFrame) or self.row >= len(frame.rows):
            return None
        end = self.column + len(self.text)
        if frame.rows[self.row][self.column : end] != self.text:
            return None
        return Offer(self.row, self.column, len(self.text))


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
