# SPDX-License-Identifier: Apache-2.0
"""What the keyboard's events do to the text before the cursor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.companion.context import Edit, TextUnknown
from firmware_bridge.events import EventsDropped, KeyPressed, KeyReleased, LinkLost
from firmware_bridge.keys.text_events import KeyText
from firmware_bridge.keys.usage import Usage

_ENTER_KEYS = frozenset({Usage.ENTER, Usage.KEYPAD_ENTER})

KeyEvent = KeyPressed | KeyReleased | EventsDropped | LinkLost


@dataclass(frozen=True, slots=True)
class _HeldKey:
    """The newest key that changed the text, while nothing else was pressed after it."""

    place: tuple[int, int] = field(repr=False)
    since: float


class KeyEdits:
    """Turns key events into edits, through a layout's `KeyText`.

    The system repeats the newest key while it is held, unknown how often: after `repeat_s` seconds the
    text is unknown. So it is after lost events.
    """

    def __init__(self, keys: KeyText, repeat_s: float, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._repeat_s = repeat_s
        self._now = clock
        self._held: _HeldKey | None = None

    def take(self, event: KeyEvent) -> list[tuple[Edit, float]]:
        """The edits that `event` makes, with their times."""
        edit = self._keys.feed(event)
        match event:
            case KeyPressed(row=row, column=column, host_s=at):
                edits = self._end_hold(at)
                if edit is not None:
                    self._held = _HeldKey((row, column), at)
                    edits.append((edit, at))
                return edits
            case KeyReleased(row=row, column=column, host_s=at):
                is_held = self._held is not None and self._held.place == (row, column)
                return self._end_hold(at) if is_held else []
            case EventsDropped() | LinkLost():
                self.forget()
                return [(TextUnknown(), self._now())]

    @property
    def enter_keys(self) -> frozenset[int]:
        """The key codes that would be an Enter if they came next, for certain."""
        return _ENTER_KEYS if self._keys.is_at_rest else frozenset()

    def typed_by_keyboard(self, text: str) -> Edit:
        """What it does that the keyboard typed `text` by itself; no text: it is not known which."""
        self._held = None
        return self._keys.typed_by_keyboard(text) if text else TextUnknown()

    def follow(self, event: KeyEvent) -> None:
        """Take note of modifiers only: nobody wants the text."""
        self._keys.feed(event)

    def forget(self) -> None:
        """Forget which key is held."""
        self._held = None

    def _end_hold(self, at: float) -> list[tuple[Edit, float]]:
        held, self._held = self._held, None
        is_repeated = held is not None and at - held.since >= self._repeat_s
        return [(TextUnknown(), at)] if is_repeated else []
