# SPDX-License-Identifier: Apache-2.0
"""Byte-level devices that we did not invent (tests/bridge/peers.toml), with a trap for dangerous requests."""

from __future__ import annotations

import tomllib
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.transport.base import DeviceIdentity

ROWS = Path(__file__).parents[1] / "bridge/peers.toml"

# VIA: set keycode, reset keymap, save lights, reset EEPROM, bootloader, set macros, reset macros.
DESTRUCTIVE = frozenset((0x05, 0x06, 0x09, 0x0A, 0x0B, 0x0F, 0x10))


@dataclass(frozen=True)
class Peer:
    """One row."""

    name: str
    source: str
    answers: list[list[str]]
    unknown: str
    tier: str
    finding: str
    via: int | None = None
    serial: str = "0"
    vendor: int = 0xFEED
    report_length: int = 32
    forbidden: list[str] = field(default_factory=list)
    chosen: bool = False
    module: bool = False
    again: bool = False


def load_peers() -> list[Peer]:
    return [Peer(**row) for row in tomllib.loads(ROWS.read_text(encoding="utf-8"))["peer"]]


class PeerTransport:
    """The device of a row. Time passes only when somebody waits for it."""

    wakeable = True

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.identity = DeviceIdentity("hid", peer.vendor, 1, peer.serial, "usb-1", peer.name)
        self.report_length = peer.report_length
        self.written: list[bytes] = []
        self.closed = 0
        self.now = 0.0
        self.noise: deque[bytes] = deque()  # reports for other programs, which come to us too
        self._queue: deque[bytes] = deque()
        config = BoardConfig(report_length=peer.report_length)
        self._core = FirmwareCore(config, self._send) if peer.module else None

    def clock(self) -> float:
        return self.now

    def wake(self) -> None:
        pass

    def open(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1

    def read(self, timeout_s: float) -> bytes | None:
        assert timeout_s > 0
        if self._queue:
            return self._queue.popleft()
        self.now += timeout_s
        return None

    def write(self, report: bytes) -> None:
        assert len(report) == self.report_length
        self._spring_the_trap(report)
        self.written.append(report)
        if self.noise:
            self._queue.append(self.noise.popleft())
        self._answer(report)

    def _spring_the_trap(self, report: bytes) -> None:
        forbidden = DESTRUCTIVE | {int(text, 16) for text in self.peer.forbidden}
        assert report[0] not in forbidden, f"{report[0]:02X} was sent to {self.peer.name}"

    def _answer(self, report: bytes) -> None:
        for begin, answer in self.peer.answers:
            if report.startswith(bytes.fromhex(begin)):
                start = bytes.fromhex(answer)
                self._queue.append(start + report[len(start) :])
                return
        if self._core is not None and self._core.receive(report, int(self.now * 1000)):
            self._core.task(int(self.now * 1000))
        elif self.peer.unknown == "ff":
            self._queue.append(b"\xff" + report[1:])
        elif self.peer.unknown == "echo":
            self._queue.append(report)

    def _send(self, report: bytes) -> bool:
        self._queue.append(report)
        return True
