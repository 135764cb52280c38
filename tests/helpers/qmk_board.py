# SPDX-License-Identifier: Apache-2.0
"""A keyboard that runs the QMK module inside fake_qmk.c, as a child process under the sanitizers."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.messages import (
    Message,
    TextRun,
)
from tests.helpers.qmk_build import HERE, HOST, SANITIZERS, compile_module

CLIENT = 7
KEYS, MACROS, CAPTURE, ACCEPT = 1, 2, 4, 8
KEY_EVENT, ENCODER_EVENT, COMBO_EVENT = 1, 2, 4
POLL = 10
OFFER = 11
VIA_UNHANDLED = 0xFF


@functools.cache
def _executable(options: tuple[str, ...]) -> Path:
    """One build for all tests of a run that use it."""
    folder = Path(tempfile.mkdtemp(prefix="thock-qmk-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fakes = [
        HERE / "fake_qmk.c",
        HERE / "fake_usb.c",
        *([HERE / "fake_oled.c"] if "-DOLED_ENABLE" in options else []),
    ]
    compile_module(folder, HOST, options, *SANITIZERS, "-O1", f"-I{HERE}", *fakes, "-o", "board")
    return folder / "board"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a KEY frame, with the kinds that came after the first protocol text."""

    kind: int
    pressed: bool
    captured: bool
    row: int
    column: int
    keycode: int


def events_of(frame: Frame) -> list[Event]:
    body = frame.payload[3:]
    assert body
    assert len(body) % 7 == 0
    return [
        Event(
            body[i] >> 1 & 7, bool(body[i] & 1), bool(body[i] & 16), body[i + 1], body[i + 2],
            body[i + 3] | body[i + 4] << 8,
        )
        for i in range(0, len(body), 7)
    ]  # fmt: skip


@dataclass
class FakeBoard:
    """Commands to the child, its answers sorted by kind. `channel`: frames travel inside VIA's channel."""

    options: tuple[str, ...] = ()
    channel: bool = False
    seq: int = 0
    sent: list[bytes] = field(default_factory=list)  # raw_hid_send
    via: list[bytes] = field(default_factory=list)  # sent by via.c
    typed: list[tuple[int, bool]] = field(default_factory=list)  # reached the computer
    characters: list[tuple[str, int]] = field(default_factory=list)  # send_char, modifiers
    rpc: list[str] = field(default_factory=list)  # frames for the other half
    other: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        HOST.need()
        self._child = subprocess.Popen(
            [_executable(self.options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _, errors = self._child.communicate(timeout=60)
        assert kind is not None or (self._child.returncode, errors) == (0, "")

    def do(self, command: str) -> None:
        """One command; what it caused is sorted into the lists."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(command + "\n")
        self._child.stdin.flush()
        for line in self._child.stdout:
            name, _, rest = line.strip().partition(" ")
            if name == ".":
                return
            match name:
                case "out":
                    self.sent.append(bytes.fromhex(rest))
                case "via":
                    self.via.append(bytes.fromhex(rest))
                case "type":
                    keycode, pressed = rest.split()
                    self.typed.append((int(keycode, 16), pressed == "1"))
                case "char":
                    character, mods = rest.split()
                    self.characters.append((chr(int(character, 16)), int(mods, 16)))
                case "rpc":
                    self.rpc.append(rest)
                case _:
                    self.other.append(line.strip())
        assert self._child.stderr is not None
        raise AssertionError(f"the board died: {self._child.stderr.read()}")

    def start(self) -> Self:
        self.do("start")
        return self

    def turn(self, milliseconds: int = 1, times: int = 1) -> None:
        for _ in range(times):
            self.do(f"turn {milliseconds}")

    def key(
        self,
        row: int,
        column: int,
        keycode: int,
        pressed: bool,
        taps: int = 0,
        kind: int = KEY_EVENT,
    ) -> None:
        """A key event and the turn of the main loop that handles it."""
        self.do(f"key {row} {column} {keycode:x} {int(pressed)} {taps} {kind}")
        self.turn()

    def tap(self, row: int, column: int, keycode: int, taps: int = 0) -> None:
        self.key(row, column, keycode, True, taps)
        self.key(row, column, keycode, False, taps)

    def hid(self, report: bytes) -> None:
        """A report from the computer, and a turn of the main loop."""
        self.do(f"hid {report.ljust(32, bytes(1)).hex()}")
        self.turn()

    def taken(self) -> list[Frame]:
        """Frames of ours that went out since the last call, by either way."""
        reports = [*self.sent, *(report for report in self.via if report[0] != VIA_UNHANDLED)]
        self.sent, self.via = [], []
        if self.channel:
            assert all(report[0] in (7, 8) for report in reports)
            reports = [b"\xe7" + report[1:] for report in reports]
        return [decode(report) for report in reports]

    def raw(
        self,
        kind: int,
        payload: bytes = b"",
        client: int = CLIENT,
        first: bool = True,
        last: bool = True,
    ) -> list[Frame]:
        """Send a frame of any type; what came back within a turn."""
        self.seq = (self.seq + 1) % 256
        report = bytearray(
            encode(Frame(FrameType.HELLO, client, self.seq, payload, first, last), 32)
        )
        report[2] = 0x10 | kind
        report = bytearray(with_right_crc(report))
        if self.channel:
            report[0] = 8
        self.hid(bytes(report))
        return self.taken()

    def say(self, message: Message, first: bool = True, last: bool = True) -> Frame:
        (answer,) = self.raw(message.type, message.pack(), first=first, last=last)
        assert (answer.client, answer.seq) == (CLIENT, self.seq)
        return answer

    def ack(self, kind: int, payload: bytes = b"", first: bool = True, last: bool = True) -> None:
        (answer,) = self.raw(kind, payload, first=first, last=last)
        assert (answer.type, answer.seq) == (FrameType.ACK, self.seq), answer.payload

    def subscribe(self, kinds: int = KEYS | MACROS) -> None:
        self.ack(FrameType.SUBSCRIBE, bytes((kinds,)))

    def show(self, *rows: str) -> None:
        for number, row in enumerate(rows):
            run = TextRun(number, 0, row)
            self.ack(run.type, run.pack(), first=number == 0, last=number == len(rows) - 1)

    def events(self, turns: int = 4) -> list[Event]:
        """The events that the keyboard sends by itself in the next turns."""
        self.turn(times=turns)
        return [event for frame in self.taken() for event in events_of(frame)]

    def panel(self) -> bytes:
        self.do("oled")
        return bytes.fromhex(self.other.pop().removeprefix("panel "))

    def lit(self) -> bool:
        self.do("oled")
        self.other.pop()
        return self.other.pop() == "lit 1"

    def leds(self) -> list[bytes]:
        self.do("leds")
        colours = bytes.fromhex(self.other.pop().removeprefix("leds "))
        return [colours[i : i + 3] for i in range(0, len(colours), 3)]

    def capturing(self) -> bool:
        self.do("capturing")
        return self.other.pop() == "capturing 1"


def with_right_crc(report: bytes | bytearray) -> bytes:
    crc = 0xFFFF
    for byte in report[:-2]:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return bytes(report[:-2]) + crc.to_bytes(2, "little")


def key_reports(frames: list[Frame]) -> list[KeyReport]:
    return [KeyReport.unpack(frame.payload) for frame in frames if frame.type == FrameType.KEY]
