# SPDX-License-Identifier: Apache-2.0
"""Vial: who the keyboard is, whether it is being unlocked, and VialRGB (vial-qmk quantum/vial.c, vialrgb.c)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firmware_bridge.errors import BridgeError
from firmware_bridge.lights.overlay import LightEffect, LightOverlay
from firmware_bridge.via.board import Hsv, LightBoard, Settings, hsv_of
from firmware_bridge.via.conversation import Conversation
from firmware_bridge.via.protocol import Command, VialQuestion, VialRgb

_LEDS_PER_REPORT = 9
_RGB_VERSION = 1

# vial-qmk quantum/vialrgb_effects.inc; these numbers are the same on every board.
_MODE_OFF = 0
_MODE_DIRECT = 1
_MODE_SOLID = 2
_MODE_BREATHING = 6
_NO_MODE = 0xFFFF

_PARTS = ("speed", "hue", "saturation", "value")


class UnlockInProgressError(BridgeError):
    """The person is unlocking the keyboard in Vial; until that ends it returns every request as it came."""

    def __init__(self) -> None:
        super().__init__("the keyboard is being unlocked in Vial")


@dataclass(frozen=True, slots=True)
class VialKeyboard:
    """Answer to FE 00."""

    protocol: int
    has_rgb: bool


def ask_vial(conversation: Conversation) -> VialKeyboard:
    """Which Vial the keyboard has. Raises what `Conversation.ask` raises."""
    request = bytes((Command.VIAL, VialQuestion.KEYBOARD_ID))
    # The answer repeats nothing: version u32, uid of 8 bytes, flags, zeros.
    report = conversation.ask(
        request, fits=lambda r: r[1:4] == b"\0\0\0" and any(r[4:12]) and not any(r[13:])
    )
    return VialKeyboard(report[0], bool(report[12] & 1))


def refuse_while_unlocking(conversation: Conversation) -> None:
    """Ask Vial for its lock; being locked is no obstacle for lights.

    Raises:
        UnlockInProgressError: see there.
    """
    request = bytes((Command.VIAL, VialQuestion.UNLOCK_STATUS))
    # unlocked 0 or 1, in progress 0 or 1, at most 14 keys to hold, FF for the rest. Vial from before there
    # was a lock returns the request.
    report = conversation.ask(
        request,
        fits=lambda r: (
            (r[0] <= 1 and r[1] <= 1 and r[30:32] == b"\xff\xff") or r.startswith(request)
        ),
    )
    if report[1] == 1:
        raise UnlockInProgressError


class VialRgbBoard(LightBoard):
    """VialRGB: modes by name, one write for all settings, and single LEDs in direct mode."""

    name = "VialRGB"

    def __init__(
        self,
        conversation: Conversation,
        maximum: int,
        modes: frozenset[int],
        led_count: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`maximum`: the highest value that a colour may have. `modes`: what the firmware supports."""
        self._conversation = conversation
        self._maximum = maximum
        self._modes = modes
        self._led_count = led_count if _MODE_DIRECT in modes else 0
        self._sleep = sleep

    @classmethod
    def open(
        cls, conversation: Conversation, sleep: Callable[[float], None] = time.sleep
    ) -> VialRgbBoard | None:
        """The board behind `conversation`; None if its VialRGB is of an unknown version."""
        info = conversation.get(bytes((VialRgb.INFO,)), 3)
        if int.from_bytes(info[:2], "little") != _RGB_VERSION:
            return None
        modes = frozenset(_supported(conversation))
        count = conversation.get(bytes((VialRgb.LED_COUNT,)), 2) if _MODE_DIRECT in modes else b""
        return cls(conversation, info[2], modes, int.from_bytes(count, "little"), sleep)

    @property
    def led_count(self) -> int:
        return self._led_count

    def read(self) -> dict[str, int]:
        data = self._conversation.get(bytes((VialRgb.MODE,)), 6)
        settings = {"vialrgb.mode": int.from_bytes(data[:2], "little")}
        settings |= {f"vialrgb.{part}": n for part, n in zip(_PARTS, data[2:], strict=True)}
        return settings

    def plan(self, overlay: LightOverlay) -> dict[str, int]:
        if overlay.leds and self._led_count:
            return {"vialrgb.mode": _MODE_DIRECT}
        if overlay.fill is None:
            return {}
        moves = overlay.effect is not LightEffect.SOLID and _MODE_BREATHING in self._modes
        hsv = self._dimmed(hsv_of(overlay.fill))
        mode = _MODE_BREATHING if moves else _MODE_SOLID
        return {
            "vialrgb.mode": mode, "vialrgb.hue": hsv.hue, "vialrgb.saturation": hsv.saturation,
            "vialrgb.value": hsv.value,
        }  # fmt: skip

    def write(self, settings: Settings) -> None:
        wanted = {**self.read(), **settings}
        mode = wanted["vialrgb.mode"].to_bytes(2, "little")
        rest = bytes(wanted[f"vialrgb.{part}"] for part in _PARTS)
        for _ in range(2):
            if self.read() == wanted:
                return
            self._conversation.set(bytes((VialRgb.MODE,)), mode + rest)

    def paint(self, overlay: LightOverlay, baseline: Settings) -> None:
        if not (overlay.leds and self._led_count):
            return
        around = self._around(overlay, baseline)
        colours = [
            self._dimmed(hsv_of(overlay.leds[led])) if led in overlay.leds else around
            for led in range(self._led_count)
        ]
        for first in range(0, len(colours), _LEDS_PER_REPORT):
            run = colours[first : first + _LEDS_PER_REPORT]
            head = first.to_bytes(2, "little") + bytes((len(run),))
            data = head + b"".join(bytes(hsv) for hsv in run)
            self._conversation.set(bytes((VialRgb.FASTSET,)), data)

    def restore(self, settings: Settings) -> None:
        self.write(settings)

    def _around(self, overlay: LightOverlay, baseline: Settings) -> Hsv:
        """The colour of LEDs that the overlay does not name: direct mode has nothing underneath."""
        if overlay.fill is not None:
            return self._dimmed(hsv_of(overlay.fill))
        if baseline.get("vialrgb.mode") == _MODE_OFF:
            return Hsv(0, 0, 0)
        hue, saturation, value = (baseline[f"vialrgb.{part}"] for part in _PARTS[1:])
        return Hsv(hue, saturation, value)

    def _dimmed(self, hsv: Hsv) -> Hsv:
        return Hsv(hsv.hue, hsv.saturation, hsv.value * self._maximum // 255)


def _supported(conversation: Conversation) -> Iterator[int]:
    """All modes, asked for in lists of those above a number; FFFF ends the last list."""
    above = 0
    for _ in range(64):  # a list names at least one mode, and there are fewer than 64 lists
        path = bytes((VialRgb.SUPPORTED,))
        request = bytes((Command.GET_VALUE,)) + path + above.to_bytes(2, "little")
        answer = conversation.ask(request, 2)[2:]
        modes = [int.from_bytes(answer[i : i + 2], "little") for i in range(0, len(answer), 2)]
        named = [mode for mode in modes if above < mode < _NO_MODE]
        yield from named
        if _NO_MODE in modes or not named:
            return
        above = max(named)
