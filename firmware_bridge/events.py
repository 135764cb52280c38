# SPDX-License-Identifier: Apache-2.0
"""What a keyboard tells the companion. Past tense, immutable; key content is left out of `repr`."""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.protocol.capabilities import Capabilities


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """A key went down. `keycode` is a HID usage of page 7, or a QMK keycode above 0xFF.

    `captured`: it went to the companion only, the computer did not get it.
    `device_ms` is the firmware's clock (16 bit, wraps), `host_s` is `time.monotonic()` on arrival.
    """

    keycode: int = field(repr=False)
    row: int = field(repr=False)
    column: int = field(repr=False)
    device_ms: int
    host_s: float
    captured: bool = False


@dataclass(frozen=True, slots=True)
class KeyReleased:
    """A key went up; also sent by the link for every key still down when the link is lost.

    `captured` as its press was, also after the end of the capture.
    """

    keycode: int = field(repr=False)
    row: int = field(repr=False)
    column: int = field(repr=False)
    device_ms: int
    host_s: float
    captured: bool = False


@dataclass(frozen=True, slots=True)
class CaptureStarted:
    """The person pressed a capture key: until CaptureEnded, keys that could type go to the companion only."""

    device_ms: int
    host_s: float


@dataclass(frozen=True, slots=True)
class CaptureEnded:
    """Keys go to the computer again; also sent by the link when it is lost in a capture."""

    device_ms: int
    host_s: float


@dataclass(frozen=True, slots=True)
class SuggestionAccepted:
    """The accept key typed what was offered with `Link.show`: `count` characters, namely `text`.

    No KeyPressed tells of them. `text` is empty where the link no longer knows the offer. A press that
    typed nothing gives no such event, only `MacroTriggered` of the accept key.
    """

    text: str = field(repr=False)
    count: int
    device_ms: int
    host_s: float


@dataclass(frozen=True, slots=True)
class MacroTriggered:
    """A macro or companion key was pressed; `number` is its index in the firmware."""

    number: int
    device_ms: int
    host_s: float


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """`count` events were lost (ring overflow in the firmware, or reports lost on the way)."""

    count: int


@dataclass(frozen=True, slots=True)
class LinkReady:
    """HELLO and SUBSCRIBE were answered; output goes through from now on."""

    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The device went away or fell silent; the link tries again by itself."""

    reason: str


BridgeEvent = (
    KeyPressed
    | KeyReleased
    | MacroTriggered
    | CaptureStarted
    | CaptureEnded
    | SuggestionAccepted
    | EventsDropped
    | LinkReady
    | LinkLost
)
