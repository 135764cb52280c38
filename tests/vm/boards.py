# SPDX-License-Identifier: Apache-2.0
"""Keyboards of the test machine: the firmware core behind a port of the kernel, in a process of their own.

In another process, so that the interpreter lock of the program under test plays no part in how fast the
keyboard answers.
"""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import select
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_board import VirtualBoard
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.lights.overlay import Rgb
from firmware_bridge.protocol.frames import VIA_VERSION, FrameType, type_of
from firmware_bridge.protocol.messages import Status
from firmware_bridge.protocol.serial_framing import FrameReader, encode_report
from tests.vm.ports import GadgetPort, Port, UhidPort, UsbNames

SLOWER = 5
_TURN_S = 0.002  # of the firmware's main loop, when nothing comes


class Firmware:
    """One board's main loop, called by the server: what lives in the microcontroller."""

    def __init__(self, config: BoardConfig, names: UsbNames) -> None:
        self._config = config
        self._names = names
        self._port: Port | None = None
        self._echo: Callable[[bytes], bytes] | None = None
        self._unplug_at = 0
        self._key_sent_at: float | None = None
        self._answers: list[float] = []
        self.reports = 0
        self.restart()

    def restart(self) -> None:
        """The controller is reset: everything is forgotten, the port stays."""
        self._raw = VirtualBoard(self._config, self._send)
        self._serial = VirtualBoard(self._config, self._send_serial)
        self._reader = FrameReader(self._config.report_length)

    def plug_uhid(self, place: str) -> float:
        """The monotonic time at which the kernel got to know of it."""
        self.restart()
        now = time.monotonic()
        self._port = UhidPort(self._names, place, self._config.report_length)
        return now

    def plug_usb(self, udc: int) -> float:
        """The monotonic time at which it was connected to the host's port."""
        self.restart()
        port = GadgetPort(self._names, udc, self._config.report_length)
        self._port = port
        return port.connected_at

    def unplug(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            port.unplug()

    def unplug_at(self, reports: int) -> None:
        """Be unplugged when so many more reports have come in, without an answer to the last one."""
        self._unplug_at = self.reports + reports

    def answer_with(self, echo: bool) -> None:
        """Return every report as it came instead of running the core: what a bare loop is measured with."""
        self._echo = (lambda report: report) if echo else None

    def answers(self) -> list[float]:
        """Seconds from each report with keys to the first one for the display after it, since the last call."""
        answers, self._answers = self._answers, []
        return answers

    def key(self, keycode: int, pressed: bool) -> bool:
        """A key goes down or up: an event for Thock, and a report of the key interface as ever."""
        now = _now_ms()
        if self._port is not None and keycode <= 0xFF:
            self._port.type(bytes((0, 0, keycode if pressed else 0, 0, 0, 0, 0, 0)))
        row, column = keycode >> 8, keycode & 0xFF
        taken = [board.key(row, column, keycode, pressed, now) for board in self._boards]
        self.turn()
        return any(taken)

    def macro(self, number: int) -> bool:
        taken = [board.macro(number, _now_ms()) for board in self._boards]
        self.turn()
        return any(taken)

    def capture(self, begins: bool) -> bool:
        """Keys go to the host only from now on, or to the computer again."""
        core = self._subscribed.core
        begun = begins and core.begin_capture(_now_ms())
        if not begins:
            core.end_capture(_now_ms())
        self.turn()
        return begun

    def look(self) -> tuple[BitmapFrame, tuple[Rgb | None, ...], bool, Status, bool, bool]:
        """Panel, LEDs, whether the display is taken, status, whether somebody is subscribed, and capturing."""
        core = self._subscribed.core
        leds = core.led_colors(_now_ms())
        return (
            core.picture(), leds, core.display_taken, core.status, core.subscribed, core.capturing
        )  # fmt: skip

    def computer(self) -> tuple[str, list[tuple[int, bool]]]:
        """What reached the computer: typed by the accept key, and as keys."""
        return self._subscribed.typed, self._subscribed.computer_keys

    @property
    def _boards(self) -> tuple[VirtualBoard, VirtualBoard]:
        return self._raw, self._serial

    @property
    def _subscribed(self) -> VirtualBoard:
        return self._serial if self._serial.core.subscribed else self._raw

    @property
    def descriptors(self) -> list[int]:
        return [] if self._port is None else self._port.descriptors()

    def serve(self, ready: int) -> None:
        port = self._port
        if port is None or ready not in port.descriptors():
            return
        if ready == port.serial:
            self._take_serial(port.serial)
        else:
            for report in port.receive(ready):
                self._take(report)
                if self._port is not port:
                    return

    def turn(self) -> None:
        if self._port is not None:
            for board in self._boards:
                board.core.task(_now_ms())

    def _take(self, report: bytes) -> None:
        self.reports += 1
        is_display = type_of(report) in (FrameType.TEXT, FrameType.BITMAP)
        if is_display and self._key_sent_at is not None:
            self._answers.append(time.perf_counter() - self._key_sent_at)
            self._key_sent_at = None
        if self.reports == self._unplug_at:
            self.unplug()
        elif self._port is not None:
            if self._echo is not None:
                self._port.send(self._echo(report))
            elif len(report) == self._config.report_length:
                if not self._raw.core.receive(report, _now_ms()):
                    self._ask_via(report)
                self._raw.core.task(_now_ms())

    def _ask_via(self, report: bytes) -> None:
        """What is no frame is for VIA, on a board that has it: each request comes back (quantum/via.c)."""
        version = self._config.via_version
        if not version or self._raw.core.other_request(report, _now_ms()):
            return
        answer = bytearray(report)
        if answer[0] == VIA_VERSION:
            answer[1:3] = version.to_bytes(2, "big")
        if self._port is not None:
            self._port.send(bytes(answer))

    def _send(self, report: bytes) -> bool:
        if type_of(report) == FrameType.KEY:
            self._key_sent_at = time.perf_counter()
        return self._port is not None and self._port.send(report)

    def _take_serial(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 4096)
        except OSError:  # the host has closed the port, or is gone
            return
        for report in self._reader.feed(data):
            self._serial.core.receive(report, _now_ms())
            self._serial.core.task(_now_ms())

    def _send_serial(self, report: bytes) -> bool:
        """Whole or not at all is not possible here: a host that does not read loses what does not fit."""
        if self._port is None:
            return False
        try:
            os.write(self._port.serial, encode_report(report))
        except OSError:
            return False
        return True


def _now_ms() -> int:
    """A board's clock goes slowly here: hosts on an emulated processor are late with their signs of life."""
    return int(time.monotonic() * 1000 / SLOWER)


def _serve(pipe: Connection) -> None:
    """Runs boards and the orders for them, until the pipe is closed."""
    boards: dict[str, Firmware] = {}
    while True:
        descriptors = [fd for board in boards.values() for fd in board.descriptors]
        poll = select.poll()
        for fd in (pipe.fileno(), *descriptors):
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(_TURN_S * 1e3):
            if fd != pipe.fileno():
                for board in boards.values():
                    board.serve(fd)
                continue
            try:
                name, method, arguments = pipe.recv()
            except EOFError:
                return
            try:
                if method == "make":
                    boards[name] = Firmware(*arguments)
                    answer: Any = None
                elif method == "forget":
                    boards.pop(name).unplug()
                    answer = None
                else:
                    answer = getattr(boards[name], method)(*arguments)
            except Exception as error:  # noqa: BLE001 - goes to the caller
                answer = error
            pipe.send(answer)
        for board in boards.values():
            board.turn()


class BoardServer:
    """The process that runs the boards. Start it before the first thread: it is forked."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far,), daemon=True)
        self._process.start()
        far.close()
        self._names = iter(range(1_000_000))

    def board(self, names: UsbNames | None = None, config: BoardConfig | None = None) -> Board:
        """A new board, not plugged in."""
        board = Board(self, f"board {next(self._names)}", names or UsbNames())
        board.config = config or BoardConfig()
        self.call(board.name, "make", board.config, board.names)
        return board

    def call(self, name: str, method: str, *arguments: object) -> Any:
        self._pipe.send((name, method, arguments))
        answer = self._pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


class Board:
    """The test's hand on one board; the same names as `VirtualKeyboard` has."""

    config: BoardConfig

    def __init__(self, server: BoardServer, name: str, names: UsbNames) -> None:
        self._server = server
        self.name = name
        self.names = names
        self.place = "usb-test-1"
        self.udc: int | None = None  # plugged as a USB gadget if given

    def plug(self) -> float:
        """The monotonic time at which it was plugged in."""
        if self.udc is None:
            return float(self._call("plug_uhid", self.place))
        return float(self._call("plug_usb", self.udc))

    def unplug(self) -> None:
        self._call("unplug")

    def unplug_at(self, reports: int) -> None:
        self._call("unplug_at", reports)

    def restart(self) -> None:
        self._call("restart")

    def answer_with(self, *, echo: bool) -> None:
        self._call("answer_with", echo)

    def forget(self) -> None:
        self._call("forget")

    def answers(self) -> list[float]:
        """See `Firmware.answers`: measured at the keyboard's end."""
        answers: list[float] = self._call("answers")
        return answers

    def press(self, keycode: int) -> bool:
        return bool(self._call("key", keycode, True))

    def release(self, keycode: int) -> bool:
        return bool(self._call("key", keycode, False))

    def macro(self, number: int) -> bool:
        return bool(self._call("macro", number))

    def panel(self) -> BitmapFrame:
        frame: BitmapFrame = self._call("look")[0]
        return frame

    def leds(self) -> tuple[Rgb | None, ...]:
        colors: tuple[Rgb | None, ...] = self._call("look")[1]
        return colors

    @property
    def display_taken(self) -> bool:
        return bool(self._call("look")[2])

    @property
    def status(self) -> Status:
        return Status(self._call("look")[3])

    @property
    def subscribed(self) -> bool:
        return bool(self._call("look")[4])

    def begin_capture(self) -> bool:
        return bool(self._call("capture", True))

    def end_capture(self) -> None:
        self._call("capture", False)

    @property
    def capturing(self) -> bool:
        return bool(self._call("look")[5])

    @property
    def typed(self) -> str:
        return str(self._call("computer")[0])

    @property
    def computer_keys(self) -> list[tuple[int, bool]]:
        keys: list[tuple[int, bool]] = self._call("computer")[1]
        return keys

    def usb_reset(self) -> None:
        """What the host does to a device after a suspend that it did not survive: a port reset."""
        with self._usb_node() as node:
            fcntl.ioctl(node, 0x5514)  # USBDEVFS_RESET, linux/usbdevice_fs.h

    @contextlib.contextmanager
    def _usb_node(self) -> Iterator[int]:
        for device in Path("/sys/bus/usb/devices").glob("*/idVendor"):
            if int(device.read_text(), 16) == self.names.vendor:
                bus = int(device.with_name("busnum").read_text())
                number = int(device.with_name("devnum").read_text())
                node = os.open(f"/dev/bus/usb/{bus:03}/{number:03}", os.O_WRONLY)
                try:
                    yield node
                finally:
                    os.close(node)
                return
        raise LookupError("no such USB device")

    def _call(self, method: str, *arguments: object) -> Any:
        return self._server.call(self.name, method, *arguments)
