# SPDX-License-Identifier: Apache-2.0
"""Firmware of others that keeps state, byte for byte as its sources answer; peers.toml has a row for each.

A peer is a function from a report to the reports that come back, for
`tests.helpers.transports.ScriptedTransport`. Whoever sends one of the requests that change a keyboard for
good springs the trap: the exception says which, and `Peer.trapped` keeps it for threads that swallow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

REPORT_LENGTH = 32
UNHANDLED = 0xFF

# qmk_firmware quantum/via.h: set keycode, keymap reset, custom save, EEPROM reset, bootloader, macro buffer,
# macro reset. Keychron keychron_raw_hid.c: AA wireless update, AB factory test.
FORBIDDEN = {
    0x05: "set keycode", 0x06: "reset keymap", 0x09: "save", 0x0A: "EEPROM reset", 0x0B: "bootloader",
    0x0F: "set macro buffer", 0x10: "reset macros", 0xAA: "Keychron update", 0xAB: "Keychron factory test",
}  # fmt: skip
_VIAL_FORBIDDEN = {0x04: "set encoder", 0x06: "unlock", 0x08: "lock", 0x0B: "set", 0x0C: "reset"}


class ForbiddenWriteError(AssertionError):
    """A request that nobody may send."""


@dataclass
class Peer:
    """One device. `answer` changes the report in place as the firmware does; None: no answer."""

    serial: str = ""
    report_length: int = REPORT_LENGTH
    writes: list[bytes] = field(default_factory=list)
    trapped: list[bytes] = field(default_factory=list)
    forbidden: dict[int, str] = field(default_factory=dict)  # besides FORBIDDEN

    def __call__(self, report: bytes) -> Iterator[bytes]:
        report = report.ljust(self.report_length, b"\0")
        self.writes.append(report)
        self._trap(report)
        yield from self.reply(report)

    def reply(self, report: bytes) -> Iterator[bytes]:
        """What comes back for a whole report."""
        buffer = bytearray(report)
        if self.answer(buffer):
            yield bytes(buffer)

    def answer(self, data: bytearray) -> bool:
        """Whether `data` comes back."""
        raise NotImplementedError

    def power_cycle(self) -> None:
        """RAM is lost, settings come from the EEPROM."""

    def _trap(self, report: bytes) -> None:
        inner = report[6:] if report[0] == 0xDD and any(report[1:5]) else report
        reason = FORBIDDEN.get(inner[0]) or self.forbidden.get(inner[0])
        if inner[0] == 0xFE:
            reason = reason or _VIAL_FORBIDDEN.get(inner[1])
        if reason:
            self.trapped.append(report)
            raise ForbiddenWriteError(f"{report.hex()}: {reason}")


@dataclass
class LightSettings:
    """What QMK keeps of one kind of lighting: its own numbers, not those that VIA shows."""

    effect: int = 5
    speed: int = 128
    hue: int = 100
    saturation: int = 200
    value: int = 20
    maximum: int = 255  # RGB_MATRIX_MAXIMUM_BRIGHTNESS, RGBLIGHT_LIMIT_VAL or BACKLIGHT_LEVELS
    enabled: bool = True

    def __post_init__(self) -> None:
        self.value = min(self.value, self.maximum)

    def copy(self) -> LightSettings:
        return LightSettings(**vars(self))


class ViaBoard(Peer):
    """QMK with VIA >= 11: quantum/via.c, `via_custom_value_command` and the functions below it."""

    def __init__(self, version: int, channels: Iterable[int] = (3,), maximum: int = 255) -> None:
        super().__init__()
        self.version = version
        self.eeprom = {channel: LightSettings(maximum=maximum) for channel in channels}
        if 1 in channels:
            self.eeprom[1].effect, self.eeprom[1].value = 0, 1
        self.lights = {channel: light.copy() for channel, light in self.eeprom.items()}
        self.resets_colour = (
            False  # some firmware loads colour and brightness anew with each effect
        )

    def power_cycle(self) -> None:
        self.lights = {channel: light.copy() for channel, light in self.eeprom.items()}

    def answer(self, data: bytearray) -> bool:
        if data[0] == 0x01:
            data[1:3] = self.version.to_bytes(2, "big")
        elif data[0] in (0x07, 0x08) and data[1] in self.lights:
            self._value(data, data[1])
        elif not self._keyboard_value(data):
            data[0] = UNHANDLED
        return True

    def _keyboard_value(self, data: bytearray) -> bool:
        if data[0] == 0x02 and data[1] in range(1, 5 + (self.version >= 13)):
            data[2:6] = b"\0\0\0\7"
            return True
        if data[0] == 0x11:
            data[1] = 4
        elif data[0] == 0x0C:
            data[1] = 16
        elif data[0] == 0x0D:
            data[1:3] = b"\2\0"
        elif data[0] in (0x12, 0x0E):
            start = int.from_bytes(data[1:3], "big")
            data[4 : 4 + data[3]] = bytes((start + i) & 0xFF for i in range(data[3]))
        elif data[0] == 0x04:
            data[4:6] = bytes((data[1], data[3]))
        else:
            return False
        return True

    def _value(self, data: bytearray, channel: int) -> None:
        light = self.lights[channel]
        setting = data[0] == 0x07
        match channel, data[2]:
            case _, 1:
                self._brightness(data, light, setting)
            case 1, 2:  # breathing or not
                light.effect = min(data[3], 1) if setting else light.effect
                data[3] = light.effect
            case _, 2:
                data[3] = self._effect(light, data[3] if setting else None)
            case ((2 | 3 | 5), 3):
                light.speed = data[3] if setting else light.speed
                data[3] = light.speed
            case ((2 | 3), 4):
                if setting:
                    light.hue, light.saturation = data[3], data[4]
                data[3:5] = bytes((light.hue, light.saturation))

    def _brightness(self, data: bytearray, light: LightSettings, setting: bool) -> None:
        # rgb_matrix: set by scale8 (x * (max + 1) / 256), get by v * 255 / max; the others: by * max / 255.
        if not setting:
            data[3] = light.value * 255 // light.maximum
        elif data[1] in (3, 5):
            light.value = data[3] * (light.maximum + 1) >> 8
        else:
            light.value = data[3] * light.maximum // 255

    def _effect(self, light: LightSettings, new: int | None) -> int:
        if new is not None:
            light.enabled = new != 0
            light.effect = new or light.effect
            if self.resets_colour:
                light.hue, light.saturation, light.value = 0, 255, light.maximum
        return light.effect if light.enabled else 0


class OldViaBoard(ViaBoard):
    """VIA 9: qmk_firmware before 2022-11 and vial-qmk quantum/via.c, `via_qmk_rgblight_set_value`: no channels,
    brightness as it is. A build with both kinds of lighting hands every request to both.
    """

    def __init__(self, version: int = 9, backlight: bool = True, rgblight: bool = True) -> None:
        super().__init__(version, ())
        if backlight:
            self.eeprom[1] = LightSettings(maximum=3, value=2, effect=0)
        if rgblight:
            self.eeprom[2] = LightSettings()
        self.power_cycle()

    def answer(self, data: bytearray) -> bool:
        if data[0] not in (0x07, 0x08):
            return super().answer(data)
        if not self.lights:
            data[0] = UNHANDLED
            return True
        ids = {9: (1, 1), 10: (1, 2), 0x80: (2, 1), 0x81: (2, 2), 0x82: (2, 3), 0x83: (2, 4)}
        channel, value = ids.get(data[1], (0, 0))
        if channel in self.lights:
            wide = bytearray(data[:1]) + bytes((channel, value)) + data[2:]
            self._value(wide, channel)
            data[2:] = wide[3:]
        return True


class VialBoard(OldViaBoard):
    """vial-qmk quantum/via.c, vial.c and vialrgb.c. While it is being unlocked it returns every request but
    six of Vial's as it came.
    """

    UID = bytes.fromhex("1b187df221f62948")

    def __init__(self, rgb_leds: int = 0, unlocking: bool = False) -> None:
        super().__init__(9, backlight=False, rgblight=not rgb_leds)
        self.serial = "vial:f64c2b3c"
        self.unlocking = unlocking
        self.rgb_leds = rgb_leds
        self.modes: tuple[int, ...] = (1, 2, 3, 6, 13)
        self.rgb = LightSettings(effect=13, maximum=200)
        self.painted = [(0, 0, 0)] * rgb_leds

    def power_cycle(self) -> None:
        super().power_cycle()
        self.rgb = LightSettings(effect=13, maximum=200)

    def answer(self, data: bytearray) -> bool:
        if data[0] == 0xFE:
            self._vial(data)
            return True
        if self.unlocking:
            return True
        if data[0] in (0x07, 0x08) and self.rgb_leds:
            self._rgb(data)
            return True
        return super().answer(data)

    def _vial(self, data: bytearray) -> None:
        if data[1] == 0x00:
            data[:] = b"\6\0\0\0" + self.UID + bytes((bool(self.rgb_leds),)) + bytes(19)
        elif data[1] == 0x01:
            data[:4] = (700).to_bytes(4, "little")
        elif data[1] == 0x02:
            page = int.from_bytes(data[2:4], "little")
            data[:] = bytes((page * 37 + i * 11) & 0xFF for i in range(32))
        elif data[1] == 0x05:
            data[:] = bytes((0, self.unlocking, 0, 1, 2, 3)) + b"\xff" * 26

    def _rgb(self, data: bytearray) -> None:
        light = self.rgb
        hsv = (light.speed, light.hue, light.saturation, light.value)
        match data[0], data[1]:
            case 0x08, 0x40:
                data[2:5] = bytes((1, 0, light.maximum))
            case 0x08, 0x41:
                data[2:4] = (light.effect if light.enabled else 0).to_bytes(2, "little")
                data[4:8] = bytes(hsv)
            case 0x08, 0x42:
                above = int.from_bytes(data[2:4], "little")
                ids = b"".join(i.to_bytes(2, "little") for i in self.modes if i > above)
                data[2:] = ids.ljust(30, b"\xff")
            case 0x08, 0x43:
                data[2:4] = self.rgb_leds.to_bytes(2, "little")
            case 0x07, 0x41:
                mode = int.from_bytes(data[2:4], "little")
                light.enabled = mode != 0
                light.effect = mode if mode in self.modes else light.effect
                light.speed, light.hue, light.saturation = data[4:7]
                light.value = min(data[7], light.maximum)
            case 0x07, 0x42:
                first = int.from_bytes(data[2:4], "little")
                for i in range(data[4]):
                    if first + i < self.rgb_leds:
                        hue, saturation, value = data[5 + 3 * i : 8 + 3 * i]
                        self.painted[first + i] = (hue, saturation, min(value, light.maximum))


class KeychronBoard(ViaBoard):
    """Keychron/qmk_firmware keyboards/keychron/common/keychron_raw_hid.c, kc_raw_hid_rx: A0 to AC, then VIA."""

    def __init__(self) -> None:
        super().__init__(12)

    def answer(self, data: bytearray) -> bool:
        if data[0] == 0xA0:
            data[1:4] = b"\2\0\2"
        elif data[0] == 0xA2:
            data[1:4] = b"\0\x83\3"
        elif data[0] not in range(0xA0, 0xAD):
            return super().answer(data)
        return True


class SignalRgbBoard(ViaBoard):
    """A board of SRGBmods/QMK-Binaries: VIA, and 21 to 28 for SignalRGB (its raw_hid functions)."""

    def answer(self, data: bytearray) -> bool:
        answers = {0x21: b"\x15\0\1\2", 0x22: b"\x16\1\0\5", 0x27: b"\x1b\x44", 0x28: b"\x1c\1"}
        if data[0] in (0x21, 0x22, 0x27, 0x28):
            data[:] = (bytes((data[0],)) + answers[data[0]][1:]).ljust(REPORT_LENGTH, b"\0")
            return True
        if data[0] in range(0x23, 0x27):
            return False
        return super().answer(data)


class ViableBoard(ViaBoard):
    """viable-kb/qmk modules/viable-kb/core/client_wrapper.c: DD, client id, protocol FE, VIA inside."""

    def __init__(self) -> None:
        super().__init__(12)
        self.serial = "viable:1b187df2"
        self.ids = iter(range(0x00050001, 0x00060000))
        self.valid: set[int] = set()

    def expire(self) -> None:
        """As after 120 s, or after the board restarted."""
        self.valid.clear()

    def answer(self, data: bytearray) -> bool:
        if data[0] == 0xDF:
            return False
        if data[0] != 0xDD:
            return super().answer(data)
        client = int.from_bytes(data[1:5], "little")
        if client == 0:
            new = next(self.ids)
            self.valid.add(new)
            data[25:31] = new.to_bytes(4, "little") + (120).to_bytes(2, "little")
        elif client not in self.valid or data[5] != 0xFE:
            code = 3 if client in self.valid else 1
            data[5:] = bytes((0xFF, code)).ljust(27, b"\0")
        else:
            inner = bytearray(data[6:] + bytes(6))
            super().answer(inner)
            data[6:] = inner[:26]
        return True
