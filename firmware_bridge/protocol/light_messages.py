# SPDX-License-Identifier: Apache-2.0
"""The LIGHTS payloads of docs/PROTOCOL.md, told apart by their first byte."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import ClassVar

from firmware_bridge.errors import FrameError
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.frames import FrameType


class _Operation(enum.IntEnum):
    OFF = 0
    FILL = 1
    RUN = 2
    FORGET = 3
    KEYS = 4


_KEY_BYTES = 5  # row, column and colour
_RUN_HEAD = 3  # bytes before the colours of a run: the operation, and the first LED (u16)


def colours_per_run(payload_room: int) -> int:
    """How many LEDs one LIGHTS frame with `payload_room` bytes of payload can set (7 at N = 32)."""
    return (payload_room - _RUN_HEAD) // 3


def keys_per_frame(payload_room: int) -> int:
    """How many keys one LIGHTS frame with `payload_room` bytes of payload can light (4 at N = 32)."""
    return (payload_room - 1) // _KEY_BYTES


@dataclass(frozen=True, slots=True)
class LightsOff:
    """The overlay vanishes: fill and single LEDs."""

    type: ClassVar[FrameType] = FrameType.LIGHTS

    def pack(self) -> bytes:
        return bytes((_Operation.OFF,))


@dataclass(frozen=True, slots=True)
class LightsFill:
    """One colour for every LED."""

    type: ClassVar[FrameType] = FrameType.LIGHTS

    effect: LightEffect
    colour: Rgb

    def pack(self) -> bytes:
        return bytes((_Operation.FILL, self.effect)) + _colour_bytes(self.colour)


@dataclass(frozen=True, slots=True)
class LightsRun:
    """Colours of neighbouring LEDs, from number `first` on."""

    type: ClassVar[FrameType] = FrameType.LIGHTS

    first: int
    colours: tuple[Rgb, ...]

    def pack(self) -> bytes:
        if not 0 <= self.first <= 0xFFFF:
            raise FrameError("lights first LED", f"{self.first} is not 0..65535")
        colours = b"".join(map(_colour_bytes, self.colours))
        return bytes((_Operation.RUN,)) + self.first.to_bytes(2, "little") + colours


@dataclass(frozen=True, slots=True)
class LightsKeys:
    """Colours of the LEDs under keys, by row and column; they count as single LEDs."""

    type: ClassVar[FrameType] = FrameType.LIGHTS

    keys: tuple[tuple[int, int, Rgb], ...] = field(repr=False)

    def pack(self) -> bytes:
        if not all(0 <= place <= 0xFF for key in self.keys for place in key[:2]):
            raise FrameError("lights key", "rows and columns are 0..255")
        keys = (bytes((row, column)) + _colour_bytes(rgb) for row, column, rgb in self.keys)
        return bytes((_Operation.KEYS,)) + b"".join(keys)


@dataclass(frozen=True, slots=True)
class LightsForget:
    """The single LEDs vanish, the fill stays."""

    type: ClassVar[FrameType] = FrameType.LIGHTS

    def pack(self) -> bytes:
        return bytes((_Operation.FORGET,))


LightsMessage = LightsOff | LightsFill | LightsRun | LightsKeys | LightsForget


def unpack_lights(payload: bytes) -> LightsMessage:
    """The message in a LIGHTS payload.

    Raises:
        FrameError: a reserved operation or effect, or bytes are missing.
    """
    if not payload:
        raise FrameError("lights", "empty payload")
    operation, rest = payload[0], payload[1:]
    match operation:
        case _Operation.OFF:
            return LightsOff()
        case _Operation.FILL:
            if len(rest) < 4:
                raise FrameError("lights fill", f"{len(rest)} bytes, needs 4")
            if rest[0] > max(LightEffect):
                raise FrameError("lights effect", f"{rest[0]} is reserved")
            return LightsFill(LightEffect(rest[0]), Rgb(*rest[1:4]))
        case _Operation.RUN:
            if len(rest) < 5 or (len(rest) - 2) % 3:
                raise FrameError("lights run", f"{len(rest)} bytes hold no whole colours")
            colours = tuple(Rgb(*rest[i : i + 3]) for i in range(2, len(rest), 3))
            return LightsRun(int.from_bytes(rest[:2], "little"), colours)
        case _Operation.FORGET:
            return LightsForget()
        case _Operation.KEYS:
            if not rest or len(rest) % _KEY_BYTES:
                raise FrameError("lights keys", f"{len(rest)} bytes hold no whole keys")
            places = range(0, len(rest), _KEY_BYTES)
            return LightsKeys(
                tuple((rest[i], rest[i + 1], Rgb(*rest[i + 2 : i + 5])) for i in places)
            )
        case _:
            raise FrameError("lights operation", f"{operation} is reserved")


def _colour_bytes(colour: Rgb) -> bytes:
    return bytes((colour.red, colour.green, colour.blue))
