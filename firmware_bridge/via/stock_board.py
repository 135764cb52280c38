# SPDX-License-Identifier: Apache-2.0
"""Lighting of stock VIA firmware: colour, brightness and effect of the whole board.

qmk_firmware quantum/via.c, `via_qmk_*_set_value`: all of it acts on RAM (`*_noeeprom`); a power cycle
brings back what the person saved. Effects are numbers that depend on how the firmware was built, save the
first, which is one steady colour everywhere; so a mood has no other, except breathing on a backlight.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from firmware_bridge.lights.overlay import LightEffect, LightOverlay
from firmware_bridge.via.board import LightBoard, Settings, hsv_of
from firmware_bridge.via.conversation import Conversation, EchoError, UnhandledError
from firmware_bridge.via.protocol import CHANNELS_SINCE

_log = logging.getLogger(__name__)

# Some firmware sets colour and brightness anew 50 to 150 ms after a change of the effect, at most 300 ms.
SETTLE_S = 0.3
# A backlight has as few as 3 levels of brightness; colours must be exact.
_BRIGHTNESS_STEP = 64
# Firmware rounds down when it sets and when it gets; one or two more make up for it.
_ROUNDING = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of lighting. `head` are the bytes before a value id; ids that are None do not exist."""

    name: str
    head: bytes
    brightness: int
    effect: int
    speed: int | None
    colour: int | None
    steady: int = 1
    breathing: int | None = None


_KINDS = (  # the best first
    Kind("rgb_matrix", b"\x03", 1, 2, 3, 4),
    Kind("rgblight", b"\x02", 1, 2, 3, 4),
    Kind("led_matrix", b"\x05", 1, 2, 3, None),
    Kind("backlight", b"\x01", 1, 2, None, None, steady=0, breathing=1),
)
_OLD_KINDS = (  # before VIA 11
    Kind("rgblight", b"", 0x80, 0x81, 0x82, 0x83),
    Kind("backlight", b"", 0x09, 0x0A, None, None, steady=0, breathing=1),
)


def find_kinds(conversation: Conversation, version: int) -> tuple[Kind, ...]:
    """The kinds that the keyboard really has and that a mood uses: all with colours, else the best one."""
    kinds = _KINDS if version >= CHANNELS_SINCE else _OLD_KINDS
    found = tuple(kind for kind in kinds if _exists(conversation, kind))
    coloured = tuple(kind for kind in found if kind.colour is not None)
    return coloured or found[:1]


def _exists(conversation: Conversation, kind: Kind) -> bool:
    """An answer proves nothing: firmware may answer for a channel that it lacks. So the speed is changed by
    the smallest step, read, and set back at once. A backlight has no speed; that it overwrites our pattern
    has to do. If another program comes before it is set back, the conversation knows what it was.
    """
    value_id = kind.brightness if kind.speed is None else kind.speed
    path = kind.head + bytes((value_id,))
    try:
        before = conversation.get(path, 1)
        if kind.speed is None:
            return True
        left = conversation.unfinished.get(path)
        if left is not None and before == _stepped(left):  # still as we had to leave it
            before = left
        conversation.unfinished[path] = before
        try:
            conversation.set(path, _stepped(before))
            return conversation.get(path, 1) == _stepped(before)
        finally:
            conversation.set(path, before)
            del conversation.unfinished[path]
    except (UnhandledError, EchoError):
        return False


def _stepped(value: bytes) -> bytes:
    return bytes((value[0] ^ 1,))


class StockBoard(LightBoard):
    """The lights behind `kinds`."""

    led_count = 0

    def __init__(
        self,
        conversation: Conversation,
        kinds: Iterable[Kind],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._conversation = conversation
        self._kinds = tuple(kinds)
        self._sleep = sleep

    @property
    def name(self) -> str:
        return ", ".join(kind.name for kind in self._kinds)

    def read(self) -> dict[str, int]:
        settings: dict[str, int] = {}
        for kind in self._kinds:
            settings[f"{kind.name}.effect"] = self._get(kind, kind.effect, 1)[0]
            settings[f"{kind.name}.brightness"] = self._get(kind, kind.brightness, 1)[0]
            if kind.colour is not None:
                hue, saturation = self._get(kind, kind.colour, 2)
                settings[f"{kind.name}.hue"] = hue
                settings[f"{kind.name}.saturation"] = saturation
        return settings

    def plan(self, overlay: LightOverlay) -> dict[str, int]:
        settings: dict[str, int] = {}
        if overlay.fill is None:
            return settings
        hsv = hsv_of(overlay.fill)
        for kind in self._kinds:
            moves = overlay.effect is not LightEffect.SOLID and kind.breathing is not None
            settings[f"{kind.name}.effect"] = (
                kind.breathing if moves and kind.breathing else kind.steady
            )
            settings[f"{kind.name}.brightness"] = hsv.value
            if kind.colour is not None:
                settings[f"{kind.name}.hue"] = hsv.hue
                settings[f"{kind.name}.saturation"] = hsv.saturation
        return settings

    def write(self, settings: Settings) -> None:
        if self._set_effects(settings):
            self._sleep(SETTLE_S)
        self._set_colours(settings)
        if not self._is_near(settings):
            self._sleep(SETTLE_S)
            self._set_colours(settings)
            if not self._is_near(settings):
                _log.info("the keyboard did not keep the settings of its lights")

    def paint(self, overlay: LightOverlay, baseline: Settings) -> None:
        pass

    def restore(self, settings: Settings) -> None:
        self.write(settings)
        for kind in self._kinds:
            wanted = settings.get(f"{kind.name}.brightness")
            if wanted is None:
                continue
            for value in range(wanted, min(wanted + _ROUNDING, 255) + 1):
                self._set(kind, kind.brightness, value)
                if self._get(kind, kind.brightness, 1)[0] == wanted:
                    break

    def _set_effects(self, settings: Settings) -> bool:
        """Whether any effect changed."""
        changed = False
        for kind in self._kinds:
            effect = settings.get(f"{kind.name}.effect")
            if effect is not None and self._get(kind, kind.effect, 1)[0] != effect:
                self._set(kind, kind.effect, effect)
                changed = True
        return changed

    def _set_colours(self, settings: Settings) -> None:
        for kind in self._kinds:
            names = [f"{kind.name}.{part}" for part in ("hue", "saturation")]
            if kind.colour is not None and any(name in settings for name in names):
                now = self._get(kind, kind.colour, 2)
                colour = (settings.get(name, old) for name, old in zip(names, now, strict=True))
                self._set(kind, kind.colour, *colour)
            brightness = settings.get(f"{kind.name}.brightness")
            if brightness is not None:
                self._set(kind, kind.brightness, brightness)

    def _is_near(self, settings: Settings) -> bool:
        now = self.read()
        return all(
            abs(now[name] - value) <= (_BRIGHTNESS_STEP if name.endswith("brightness") else 0)
            for name, value in settings.items()
        )

    def _get(self, kind: Kind, value_id: int, size: int) -> bytes:
        return self._conversation.get(kind.head + bytes((value_id,)), size)

    def _set(self, kind: Kind, value_id: int, *value: int) -> None:
        self._conversation.set(kind.head + bytes((value_id,)), bytes(value))
