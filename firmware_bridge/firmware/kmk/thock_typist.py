# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""Types accepted characters as KMK types keys, for the US layout: a press or a release in each turn."""

from kmk.keys import KC, ModifiedKey, ModifierKey


class Typist:
    def __init__(self):
        self._waiting = ""
        self._down = None
        self._lifted = []  # keys that the person holds, to be pressed again

    @property
    def busy(self):
        return self._down is not None or self._waiting != ""

    def type(self, text):
        self._waiting = text

    def stop(self, keyboard):
        self._waiting = ""
        if self._down is not None:
            keyboard.remove_key(self._down)
            self._down = None
        self._press_again(keyboard)

    def released(self, key):
        """The person has let go of a key."""
        for held in (key, getattr(key, "modifier", None)):
            if held in self._lifted:
                self._lifted.remove(held)

    def turn(self, keyboard):
        """To be called once in every turn of the main loop, before KMK sends its report."""
        if self._down is not None:
            keyboard.remove_key(self._down)
            self._down = None
            if not self._waiting:
                self._press_again(keyboard)
        elif self._waiting:
            self._lift_modifiers(keyboard)
            self._down = _key_of(self._waiting[0])
            self._waiting = self._waiting[1:]
            keyboard.add_key(self._down)

    def _lift_modifiers(self, keyboard):
        """Without the modifiers that the person happens to hold: it must be typed as it is shown."""
        for key in list(keyboard.keys_pressed):
            if isinstance(key, ModifierKey):
                keyboard.keys_pressed.discard(key)
                self._lifted.append(key)

    def _press_again(self, keyboard):
        for key in self._lifted:
            keyboard.keys_pressed.add(key)
            keyboard.hid_pending = True
        self._lifted = []


def _key_of(character):
    upper = character.upper()
    key = KC[upper]
    if upper != character or not character.isalpha():
        return key
    return key if isinstance(key, ModifiedKey) else KC.LSHIFT(key)
