# SPDX-License-Identifier: Apache-2.0
"""One keyboard port over what there is: a board with the Thock module, else the lights of one without it, and
lights that OpenRGB drives.

The companion sees one keyboard at a time. A board without the module shows as one that has lights only; its
keys come from nowhere.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from app.companion.away import Away
from app.settings import LightsSettings
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link import Link
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.link_state import LinkProblem
from firmware_bridge.protocol.messages import Offer, Status
from firmware_bridge.via.stock_lights import StockLights

_log = logging.getLogger(__name__)

Listener = Callable[[BridgeEvent], None]


class Lights(Protocol):
    """The light side of `Link`'s port, on a thread of its own: `StockLights`, `OpenRgbLights`."""

    def start(self) -> None: ...

    def stop(self) -> bool: ...

    def set_lights(self, overlay: LightOverlay) -> None: ...

    def release(self) -> None: ...


class AnyKeyboard:
    """The person's keyboard, whatever firmware it has. Any thread may call; only `stop` and `suspend` wait.

    Events go to `listener` on the threads of the parts, never two at a time.
    """

    def __init__(
        self,
        listener: Listener,
        settings: LightsSettings,
        *,
        make_link: Callable[[Listener], Link],
        make_stock: Callable[[Listener], StockLights],
        make_openrgb: Callable[[LightsSettings], Lights],
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._make_stock = make_stock
        self._make_openrgb = make_openrgb
        self._lock = threading.RLock()
        self._watcher: Callable[[], None] = lambda: None
        self._link = make_link(self._from_link)
        self._link.watch_state(self._moved)
        self._stock: StockLights | None = None
        self._openrgb: Lights | None = None
        self._ending: list[threading.Thread] = []
        self._overlay = LightOverlay()
        self._has_board = False  # one with the module is connected
        self._other: LinkReady | None = None  # what the board without it said
        self._is_running = False
        self._visit = 0  # of the newest `_stock`: what older ones still say is not heard

    def start(self) -> None:
        """Begin to search."""
        with self._lock:
            self._is_running = True
            self._link.start()
            self._follow(self._settings)

    def stop(self) -> bool:
        """Give everything back and end all threads. False: one still waits for its device."""
        with self._lock:
            self._is_running = False
            parts = [part for part in (self._stock, self._openrgb) if part is not None]
            self._stock = self._openrgb = None
            for part in parts:
                self._end(part)
        is_done = self._link.stop()
        for thread in self._ending:
            thread.join()
        return is_done

    def configure(self, settings: LightsSettings) -> None:
        """The settings changed; returns at once."""
        with self._lock:
            if self._is_running and settings != self._settings:
                self._follow(settings)
            self._settings = settings

    def suspend(self, timeout_s: float = 2.0) -> bool:
        """The computer is about to sleep: set the person's lights back until `resume`, and wait for it."""
        stock, openrgb = self._stock, self._openrgb
        if openrgb is not None:
            openrgb.release()
        return stock is None or stock.suspend(timeout_s)

    def resume(self) -> None:
        """The computer is awake again."""
        with self._lock:
            if self._stock is not None:
                self._stock.resume()
            self._spread()

    @property
    def away(self) -> Away | None:
        """Set while another program has the keyboard; of two, the one that has the module counts."""
        for part in (self._link, None if self._has_board else self._stock):
            if part is None:
                continue
            problem = part.problem
            if problem in (LinkProblem.OTHER_PROGRAM, LinkProblem.LEFT_OPEN):
                return Away(part.advice, problem is LinkProblem.LEFT_OPEN)
        return None

    def watch_away(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever `away` may have changed, on any thread. Before `start`."""
        self._watcher = watcher

    def _moved(self) -> None:
        self._watcher()

    def come_back(self) -> None:
        """No other program has the keyboard open any more, says the person."""
        self._link.come_back()
        stock = self._stock
        if stock is not None:
            stock.come_back()

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        self._link.show(frame, offer)

    def set_reflex(self, reflex: Reflex | None) -> None:
        self._link.set_reflex(reflex)

    def allow(self, *, capture: bool, typing: bool) -> None:
        self._link.allow(capture=capture, typing=typing)

    def set_status(self, status: Status) -> None:
        self._link.set_status(status)

    def set_lights(self, overlay: LightOverlay) -> None:
        with self._lock:
            self._overlay = overlay
            self._link.set_lights(overlay)
            self._spread()

    def release(self) -> None:
        with self._lock:
            self._overlay = LightOverlay()
            self._link.release()
            self._spread()

    def _spread(self) -> None:
        """Show the overlay on everything that is not the board with the module."""
        if self._stock is not None:
            self._stock.set_lights(LightOverlay() if self._has_board else self._overlay)
        if self._openrgb is not None:
            self._openrgb.set_lights(self._overlay)

    def _follow(self, settings: LightsSettings) -> None:
        """Start and end the parts that `settings` want and do not want."""
        wants_stock = settings.enabled and settings.stock
        if wants_stock and self._stock is None:
            self._visit += 1
            self._stock = self._make_stock(partial(self._from_stock, self._visit))
            self._stock.watch_state(self._moved)
            self._stock.start()
        elif not wants_stock and self._stock is not None:
            self._end(self._stock)
            self._stock = None
            self._from_stock(self._visit, LinkLost("they are switched off"))
            self._visit += 1
        wants_openrgb = settings.enabled and settings.openrgb
        before = self._settings
        address = (settings.openrgb_host, settings.openrgb_port)
        has_moved = address != (before.openrgb_host, before.openrgb_port)
        if self._openrgb is not None and (has_moved or not wants_openrgb):
            self._end(self._openrgb)
            self._openrgb = None
        if wants_openrgb and self._openrgb is None:
            self._openrgb = self._make_openrgb(settings)
            self._openrgb.start()
        self._spread()

    def _end(self, part: Lights) -> None:
        """Stop `part` on a thread of its own: it waits until the lights are set back."""
        thread = threading.Thread(target=part.stop, name="thock-lights-end", daemon=True)
        self._ending = [*(t for t in self._ending if t.is_alive()), thread]
        thread.start()

    def _from_link(self, event: BridgeEvent) -> None:
        with self._lock:
            match event:
                case LinkReady():
                    if self._other is not None and not self._has_board:
                        self._listener(LinkLost("a keyboard with the Thock module came"))
                    self._has_board = True
                    self._listener(event)
                    self._spread()
                case LinkLost():
                    self._has_board = False
                    self._listener(event)
                    self._spread()
                    if self._other is not None:
                        self._listener(self._other)
                case _:
                    self._listener(event)

    def _from_stock(self, visit: int, event: BridgeEvent) -> None:
        with self._lock:
            if visit != self._visit:
                return
            was_there = self._other is not None
            self._other = event if isinstance(event, LinkReady) else None
            if isinstance(event, LinkReady):
                _log.info("no keyboard with the Thock module: the lights of another one are used")
            if not self._has_board and (was_there or self._other is not None):
                self._listener(event)
