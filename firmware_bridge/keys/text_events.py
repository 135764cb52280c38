# SPDX-License-Identifier: Apache-2.0
"""Key events -> what they do to the text that the person writes.

The keyboard reports keys, not characters: text follows from the layout, the modifiers that are down
and Caps Lock. Limits, because a keyboard cannot know better: Caps Lock and Num Lock are counted from
their state at the start, auto-repeat (the system's, for a key held down) gives no further events,
and text from input methods, paste or the mouse is not seen. Where systems differ in what a key does
(an accent on a letter that takes none), it is said to be unclear; nothing is guessed.

Key content is left out of `repr` and is never logged.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from firmware_bridge.events import (
    BridgeEvent,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    LinkLost,
)
from firmware_bridge.keys.dead_keys import DeadKey, System, compose
from firmware_bridge.keys.layout import KEYPAD_DIGITS, KEYPAD_SIGNS, CapsLockKey, Layout, Sign
from firmware_bridge.keys.usage import Modifiers, Usage, modifier_of, split_keycode


@dataclass(frozen=True, slots=True)
class TextTyped:
    """Characters were typed at the cursor."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Backspace:
    """The character, or the whole word (control or alt was down), before the cursor was deleted."""

    word: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """The character, or the whole word, after the cursor was deleted."""

    word: bool = False


@dataclass(frozen=True, slots=True)
class Enter:
    """Enter, with or without shift."""

    shift: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """Tab, with or without shift."""

    shift: bool = False


@dataclass(frozen=True, slots=True)
class Escape:
    """Esc."""


class Direction(enum.Enum):
    """Where the cursor went."""

    LEFT = "left"
    RIGHT = "right"
    UP = "up"
    DOWN = "down"
    HOME = "home"
    END = "end"
    PAGE_UP = "page up"
    PAGE_DOWN = "page down"


@dataclass(frozen=True, slots=True)
class CursorMoved:
    """`word`: control or alt was down, so by a word. `selecting`: shift was down."""

    direction: Direction
    word: bool = False
    selecting: bool = False


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A key with control, alt or gui: it types nothing and may have changed anything."""

    usage: int = field(repr=False)
    modifiers: Modifiers


@dataclass(frozen=True, slots=True)
class Unclear:
    """The key did something to the text that depends on the system or the input method."""


TextEvent = TextTyped | Backspace | Delete | Enter | Tab | Escape | CursorMoved | Shortcut | Unclear

_MOVES: dict[int, Direction] = {
    Usage.LEFT: Direction.LEFT,
    Usage.RIGHT: Direction.RIGHT,
    Usage.UP: Direction.UP,
    Usage.DOWN: Direction.DOWN,
    Usage.HOME: Direction.HOME,
    Usage.END: Direction.END,
    Usage.PAGE_UP: Direction.PAGE_UP,
    Usage.PAGE_DOWN: Direction.PAGE_DOWN,
}

# What the keypad does while Num Lock is off (USB HID Usage Tables, names of usages 59..63).
_KEYPAD_WITHOUT_NUM_LOCK: dict[int, int] = {
    Usage.KEYPAD_1: Usage.END,
    Usage.KEYPAD_2: Usage.DOWN,
    Usage.KEYPAD_3: Usage.PAGE_DOWN,
    Usage.KEYPAD_4: Usage.LEFT,
    Usage.KEYPAD_6: Usage.RIGHT,
    Usage.KEYPAD_7: Usage.HOME,
    Usage.KEYPAD_8: Usage.UP,
    Usage.KEYPAD_9: Usage.PAGE_UP,
    Usage.KEYPAD_PERIOD: Usage.DELETE,
}


class KeyText:
    """Turns the events of one keyboard into text events. Not thread-safe: one thread feeds it."""

    def __init__(self, layout: Layout, *, caps_lock: bool = False, num_lock: bool = True) -> None:
        self._layout = layout
        self._altgr_key = Modifiers.RIGHT_ALT if layout.has_altgr else Modifiers(0)
        self._caps_lock = caps_lock
        self._num_lock = num_lock
        self._dead: DeadKey | None = None  # an accent that waits for its letter
        # Which modifier each position holds down: two keys may send the same modifier.
        self._held: dict[tuple[int, int], Modifiers] = {}

    @property
    def is_at_rest(self) -> bool:
        """No modifier is down and no accent waits: the next key does what it does alone."""
        return not self._held and self._dead is None

    def feed(self, event: BridgeEvent) -> TextEvent | None:
        """What `event` did to the text; None if nothing (releases, modifiers, dead keys, other events).

        After lost events or a lost link no modifier counts as down: a control key stuck in our
        opinion would swallow all that is typed.
        """
        match event:
            case KeyPressed():
                return self._pressed(event)
            case KeyReleased():
                self._held.pop((event.row, event.column), None)
            case EventsDropped() | LinkLost():
                self._held.clear()
                self._dead = None
        return None

    def typed_by_keyboard(self, text: str) -> TextEvent:
        """What the system makes of a text that the keyboard types by itself."""
        dead, self._dead = self._dead, None
        return TextTyped(text) if dead is None else Unclear()

    def _pressed(self, event: KeyPressed) -> TextEvent | None:
        usage, brought = split_keycode(event.keycode)
        own = modifier_of(usage)
        if own or (usage == 0 and brought):
            self._held[event.row, event.column] = own | brought
            return None
        modifiers = brought
        for held in self._held.values():
            modifiers |= held
        if usage == Usage.CAPS_LOCK and self._layout.caps_lock_key is CapsLockKey.BACKSPACE:
            usage = Usage.BACKSPACE
        match usage:
            case Usage.CAPS_LOCK:
                return self._caps_lock_pressed(bool(modifiers & Modifiers.SHIFT))
            case Usage.NUM_LOCK:
                self._num_lock = not self._num_lock
                return None
        event_of_key = self._stroke(usage, modifiers)
        if isinstance(event_of_key, TextTyped | None) or self._dead is None:
            return event_of_key
        self._dead = None
        # All systems drop the accent at a backspace; before other keys, some of them type it.
        return None if event_of_key == Backspace() else Unclear()

    def _caps_lock_pressed(self, shift: bool) -> TextEvent | None:
        if self._layout.caps_lock_key is CapsLockKey.LOCK_WITH_SHIFT and not shift:
            return Unclear()
        self._caps_lock = not self._caps_lock
        return None

    def _stroke(self, usage: int, modifiers: Modifiers) -> TextEvent | None:
        altgr = bool(modifiers & self._altgr_key)
        shift = bool(modifiers & Modifiers.SHIFT)
        by_word = bool(modifiers & (Modifiers.CONTROL | Modifiers.ALT) & ~self._altgr_key)
        command = by_word or bool(modifiers & Modifiers.GUI)
        if usage in KEYPAD_DIGITS and not self._types_digits(shift):
            if not self._num_lock and shift:
                return Unclear()  # Linux types a digit, Windows selects
            usage, shift = _KEYPAD_WITHOUT_NUM_LOCK.get(usage, 0), False
        if modifiers & Modifiers.GUI:
            return Shortcut(usage, modifiers)
        match usage:
            case 0:
                return None
            case Usage.BACKSPACE:
                return Backspace(by_word)
            case Usage.DELETE:
                return Delete(by_word)
            case _ if usage in _MOVES:
                return CursorMoved(_MOVES[usage], by_word, shift)
        if command:
            return Shortcut(usage, modifiers)
        match usage:
            case Usage.ENTER | Usage.KEYPAD_ENTER:
                return Enter(shift)
            case Usage.TAB:
                return Tab(shift)
            case Usage.ESCAPE:
                return Escape()
            case _ if usage in self._layout.input_method_keys:
                return Unclear()
        sign = self._layout.sign(usage, shift=shift, altgr=altgr, caps_lock=self._caps_lock)
        return self._typed(sign or KEYPAD_SIGNS.get(usage) or KEYPAD_DIGITS.get(usage, ""))

    def _types_digits(self, shift: bool) -> bool:
        """Num Lock holds, and shift does not turn it over; a Mac has no Num Lock."""
        return self._layout.system is System.MACOS or (self._num_lock and not shift)

    def _typed(self, sign: Sign) -> TextEvent | None:
        if sign == "":
            return None
        dead, self._dead = self._dead, None
        if isinstance(sign, DeadKey):
            if dead is not None:
                return Unclear()
            self._dead = sign
            return None
        text = sign if dead is None else compose(dead, sign, self._layout.system)
        return TextTyped(text) if text else Unclear()
