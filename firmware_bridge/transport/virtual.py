# SPDX-License-Identifier: Apache-2.0
"""A keyboard without hardware: the firmware core behind something that behaves like its USB port.

The port has an IN queue of 64 reports per open handle, as Linux and Windows keep it. With one handle
a full queue makes the core keep its events, as a full endpoint does; with several, every handle gets
every report, and only the slow one misses some (hidraw and the Windows HID class do the same). While
no handle is open nobody polls the endpoint and nothing can be sent.

The keyboard has no thread. Its firmware runs whenever somebody touches or looks at it, with the time
of that moment, so nothing goes on unseen and an idle keyboard costs nothing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.firmware.virtual_board import VirtualBoard
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.inbox import Inbox
from firmware_bridge.lights.overlay import Rgb
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.base import DeviceIdentity

IN_QUEUE_REPORTS = (
    64  # Linux HIDRAW_BUFFER_SIZE; the Windows HID class is set to the same by hidapi
)


class VirtualKeyboard:
    """Keys to press, a panel and LEDs to look at, a plug to pull. Every method from any thread.

    No method waits for the host: the lock is held for one call into the firmware core at most.
    """

    def __init__(
        self,
        config: BoardConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_send: Callable[[bytes], None] = lambda report: None,
    ) -> None:
        """`on_send` gets each report at the moment at which the firmware sends it, and must return soon."""
        self.config = config or BoardConfig()
        self._clock = clock
        self._on_send = on_send
        self._lock = threading.RLock()
        self._handles: list[VirtualTransport] = []
        self._board: VirtualBoard | None = None
        self.plug()

    @property
    def plugged(self) -> bool:
        return self._board is not None

    def plug(self) -> None:
        """Connect and power the keyboard; nothing happens if it is."""
        with self._lock:
            if self._board is None:
                self._board = VirtualBoard(self.config, self._send)

    def unplug(self) -> None:
        """Take its power: the firmware forgets everything, open handles are dead."""
        with self._lock:
            self._board = None
            for handle in self._handles:
                handle._gone = True
                handle._inbox.put(None)
            self._handles.clear()

    def press(self, keycode: int, row: int | None = None, column: int | None = None) -> bool:
        """A key goes down. False: no host asked for keys, or the event was dropped, or no power.

        `keycode` is a HID usage or a QMK keycode. Without a position every keycode has its own.
        """
        return self._key(keycode, row, column, pressed=True)

    def release(self, keycode: int, row: int | None = None, column: int | None = None) -> bool:
        """A key goes up; see `press`."""
        return self._key(keycode, row, column, pressed=False)

    def macro(self, number: int) -> bool:
        """Companion key `number` goes down and up; see `press`. The accept key (4) types what was offered."""
        with self._lock:
            if self._board is None:
                return False
            now_ms = self._now_ms()
            taken = self._board.macro(number, now_ms)
            self._board.core.task(now_ms)
            return taken

    def begin_capture(self) -> bool:
        """The person presses the capture key: what is pressed from now on goes to the host only.

        False: no host allowed captures, or the event was dropped, or no power.
        """
        with self._lock:
            core = self._run()
            if core is None:
                return False
            begun = core.begin_capture(self._now_ms())
            self._run()
            return begun

    def end_capture(self) -> None:
        """The person lets the capture key go."""
        with self._lock:
            core = self._run()
            if core is not None:
                core.end_capture(self._now_ms())
                self._run()

    @property
    def capturing(self) -> bool:
        with self._lock:
            core = self._run()
            return core is not None and core.capturing

    @property
    def typed(self) -> str:
        """See `VirtualBoard.typed`; without power nothing is remembered."""
        with self._lock:
            return "" if self._board is None else self._board.typed

    @property
    def computer_keys(self) -> list[tuple[int, bool]]:
        """See `VirtualBoard.computer_keys`; without power nothing is remembered."""
        with self._lock:
            return [] if self._board is None else self._board.computer_keys

    def panel(self) -> BitmapFrame:
        """What the OLED shows now, as the host sees it; dark while the host has not taken it."""
        with self._lock:
            core = self._run()
            return self._dark_picture() if core is None else core.picture()

    def leds(self) -> tuple[Rgb | None, ...]:
        """The overlay's colour of each LED now; None where the board's own lighting shows."""
        with self._lock:
            core = self._run()
            if core is None:
                return (None,) * self.config.led_count
            return core.led_colors(self._now_ms())

    @property
    def display_taken(self) -> bool:
        """Whether the OLED shows something of the host's instead of the board's own screen."""
        with self._lock:
            core = self._run()
            return core is not None and core.display_taken

    @property
    def status(self) -> Status:
        with self._lock:
            core = self._run()
            return Status.IDLE if core is None else core.status

    @property
    def subscribed(self) -> bool:
        """Whether a host is subscribed."""
        with self._lock:
            core = self._run()
            return core is not None and core.subscribed

    def _key(self, keycode: int, row: int | None, column: int | None, *, pressed: bool) -> bool:
        row = keycode >> 8 if row is None else row
        column = keycode & 0xFF if column is None else column
        with self._lock:
            if self._board is None:
                return False
            now_ms = self._now_ms()
            taken = self._board.key(row, column, keycode, pressed, now_ms)
            self._board.core.task(now_ms)
            return taken

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _run(self) -> FirmwareCore | None:
        if self._board is None:
            return None
        self._board.core.task(self._now_ms())
        return self._board.core

    def _dark_picture(self) -> BitmapFrame:
        width, height = self.config.panel_width, self.config.panel_height
        if self.config.rotation % 2:
            width, height = height, width
        return BitmapFrame(width, height, bytes(width * height // 8))

    def _send(self, report: bytes) -> bool:
        """The core's send hook; runs under the lock."""
        self._on_send(report)
        taken = False
        for handle in self._handles:
            if len(handle._inbox) < IN_QUEUE_REPORTS:
                handle._inbox.put(report)
                taken = True
        return taken


class VirtualTransport:
    """One open handle of a virtual keyboard."""

    def __init__(self, keyboard: VirtualKeyboard, name: str = "virtual") -> None:
        self._keyboard = keyboard
        self._identity = DeviceIdentity("virtual", location=name, product="Thock virtual keyboard")
        # None: the reader is to look up. A queue of the interpreter's own, which wakes its reader soonest.
        self._inbox: Inbox[bytes | None] = Inbox()
        self._gone = True
        self._woken = False

    @property
    def identity(self) -> DeviceIdentity:
        return self._identity

    @property
    def report_length(self) -> int:
        return self._keyboard.config.report_length

    @property
    def wakeable(self) -> bool:
        return True

    def wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._inbox.put(None)

    def open(self) -> None:
        keyboard = self._keyboard
        with keyboard._lock:
            if not keyboard.plugged:
                raise DeviceGoneError("the virtual keyboard is unplugged")
            if self not in keyboard._handles:
                self._inbox = Inbox()
                if self._woken:
                    self._inbox.put(None)
                self._gone = False
                keyboard._handles.append(self)

    def read(self, timeout_s: float) -> bytes | None:
        keyboard = self._keyboard
        if self._inbox.empty():
            with keyboard._lock:
                self._check_open()
                keyboard._run()  # a place that became free may take an event that waits
        try:
            report = self._inbox.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._check_open()
        if report is None:
            self._woken = False
        return report

    def write(self, report: bytes) -> None:
        if not 0 < len(report) <= self.report_length:
            raise ValueError(f"a report has 1 to {self.report_length} bytes")
        keyboard = self._keyboard
        with keyboard._lock:
            self._check_open()
            board = keyboard._board
            assert board is not None
            now_ms = keyboard._now_ms()
            board.core.receive(report.ljust(self.report_length, b"\0"), now_ms)
            board.core.task(now_ms)

    def close(self) -> None:
        with self._keyboard._lock:
            self._gone = True
            self._inbox = Inbox()
            if self in self._keyboard._handles:
                self._keyboard._handles.remove(self)

    def _check_open(self) -> None:
        if self._gone:
            raise DeviceGoneError("the virtual keyboard was unplugged or its handle is closed")
