# SPDX-License-Identifier: Apache-2.0
"""The keys of a suggestion light up when the person rests: the next letter, and dimmer those after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from firmware_bridge.events import KeyPressed
from firmware_bridge.keys.layout import Layout
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.capabilities import Capabilities, Feature

_REST_S = 0.6  # without a key; while somebody types, the lights stay calm
_AFTER_NEXT = 0.35  # brightness of the letters after the next one
_USAGES = 256


class KeyLights:
    """Knows where the keys are from those that were pressed. All times are seconds of one clock."""

    def __init__(self, layout: Layout, colour: Rgb) -> None:
        self._layout = layout
        self._colour = colour
        self._can_light = False
        self._pressed_at = 0.0
        self.forget_places()

    def configure(self, layout: Layout) -> None:
        """The keys mean other characters from now on."""
        self._layout = layout
        self.forget()

    def connect(self, board: Capabilities) -> None:
        """A board is there, perhaps another one."""
        self._can_light = Feature.KEY_LIGHTS in board.features
        self.forget_places()

    def forget(self) -> None:
        """Forget what was lit."""
        self._newest: tuple[str, Mapping[tuple[int, int], Rgb]] = ("", {})

    def forget_places(self) -> None:
        """Forget where keys are."""
        self.forget()
        # By usage, so that it does not tell in which order keys were pressed.
        self._places: list[tuple[int, int] | None] = [None] * _USAGES

    def pressed(self, event: KeyPressed) -> None:
        """A key went down: that is where it is."""
        self._pressed_at = event.host_s
        if event.keycode < _USAGES:
            self._places[event.keycode] = (event.row, event.column)

    def deadline(self, text: str, now: float) -> float | None:
        """When the keys of `text` light up, if they are to."""
        is_waiting = self._can_light and bool(text) and now < self._pressed_at + _REST_S
        return self._pressed_at + _REST_S if is_waiting else None

    def over(self, overlay: LightOverlay, text: str, now: float) -> LightOverlay:
        """`overlay` with the keys of `text` over it: of its first word, as far as their places are known."""
        if not self._can_light or not text or now < self._pressed_at + _REST_S:
            return overlay
        return replace(overlay, keys=self._keys(text.split()[0]) if text.split() else {})

    def _keys(self, word: str) -> Mapping[tuple[int, int], Rgb]:
        if word != self._newest[0]:
            self._newest = (word, self._find(word))
        return self._newest[1]

    def _find(self, word: str) -> Mapping[tuple[int, int], Rgb]:
        keys: dict[tuple[int, int], Rgb] = {}
        for number, character in enumerate(word):
            try:
                strokes = keys_for(character, self._layout)
            except ValueError:
                break  # it is not on this layout, so nobody types on from here
            place = self._places[strokes[0].usage]
            if place is not None:
                keys.setdefault(
                    place, self._colour if number == 0 else self._colour.dimmed(_AFTER_NEXT)
                )
        return MappingProxyType(keys)
