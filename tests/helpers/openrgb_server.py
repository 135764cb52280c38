# SPDX-License-Identifier: Apache-2.0
"""A small OpenRGB SDK server on loopback, after Documentation/OpenRGBSDK.md of OpenRGB, that can misbehave."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

HEADER = struct.Struct("<4sIII")
COUNT, DATA, ACK, VERSION, NAME, LIST_UPDATED = 0, 1, 10, 40, 50, 100
PROFILES, PLUGINS, UPDATE_LEDS, CUSTOM_MODE, UPDATE_MODE, SAVE_MODE = (
    150,
    200,
    1050,
    1100,
    1101,
    1102,
)
NONE, PER_LED, MODE_SPECIFIC = 0, 1, 2


def text(value: str) -> bytes:
    data = value.encode("ascii") + b"\0"
    return struct.pack("<H", len(data)) + data


@dataclass
class Mode:
    name: str
    color_mode: int = PER_LED
    flags: int = 1 << 5
    colors: list[tuple[int, int, int]] = field(default_factory=list)

    def pack(self, version: int) -> bytes:
        data = text(self.name) + struct.pack("<iIII", 0, self.flags, 0, 0)
        if version >= 3:
            data += struct.pack("<II", 0, 0)
        count = len(self.colors)
        data += struct.pack("<III", min(count, 1), count, 0)
        if version >= 3:
            data += struct.pack("<I", 0)
        data += struct.pack("<IIH", 0, self.color_mode, count)
        return data + b"".join(struct.pack("<BBBx", *color) for color in self.colors)


@dataclass
class Controller:
    """A device. `changes` are the packets that set something, in order."""

    name: str
    modes: list[Mode]
    active: int = 0
    colors: list[tuple[int, int, int]] = field(default_factory=lambda: [(1, 2, 3), (4, 5, 6)])
    changes: list[int] = field(default_factory=list)

    def pack(self, version: int) -> bytes:
        data = struct.pack("<i", 4) + text(self.name)
        if version >= 1:
            data += text("vendor")
        data += b"".join(text(word) for word in ("description", "1.0", "serial", "location"))
        data += struct.pack("<Hi", len(self.modes), self.active)
        data += b"".join(mode.pack(version) for mode in self.modes)
        leds = len(self.colors)
        data += struct.pack("<H", 1) + text("zone") + struct.pack("<iIIIH", 1, leds, leds, leds, 0)
        if version >= 4:
            data += struct.pack("<H", 0)
        data += struct.pack("<H", leds)
        data += b"".join(text(f"LED {i}") + struct.pack("<I", i) for i in range(leds))
        data += struct.pack("<H", leds) + b"".join(struct.pack("<BBBx", *c) for c in self.colors)
        return struct.pack("<I", len(data) + 4) + data

    def take(self, kind: int, body: bytes) -> None:
        self.changes.append(kind)
        if kind == UPDATE_LEDS:
            (count,) = struct.unpack_from("<H", body, 4)
            self.colors = [struct.unpack_from("<BBB", body, 6 + 4 * i) for i in range(count)]
        elif kind == UPDATE_MODE:
            _, self.active = struct.unpack_from("<Ii", body)
            count = len(self.modes[self.active].colors)
            if count:
                tail = body[-4 * count :]
                self.modes[self.active].colors = [
                    struct.unpack_from("<BBB", tail, 4 * i) for i in range(count)
                ]


class OpenRgbServer:
    """`fault` names what it does wrong: see `_answer`. `versions` are those that clients asked for."""

    def __init__(self, controllers: list[Controller], version: int = 4, fault: str = "") -> None:
        self.controllers = controllers
        self.version = version
        self.fault = fault
        self.versions: list[int] = []
        self.names: list[bytes] = []
        self.clients: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def announce(self) -> None:
        """The list of devices changed."""
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.sendall(HEADER.pack(b"ORGB", 0, LIST_UPDATED, 0))

    def drop(self) -> None:
        """Close all connections."""
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()
        self.clients.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else the thread in accept() keeps it open
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error):
            spoken = 0
            while True:
                head = client.recv(HEADER.size, socket.MSG_WAITALL)
                if len(head) < HEADER.size:
                    return
                _, device, kind, size = HEADER.unpack(head)
                body = client.recv(size, socket.MSG_WAITALL) if size else b""
                if kind == VERSION:
                    (asked,) = struct.unpack("<I", body)
                    self.versions.append(asked)
                    spoken = min(asked, self.version)
                for packet in self._answer(device, kind, body, spoken):
                    client.sendall(packet)

    def _answer(self, device: int, kind: int, body: bytes, version: int) -> Iterator[bytes]:
        match kind:
            case 40:
                answer = struct.pack("<I", self.version)
            case 50:
                self.names.append(body)
                return
            case 0:
                count = 2**31 if self.fault == "many" else len(self.controllers)
                answer = struct.pack("<I", count)
            case 1:
                answer = self.controllers[device].pack(version)
            case _:
                self.controllers[device].take(kind, body)
                return
        yield from self._faulty(device, kind, answer)

    def _faulty(self, device: int, kind: int, body: bytes) -> Iterator[bytes]:
        packet = HEADER.pack(b"ORGB", device, kind, len(body)) + body
        fault = self.fault if kind == DATA or self.fault.startswith("at once") else ""
        match fault.removeprefix("at once "):
            case "silent":
                return
            case "close":
                yield packet[: len(packet) // 2]
                self.drop()
            case "magic":
                yield b"HTTP" + packet[4:]
            case "huge":
                yield HEADER.pack(b"ORGB", device, kind, 2**31) + body
            case "garbage":
                yield packet[:40] + b"\xff" * (len(packet) - 40)
            case "short":
                yield HEADER.pack(b"ORGB", device, kind, 20) + body[:20]
            case "slow":
                for byte in packet:
                    time.sleep(0.05)
                    yield bytes((byte,))
            case "chatty":
                while True:
                    time.sleep(0.02)
                    yield HEADER.pack(b"ORGB", 0, 103, 3) + b"abc"
            case "newer":
                yield HEADER.pack(b"ORGB", 0, ACK, 8) + struct.pack("<II", kind, 0)
                yield HEADER.pack(b"ORGB", 0, LIST_UPDATED, 0)
                yield packet
            case _:
                yield packet
