# SPDX-License-Identifier: Apache-2.0
"""A virtual keyboard behind a pseudo-terminal: the serial board that every POSIX machine has."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import threading
import time
import tty

from firmware_bridge.errors import DeviceGoneError
from firmware_bridge.protocol.serial_framing import FrameReader, encode_report
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.transport.serial_port import SerialTransport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.transports import WrappedTransport

_IDENTITY = DeviceIdentity("serial", location="pty")


class SerialBoard:
    """`path` is the port to open. What it says besides reports, `say` writes."""

    def __init__(self, keyboard: VirtualKeyboard) -> None:
        """Raises DeviceGoneError if the keyboard is unplugged."""
        self._inside = VirtualTransport(keyboard)
        self._inside.open()
        self._still = threading.Event()
        self._master, self._slave = pty.openpty()  # ours stays open: a port outlives its readers
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        self._thread = threading.Thread(target=self._serve, name="serial board", daemon=True)
        self._gone = False
        self._thread.start()

    def say(self, data: bytes) -> None:
        os.write(self._master, data)

    def unplug(self) -> None:
        """Both ends vanish, as a USB port does, and as they do when the keyboard is unplugged."""
        self._gone = True
        self._inside.wake()
        self._thread.join()

    def stand_still(self) -> None:
        """The firmware hangs: the port stays, and nobody reads it."""
        self._still.set()

    def _serve(self) -> None:
        reader = FrameReader(self._inside.report_length)
        with contextlib.suppress(DeviceGoneError):
            while True:
                if self._still.is_set() and not self._gone:
                    time.sleep(0.002)
                elif select.select([self._master], [], [], 0)[0]:
                    for report in reader.feed(os.read(self._master, 4096)):
                        self._inside.write(report)
                elif self._gone:
                    break
                elif (answer := self._inside.read(0.002)) is not None:
                    os.write(self._master, encode_report(answer))
        self._inside.close()
        os.close(self._slave)
        os.close(self._master)


class SerialBoardTransport(WrappedTransport):
    """The port of a board that is there as long as it is open; each time under another path."""

    def __init__(self, keyboard: VirtualKeyboard) -> None:
        super().__init__(SerialTransport("", _IDENTITY))
        self._keyboard = keyboard
        self._board: SerialBoard | None = None

    def open(self) -> None:
        if self._board is None:
            self._board = SerialBoard(self._keyboard)
            self.inner = SerialTransport(self._board.path, _IDENTITY)
        super().open()

    def close(self) -> None:
        super().close()
        board, self._board = self._board, None
        if board is not None:
            board.unplug()
