# SPDX-License-Identifier: Apache-2.0
"""What a keyboard said about itself in CAPS (docs/PROTOCOL.md)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Feature(enum.IntFlag):
    """Parts of the protocol that the firmware was built with.

    CAPTURE: a key sends the keys after it to the host only. ACCEPT: a key types a piece of the shown text.
    POLL: key events come as answers to POLL only. KEY_LIGHTS: LIGHTS can name keys instead of LEDs. VIA_FORM:
    frames can begin like VIA's answer to the question for its version.
    """

    KEYS = 1
    MACROS = 2
    TEXT = 4
    BITMAP = 8
    LIGHTS = 16
    STATUS = 32
    CAPTURE = 64
    ACCEPT = 128
    POLL = 256
    KEY_LIGHTS = 512
    VIA_FORM = 1024


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Sizes in pixels, characters and LEDs. A board without a display has width = height = 0."""

    protocol_low: int
    protocol_high: int
    report_length: int
    uid: bytes = field(repr=False)
    width: int
    height: int
    rotation: int
    columns: int
    rows: int
    led_count: int
    features: Feature
    ring_size: int
    build: int

    @property
    def has_display(self) -> bool:
        return self.width > 0 and self.height > 0
