# SPDX-License-Identifier: Apache-2.0
"""The firmware core (core/*.c) as a Python object: the inside of a virtual keyboard.

Nothing of the protocol is repeated here; every answer comes from the C code that a real board runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from firmware_bridge._core import ffi, lib
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.display.image import from_pixel_rows, pixel_rows
from firmware_bridge.lights.overlay import Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.messages import Status

if TYPE_CHECKING:
    from firmware_bridge._core import CData

_CLOCK_MASK = 0xFFFF_FFFF
_NO_LED = 0xFFFF
UID_BYTES = 6


@dataclass(frozen=True, slots=True)
class BoardConfig:
    """What a virtual board has. Sizes are those of the panel as it is wired, before rotation.

    `rotation` counts quarter turns clockwise from the host's picture to the panel. Upright panels of
    up to 128x128 pixels, reports of 32..64 bytes and 256 LEDs fit the compiled core. `key_leds` tells
    the LED under the key at a row and column; a board that knows any has the feature KEY_LIGHTS too.
    `via_version` is that of the VIA beside the core; a board that has one has the feature VIA_FORM too.
    """

    report_length: int = 32
    panel_width: int = 128
    panel_height: int = 32
    rotation: int = 0
    led_count: int = 16
    features: Feature = (
        Feature.KEYS
        | Feature.MACROS
        | Feature.TEXT
        | Feature.BITMAP
        | Feature.LIGHTS
        | Feature.STATUS
        | Feature.CAPTURE
        | Feature.ACCEPT
    )
    uid: bytes = b"THOCK\x01"
    build: int = 1
    key_leds: Mapping[tuple[int, int], int] = field(default_factory=dict, hash=False)
    via_version: int = 0


class _Outlet:
    """Carries reports from C to the owner's callback, and the callback's exception back.

    `key_leds` are the LEDs under the keys, by row and column.
    """

    def __init__(
        self, send: Callable[[bytes], bool], key_leds: Mapping[tuple[int, int], int]
    ) -> None:
        self.send = send
        self.key_leds = key_leds
        self.error: BaseException | None = None

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


def _keep_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """An exception cannot cross C: it waits in the outlet until the call into C returns."""
    assert traceback is not None
    ffi.from_handle(traceback.tb_frame.f_locals["context"]).error = error


@ffi.def_extern(name="send_report", error=False, onerror=_keep_error)
def _send_report(context: CData, report: CData, length: int) -> bool:
    outlet: _Outlet = ffi.from_handle(context)
    return bool(outlet.send(bytes(ffi.buffer(report, length))))


@ffi.def_extern(name="led_of_key", error=_NO_LED, onerror=_keep_error)
def _led_of_key(context: CData, row: int, column: int) -> int:
    outlet: _Outlet = ffi.from_handle(context)
    return outlet.key_leds.get((row, column), _NO_LED)


class FirmwareCore:
    """One running firmware core. Not thread-safe: call it from one thread, as a board's main loop does.

    `send` gets every report to the host (`report_length` bytes) and returns whether the link took
    it; the core offers it again later if not. `send` must not call back into the core. What it raises
    comes out of the method that was running, and the report counts as not taken.
    All clocks are milliseconds and wrap at 2^32.
    """

    def __init__(self, config: BoardConfig, send: Callable[[bytes], bool]) -> None:
        """Raises ValueError when the config asks for more than the core was compiled for."""
        if len(config.uid) != UID_BYTES:
            raise ValueError(f"uid must have {UID_BYTES} bytes")
        self.config = config
        self._outlet = _Outlet(send, config.key_leds)
        self._handle = ffi.new_handle(self._outlet)
        hooks = {"send": lib.send_report, "context": self._handle}
        if config.key_leds:
            hooks["led_of_key"] = lib.led_of_key
        self._hooks = ffi.new("thock_hooks_t *", hooks)
        self._core = ffi.new("thock_t *")
        lights = Feature.KEY_LIGHTS if config.key_leds else Feature(0)
        via = Feature.VIA_FORM if config.via_version else Feature(0)
        c_config = ffi.new(
            "thock_config_t *",
            {
                "report_length": config.report_length,
                "panel_width": config.panel_width,
                "panel_height": config.panel_height,
                "rotation": config.rotation,
                "led_count": config.led_count,
                "features": int(config.features | lights | via),
                "via_version": config.via_version,
            },
        )
        if not lib.thock_init(self._core, c_config, self._hooks, config.uid, config.build):
            raise ValueError("the firmware core has no room for this board")
        self._panel = bytearray(config.panel_width * config.panel_height // 8)
        self._page = ffi.new("uint8_t[]", max(config.panel_width, 1))
        self._rgb = ffi.new("uint8_t[3]")
        self._accepted = ffi.new("uint8_t[]", lib.THOCK_ACCEPT_BYTES)

    def receive(self, report: bytes, now_ms: int) -> bool:
        """One report from the host. False: not a frame of ours, the core did nothing."""
        if len(report) != self.config.report_length:
            raise ValueError(f"a report has {self.config.report_length} bytes")
        ours = lib.thock_receive(self._core, report, len(report), now_ms & _CLOCK_MASK)
        self._outlet.raise_error()
        return ours

    def other_request(self, report: bytes, now_ms: int) -> bool:
        """Another program's request, which is none of ours. True: the core answers it itself, later."""
        late = lib.thock_other_request(self._core, report, len(report), now_ms & _CLOCK_MASK)
        self._outlet.raise_error()
        return late

    def task(self, now_ms: int) -> None:
        """One turn of the main loop: sends what waits, ends a subscription that was not renewed."""
        lib.thock_task(self._core, now_ms & _CLOCK_MASK)
        self._outlet.raise_error()

    def key_event(self, row: int, column: int, keycode: int, pressed: bool, now_ms: int) -> bool:
        """A key went down or up. False: nobody asked for keys, or the ring is full."""
        return lib.thock_key_event(self._core, row, column, keycode, pressed, now_ms & _CLOCK_MASK)

    def macro_event(self, number: int, pressed: bool, now_ms: int) -> bool:
        """A macro key went down or up. False: nobody asked for macros, or the ring is full."""
        return lib.thock_macro_event(self._core, number, pressed, now_ms & _CLOCK_MASK)

    def begin_capture(self, now_ms: int) -> bool:
        """From now on keys go to the host only. False: the host asked for no captures, or the ring is full."""
        return lib.thock_begin_capture(self._core, now_ms & _CLOCK_MASK)

    def end_capture(self, now_ms: int) -> None:
        """The end of `begin_capture`."""
        lib.thock_end_capture(self._core, now_ms & _CLOCK_MASK)

    @property
    def capturing(self) -> bool:
        return lib.thock_capturing(self._core)

    def captured_key_event(
        self, row: int, column: int, keycode: int, pressed: bool, now_ms: int
    ) -> bool:
        """A key that the board kept from the computer; see `key_event`."""
        return lib.thock_captured_key_event(
            self._core, row, column, keycode, pressed, now_ms & _CLOCK_MASK
        )

    def accept(self, now_ms: int) -> str:
        """The accept key was pressed: what the board has to type now, may be empty."""
        count = lib.thock_accept(self._core, self._accepted, now_ms & _CLOCK_MASK)
        return bytes(ffi.buffer(self._accepted, count)).decode("ascii")

    @property
    def subscribed(self) -> bool:
        return lib.thock_subscribed(self._core)

    @property
    def status(self) -> Status:
        return Status(lib.thock_status(self._core))

    @property
    def display_taken(self) -> bool:
        """True while the host's picture or status glyph is shown instead of the board's own screen."""
        return lib.thock_display_taken(self._core)

    def dirty_pages(self) -> frozenset[int]:
        """Panel pages that changed since they were fetched last."""
        mask = lib.thock_display_dirty(self._core)
        return frozenset(page for page in range(16) if mask >> page & 1)

    def panel(self) -> BitmapFrame:
        """What the panel shows, in its own orientation; fetches the pages that changed."""
        width = self.config.panel_width
        for page in self.dirty_pages():
            lib.thock_render_page(self._core, page, self._page)
            self._panel[page * width : (page + 1) * width] = bytes(ffi.buffer(self._page, width))
        return BitmapFrame(width, self.config.panel_height, bytes(self._panel))

    def picture(self) -> BitmapFrame:
        """What the panel shows, turned back to how the host sees it."""
        panel = self.panel()
        if self.config.rotation == 0:
            return panel
        rows: Sequence[Sequence[int]] = pixel_rows(panel)
        for _ in range(self.config.rotation):
            rows = list(zip(*rows, strict=True))[::-1]  # a quarter turn back, counterclockwise
        return from_pixel_rows(rows)

    def led_colors(self, now_ms: int) -> tuple[Rgb | None, ...]:
        """The overlay's colour of every LED; None where the board's own lighting shows."""
        return tuple(
            self._led_color(led, now_ms & _CLOCK_MASK) for led in range(self.config.led_count)
        )

    def _led_color(self, led: int, now_ms: int) -> Rgb | None:
        if not lib.thock_led_color(self._core, led, now_ms, self._rgb):
            return None
        return Rgb(*bytes(ffi.buffer(self._rgb, 3)))
