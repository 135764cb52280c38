# SPDX-License-Identifier: Apache-2.0
"""The whole of Thock on a virtual keyboard: board, link, companion, engine, wired once."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from app.companion.core import Companion, Mailbox
from app.companion.cycles import pass_over_what_lives
from app.companion.state import CompanionState
from app.demo.board import BY_USAGE, KEY_LEDS, LED_COUNT
from app.demo.latency import LatencyTable
from app.log import forbid_core_dumps
from app.models.catalogue import title_of
from app.settings import Settings
from engine.client import MODEL_ENGINE, EngineClient
from engine.texts import Text
from firmware_bridge.events import BridgeEvent, KeyPressed
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.typist import KeyStroke
from firmware_bridge.link import Link
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.replay import RecordingTransport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport

GEOMETRIES = {
    f"{width}x{height}": (width, height)
    for width, height in ((128, 32), (128, 64), (64, 128), (64, 48))
}


@dataclass(frozen=True, slots=True)
class StationOptions:
    """What `thock demo` can choose."""

    model: Path
    geometry: str = "128x64"
    engine_argv: Sequence[str] = MODEL_ENGINE
    record: Path | None = None
    settings: Settings = field(default_factory=Settings)


class KeyTally:
    """How many keys there were, and a checksum of their order; the keys themselves are not kept."""

    def __init__(self) -> None:
        self._count = 0
        self._checksum = 0

    def add(self, usage: int) -> None:
        self._count += 1
        self._checksum = zlib.crc32(usage.to_bytes(2, "little"), self._checksum)

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyTally):
            return NotImplemented
        return (self._count, self._checksum) == (other._count, other._checksum)

    def __repr__(self) -> str:
        return f"KeyTally({self._count} keys)"


class DemoStation:
    """Start it with `with`. `typed` and `heard` tell keys at the two ends of the way in.

    Every figure in `latency` is measured here: the input path is the time for which a press holds up
    the finger, the answers are those that the companion timed from the key to the first answer.
    """

    def __init__(self, options: StationOptions) -> None:
        width, height = GEOMETRIES[options.geometry]
        self.options = options
        self.latency = LatencyTable()
        self.keyboard = VirtualKeyboard(
            BoardConfig(
                panel_width=width, panel_height=height, led_count=LED_COUNT, key_leds=KEY_LEDS
            )
        )
        self._mailbox = Mailbox()
        self.engine = EngineClient(
            self._mailbox.post, self._mailbox.engine_changed, argv=options.engine_argv
        )
        self.link = Link(self._open_transport, self._hear)
        self.companion = Companion(self._mailbox, self.link, self.engine, options.settings)
        self.typed = KeyTally()
        self.heard = KeyTally()
        self._changed = threading.Condition()
        self._last_request = 0
        self.companion.subscribe(self._note_state)
        self.companion.subscribe(pass_over_what_lives())

    def __enter__(self) -> DemoStation:
        forbid_core_dumps()
        self.companion.start()
        self.link.start()
        settings = self.options.settings
        self.engine.start(
            self.options.model, settings.max_context, settings.engine, settings.remote.server(),
            settings.suggest.context_tokens,
            residency=settings.residency, title=title_of(Path(self.options.model)),
        )  # fmt: skip
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.companion.stop()
        self.link.stop()
        self.engine.stop()

    @property
    def state(self) -> CompanionState:
        return self.companion.state

    def stroke(self, stroke: KeyStroke, hold_s: float = 0.0) -> None:
        """Press one key with its modifiers, hold it, let go."""
        for usage, pressed in stroke.actions():
            self.key(usage, pressed)
            if pressed and usage == stroke.usage and hold_s:
                time.sleep(hold_s)

    def key(self, usage: int, pressed: bool) -> None:
        """One key of the board goes down or up."""
        place = BY_USAGE.get(usage)
        row, column = (place.row, place.column) if place else (None, None)
        started = time.perf_counter()
        if pressed:
            self.typed.add(usage)
            self.keyboard.press(usage, row, column)
        else:
            self.keyboard.release(usage, row, column)
        self.latency.record(Text("key held up by the firmware"), time.perf_counter() - started)

    def change_display(self, geometry: str) -> None:
        """Have the keyboard come back with another display, as if another one were plugged in."""
        width, height = GEOMETRIES[geometry]
        self.keyboard.unplug()
        self.keyboard.config = replace(self.keyboard.config, panel_width=width, panel_height=height)
        self.keyboard.plug()

    def wait_until(self, done: Callable[[CompanionState], bool], timeout_s: float) -> bool:
        """Wait until `done` holds for the companion's state; False after `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: done(self.companion.state), timeout_s)

    def _open_transport(self) -> Transport:
        transport = VirtualTransport(self.keyboard)
        if self.options.record is None:
            return transport
        return RecordingTransport(transport, self.options.record)

    def _hear(self, event: BridgeEvent) -> None:
        if isinstance(event, KeyPressed):
            self.heard.add(event.keycode)
        self._mailbox.post(event)

    def _note_state(self, state: CompanionState) -> None:
        with self._changed:
            latency = state.latency
            if latency is not None and latency.request != self._last_request:
                self._last_request = latency.request
                mode = Text(latency.mode.value)
                name = (
                    Text("{mode}: key to ready answer", mode=mode)
                    if latency.is_ready
                    else Text("{mode}: key to answer", mode=mode)
                )
                self.latency.record(name, latency.milliseconds / 1e3)
            self._changed.notify_all()
