# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""The colour overlay of docs/PROTOCOL.md, section LIGHTS: the colours and rhythms of the C core."""

_DONE, _N_LENGTH, _N_RANGE = 0, 3, 4


def _brightness(effect, now):
    """0..255. The phase hangs on the clock alone, so that a repeated frame does not flicker."""
    if effect == 1:
        wave = (now & 4095) >> 3  # breathe: 4.096 s
    elif effect == 2:
        wave = (now & 1023) >> 1  # pulse: 1.024 s
    else:
        return 255
    if wave > 255:
        wave = 511 - wave
    wave = wave * wave >> 8
    return wave + 24 - (wave * 24 >> 8)


class Lights:
    def __init__(self, count):
        self.count = count
        self.clear()

    def clear(self):
        self._fill = None  # (effect, red, green, blue)
        self._single = {}
        self.changed = True

    @property
    def active(self):
        return self._fill is not None or bool(self._single)

    @property
    def moving(self):
        """The colours change with the clock."""
        return self._fill is not None and self._fill[0] != 0

    def take(self, payload):
        """Obey a LIGHTS payload; 0, or the reason of the NAK."""
        if not payload:
            return _N_LENGTH
        kind = payload[0]
        if kind == 2:
            return self._run(payload)
        if kind > 3:
            return _N_RANGE
        if len(payload) != (5 if kind == 1 else 1):
            return _N_LENGTH
        if kind == 1:
            if payload[1] > 2:
                return _N_RANGE
            self._fill = tuple(payload[1:5])
        elif kind == 0:
            self.clear()
        else:
            self._single = {}
        self.changed = True
        return _DONE

    def _run(self, payload):
        if len(payload) < 6 or len(payload) % 3:
            return _N_LENGTH
        first = payload[1] | payload[2] << 8
        if first + (len(payload) - 3) // 3 > self.count:
            return _N_RANGE
        for i in range(3, len(payload), 3):
            self._single[first + (i - 3) // 3] = tuple(payload[i : i + 3])
        self.changed = True
        return _DONE

    def color(self, led, now):
        """(red, green, blue), or None where the board's own light shows."""
        if led in self._single:
            return self._single[led]
        if self._fill is None:
            return None
        scale = _brightness(self._fill[0], now) + 1
        return tuple(value * scale >> 8 for value in self._fill[1:])
