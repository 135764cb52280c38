# SPDX-License-Identifier: Apache-2.0
"""The keyboard that the settings name, and another one as soon as they name another.

To the companion a change is a keyboard that goes and one that comes: what it wants shown holds over it.
Ending a link waits for the device, so it is done on a thread of its own.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

from app.companion.away import Away
from app.companion.lights_port import Listener
from app.companion.run import StartableKeyboard
from app.lifecycle.host import HostState
from app.settings import LightsSettings
from firmware_bridge.display.frame import DisplayFrame
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.link_reflex import Reflex
from firmware_bridge.protocol.messages import Offer, Status

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenKeyboard:
    """One way to a keyboard, not started yet. `name` is its product name, once there is one.

    `away`, `come_back` and `watch_away`: as those of `AnyKeyboard`.
    """

    port: StartableKeyboard
    name: Callable[[], str]
    configure: Callable[[LightsSettings], None]
    away: Callable[[], Away | None] = lambda: None
    come_back: Callable[[], None] = lambda: None
    watch_away: Callable[[Callable[[], None]], None] = lambda _: None


Open = Callable[[str, LightsSettings, Listener], AbstractContextManager[OpenKeyboard]]
"""From the setting `keyboard` to a keyboard whose events the listener hears; closed at the end of the block."""

_Act = Callable[[StartableKeyboard], None]


class KeyboardSwitch:
    """A StartableKeyboard. `follow` is a listener of the host; `chosen` and `lights` are where it begins."""

    def __init__(self, open_: Open, chosen: str, lights: LightsSettings) -> None:
        self._open = open_
        self._chosen = chosen
        self._lights = lights
        self._listener: Listener = lambda _: None
        self._watcher: Callable[[], None] = lambda: None
        self._wishes: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="keyboard-switch", daemon=True)
        self._end = ExitStack()  # of the keyboard that is open
        self._is_ended = True
        self._lock = threading.Lock()  # guards these two; held while a keyboard is told
        self._now: OpenKeyboard | None = None
        self._wanted: dict[str, _Act] = {}
        # Another lock, because a keyboard may hold one of its own while its event is heard.
        self._hearing = threading.Lock()
        self._visit = 0  # of the keyboard that is open: what an older one still says is not heard
        self._is_connected = False

    def heard_by(self, listener: Listener) -> KeyboardSwitch:
        """Have `listener` hear the events of every keyboard, never two at a time. Before `start`."""
        self._listener = listener
        return self

    @property
    def name(self) -> str:
        """The product name of the keyboard; empty when there is none."""
        now = self._now
        return "" if now is None else now.name()

    @property
    def away(self) -> Away | None:
        """Set while another program has the keyboard."""
        now = self._now
        return None if now is None else now.away()

    def watch_away(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever `away` may have changed, on any thread. Before `start`."""
        self._watcher = watcher

    def come_back(self) -> None:
        """No other program has it open any more, says the person."""
        now = self._now
        if now is not None:
            now.come_back()

    def start(self) -> None:
        """Begin to search. Raises what opening the first keyboard raises."""
        self._enter(self._chosen)
        self._thread.start()

    def stop(self) -> bool:
        """End it all. False: a thread still waits for its device."""
        if self._thread.is_alive():
            self._wishes.put(None)
            self._thread.join()
        self._leave()
        return self._is_ended

    def follow(self, state: HostState) -> None:
        """The settings may have changed; returns at once."""
        settings = state.settings
        self._lights = settings.lights
        if settings.keyboard != self._chosen:
            self._chosen = settings.keyboard
            self._wishes.put(settings.keyboard)
        now = self._now
        if now is not None:
            now.configure(settings.lights)

    # ---------------------------------------------------------------- the port

    def show(self, frame: DisplayFrame, offer: Offer | None = None) -> None:
        # The offer was made on the keyboard before: the accept key of another one does not type it.
        self._want("show", lambda port: port.show(frame, offer), lambda port: port.show(frame))

    def set_reflex(self, reflex: Reflex | None) -> None:
        self._want("reflex", lambda port: port.set_reflex(reflex))

    def allow(self, *, capture: bool, typing: bool) -> None:
        self._want("allow", lambda port: port.allow(capture=capture, typing=typing))

    def set_status(self, status: Status) -> None:
        self._want("status", lambda port: port.set_status(status))

    def set_lights(self, overlay: LightOverlay) -> None:
        self._want("lights", lambda port: port.set_lights(overlay))

    def release(self) -> None:
        with self._lock:
            for kind in ("show", "status", "lights"):
                self._wanted.pop(kind, None)
            if self._now is not None:
                self._now.port.release()

    def _want(self, kind: str, act: _Act, later: _Act | None = None) -> None:
        """Do it now, and `later` (by default the same) with the next keyboard."""
        with self._lock:
            if self._now is not None:
                act(self._now.port)
            self._wanted[kind] = later or act

    # ---------------------------------------------------------------- one after the other

    def _work(self) -> None:
        while True:
            chosen = self._wishes.get()
            while chosen is not None and not self._wishes.empty():
                chosen = self._wishes.get()  # only the last one counts
            if chosen is None:
                return
            self._leave()
            try:
                self._enter(chosen)
            except Exception as error:  # noqa: BLE001  the thread's top
                _log.error("the keyboard could not be changed: %s", error)

    def _enter(self, chosen: str) -> None:
        with ExitStack() as end:
            hear = partial(self._hear, self._visit)
            opened = end.enter_context(self._open(chosen, self._lights, hear))
            with self._lock:
                for act in self._wanted.values():
                    act(opened.port)
                self._now = opened
            opened.watch_away(self._watcher)
            opened.port.start()
            end.callback(self._stop_port, opened.port)
            self._end = end.pop_all()

    def _leave(self) -> None:
        with self._lock:
            self._now = None
        with self._hearing:
            self._visit += 1
            if self._is_connected:
                self._is_connected = False
                self._listener(LinkLost("another keyboard was chosen"))
        self._watcher()
        self._end.close()

    def _stop_port(self, port: StartableKeyboard) -> None:
        self._is_ended = port.stop()

    def _hear(self, visit: int, event: BridgeEvent) -> None:
        with self._hearing:
            if visit != self._visit:
                return
            if isinstance(event, LinkReady | LinkLost):
                self._is_connected = isinstance(event, LinkReady)
            self._listener(event)
