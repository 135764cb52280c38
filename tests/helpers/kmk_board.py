# SPDX-License-Identifier: Apache-2.0
"""A CircuitPython board with KMK, as far as the module `thock_companion` sees one, and a host at its port.

The stand-ins follow KMKfw/kmk_firmware 6949753 (kmk/modules/__init__.py, kmk/keys.py, kmk/kmk_keyboard.py)
and adafruit/circuitpython shared-module/usb_cdc/Serial.c 3324f0f: reads and writes with a time-out of 0 never
wait, and a write takes what fits its buffer.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.messages import (
    EventKinds,
    Message,
    Subscribe,
    TextRun,
)
from firmware_bridge.protocol.serial_framing import FrameReader, encode_report

KMK = Path(__file__).resolve().parents[2] / "firmware_bridge" / "firmware" / "kmk"
OWN = (
    "thock_companion", "thock_own_keys", "thock_typist", "thock_session", "thock_lights", "thock_wire",
    "thock_kmk_output",
)  # fmt: skip
CLIENT = 7
BOTH = Subscribe(EventKinds.KEYS | EventKinds.MACROS)
TICKS = 1 << 29


class Key:
    """KMK's keys compare by identity."""


@dataclass(eq=False)
class KeyboardKey(Key):
    code: int


@dataclass(eq=False)
class ConsumerKey(Key):
    code: int


@dataclass(eq=False)
class MouseKey(Key):
    code: int


@dataclass(eq=False)
class ModifierKey(Key):
    code: int

    def __call__(self, key: Key) -> ModifiedKey:
        return ModifiedKey(key, ModifierKey(self.code))


@dataclass(eq=False)
class ModifiedKey(Key):
    key: Key | None
    modifier: ModifierKey


class KeyTable:
    """KC, as far as characters go: letters only by their capitals, as both cases name the same key."""

    LSHIFT = ModifierKey(0x02)
    PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890\n\x1b\b\t -=[]\\#;'`,./"
    SHIFTED: ClassVar = dict(zip('!@#$%^&*()_+{}|:"~<>?', "1234567890-=[]\\;'`,./", strict=True))

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}

    def __getitem__(self, name: str) -> Key:
        if name not in self._keys:
            if name in self.SHIFTED:
                self._keys[name] = ModifiedKey(self[self.SHIFTED[name]], ModifierKey(0x02))
            else:
                self._keys[name] = KeyboardKey(4 + self.PLAIN.index(name.upper()))
        return self._keys[name]


class Keyboard:
    """KMKKeyboard, as far as modules use it: what the computer sees is `reports`, (modifier bits, usages)."""

    def __init__(self, col_pins: tuple[int, ...] | None) -> None:
        self.col_pins = col_pins
        self.keys_pressed: set[Key] = set()
        self.hid_pending = False
        self.reports: list[tuple[int, tuple[int, ...]]] = []

    def add_key(self, key: Key) -> None:
        parts = {key.modifier, key.key} if isinstance(key, ModifiedKey) else {key}
        pressed = {part for part in parts if isinstance(part, KeyboardKey | ModifierKey)}
        self.keys_pressed |= pressed
        self.hid_pending = self.hid_pending or bool(pressed)

    def remove_key(self, key: Key) -> None:
        parts = {key.modifier, key.key} if isinstance(key, ModifiedKey) else {key}
        released = {part for part in parts if isinstance(part, KeyboardKey | ModifierKey)}
        self.keys_pressed -= released
        self.hid_pending = self.hid_pending or bool(released)

    def send(self) -> None:
        if self.hid_pending:
            self.hid_pending = False
            mods = [key.code for key in self.keys_pressed if isinstance(key, ModifierKey)]
            codes = [key.code for key in self.keys_pressed if isinstance(key, KeyboardKey)]
            self.reports.append((sum(set(mods)), tuple(sorted(codes))))


@dataclass
class FakePort:
    """usb_cdc.Serial. `room` bytes fit until the computer reads; a blocking call would fail the test."""

    timeout: float | None = None
    write_timeout: float | None = None
    connected: bool = True
    room: int = 256
    received: bytearray = field(default_factory=bytearray)
    sent: bytearray = field(default_factory=bytearray)

    @property
    def in_waiting(self) -> int:
        return len(self.received)

    def read(self, size: int = 1) -> bytes:
        assert self.timeout == 0
        data = bytes(self.received[:size])
        del self.received[:size]
        return data

    def write(self, data: bytes) -> int:
        assert self.write_timeout == 0
        taken = bytes(data[: self.room - len(self.sent)])
        self.sent += taken
        return len(taken)

    def collect(self) -> bytes:
        data = bytes(self.sent)
        self.sent.clear()
        return data


def _module(name: str, **content: object) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(content)
    return module


@dataclass
class KmkBoard:
    """One board; `make` builds the module with its arguments, as code.py would."""

    now: int = 1000
    port: FakePort | None = field(default_factory=FakePort)
    made: dict[str, Key] = field(default_factory=dict)
    seq: int = 0
    typed: list[tuple[Key, bool]] = field(default_factory=list)
    reader: FrameReader = field(default_factory=lambda: FrameReader(32))

    def _make_key(self, names: tuple[str, ...]) -> Key:
        key = Key()
        self.made.update(dict.fromkeys(names, key))
        return key

    @contextlib.contextmanager
    def installed(self) -> Iterator[Callable[[str], Any]]:
        """CircuitPython's and KMK's modules can be imported, and ours; gives `import_module`."""

        class Module:
            pass

        class AnimationModes:
            STATIC = 1
            STATIC_STANDBY = 2

        fakes = {
            "usb_cdc": _module("usb_cdc", data=self.port),
            "supervisor": _module("supervisor", ticks_ms=lambda: self.now % TICKS),
            "microcontroller": _module("microcontroller", cpu=_module("cpu", uid=bytes(range(8)))),
            "kmk": _module("kmk"),
            "kmk.modules": _module("kmk.modules", Module=Module),
            "kmk.extensions": _module("kmk.extensions"),
            "kmk.extensions.rgb": _module("kmk.extensions.rgb", AnimationModes=AnimationModes),
            "kmk.keys": _module(
                "kmk.keys", KeyboardKey=KeyboardKey, ModifierKey=ModifierKey, ModifiedKey=ModifiedKey,
                ConsumerKey=ConsumerKey, MouseKey=MouseKey, KC=KeyTable(), make_key=self._make_key,
            ),
        }  # fmt: skip
        before = {name: sys.modules.pop(name, None) for name in (*fakes, *OWN)}
        sys.modules.update(fakes)
        sys.path.insert(0, str(KMK))
        try:
            yield importlib.import_module
        finally:
            sys.path.remove(str(KMK))
            for name, module in before.items():
                sys.modules.pop(name, None)
                if module is not None:
                    sys.modules[name] = module

    def start(
        self, make: Callable[[Any], Any], col_pins: tuple[int, ...] | None = (1, 2, 3, 4)
    ) -> None:
        """`make` gets the imported thock_companion and gives the module."""
        with self.installed() as load:
            self.module = make(load("thock_companion"))
            self.keyboard = Keyboard(col_pins)
            self.module.during_bootup(self.keyboard)

    def loop(self, milliseconds: int = 1, key: tuple[Key, bool, int | None] | None = None) -> None:
        """One turn of KMK's main loop (kmk_keyboard.py, `_main_loop`)."""
        self.now += milliseconds
        self.module.before_matrix_scan(self.keyboard)
        assert self.module.after_matrix_scan(self.keyboard) is None
        if key is not None:
            passed = self.module.process_key(self.keyboard, *key)
            if passed is not None:
                self.typed.append((passed, key[1]))
                (self.keyboard.add_key if key[1] else self.keyboard.remove_key)(passed)
        self.module.before_hid_send(self.keyboard)
        self.keyboard.send()
        self.module.after_hid_send(self.keyboard)

    def tap(self, key: Key, place: int | None = 5) -> None:
        self.loop(key=(key, True, place))
        self.loop(key=(key, False, place))

    # ------------------------------------------------------------ the computer

    @property
    def open_port(self) -> FakePort:
        assert self.port is not None
        return self.port

    def frames(self) -> list[Frame]:
        return [decode(report) for report in self.reader.feed(self.open_port.collect())]

    def raw(
        self,
        kind: int,
        payload: bytes = b"",
        client: int = CLIENT,
        first: bool = True,
        last: bool = True,
    ) -> list[Frame]:
        self.seq = (self.seq + 1) % 256
        report = encode(Frame(FrameType(kind), client, self.seq, payload, first, last), 32)
        self.open_port.received += encode_report(report)
        self.loop()
        return self.frames()

    def say(self, message: Message, first: bool = True, last: bool = True) -> Frame:
        (answer,) = self.raw(message.type, message.pack(), first=first, last=last)
        return answer

    def do(self, message: Message, first: bool = True, last: bool = True) -> None:
        answer = self.say(message, first, last)
        assert (answer.type, answer.seq) == (FrameType.ACK, self.seq), answer.payload

    def show_rows(self, *rows: str) -> None:
        for number, row in enumerate(rows):
            self.do(TextRun(number, 0, row), number == 0, number == len(rows) - 1)


class Screen:
    """Records what the callbacks were given."""

    def __init__(self) -> None:
        self.shown: list[tuple[list[str] | None, int]] = []
        self.capturing: list[bool] = []
        self.lights: list[list[tuple[int, int, int] | None] | None] = []

    def show(self, rows: list[str] | None, status: int) -> None:
        self.shown.append((rows, status))

    def show_all(self, rows: list[str] | None, status: int, capturing: bool) -> None:
        self.shown.append((rows, status))
        self.capturing.append(capturing)

    def set_lights(self, colours: list[tuple[int, int, int] | None] | None) -> None:
        self.lights.append(colours)


def make_board(**arguments: Any) -> tuple[KmkBoard, Screen]:
    """A board with everything that `arguments` do not say otherwise."""
    screen = Screen()
    board = KmkBoard()
    show = screen.show_all if arguments.get("capture") else screen.show
    everything = {"show": show, "set_lights": screen.set_lights, "led_count": 4, **arguments}
    board.start(lambda module: module.ThockCompanion(**everything))
    return board, screen


def told_events(board: KmkBoard, turns: int = 6) -> list[tuple[int, int, int, int, bool]]:
    """Kind, row, column, keycode and whether pressed, of all events of so many turns."""
    found = []
    for _ in range(turns):
        board.loop()
        for frame in board.frames():
            found += [
                (int(e.kind), e.row, e.column, e.keycode, e.pressed)
                for e in KeyReport.unpack(frame.payload).events
            ]
    return found
