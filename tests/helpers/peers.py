# SPDX-License-Identifier: Apache-2.0
"""The table of firmware of others (tests/bridge/peers.toml), and its devices as peers and as transports."""

from __future__ import annotations

import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firmware_bridge.discovery.candidates import is_vial
from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.transport.base import DeviceIdentity
from tests.helpers import via_peers
from tests.helpers.via_peers import UNHANDLED, Peer

ROWS = Path(__file__).parents[1] / "bridge/peers.toml"


@dataclass(frozen=True)
class PeerRow:
    """One row; peers.toml says what the fields mean."""

    name: str
    source: str
    firmware: str
    tier: str
    finding: str
    options: dict[str, Any] = field(default_factory=dict)
    answers: list[list[str]] = field(default_factory=list)
    unknown: str = ""
    vendor: int = 0xFEED
    report_length: int = via_peers.REPORT_LENGTH
    forbidden: list[str] = field(default_factory=list)
    module: bool = False
    chosen: bool = False
    again: bool = False
    via: int | None = None
    lights: list[str] = field(default_factory=list)
    refusal: str = ""

    def make(self) -> Peer:
        """A device of this kind, fresh from the factory."""
        if self.firmware == "bytes":
            peer: Peer = BytesPeer(self.answers, self.unknown)
        else:
            peer = getattr(via_peers, self.firmware)(**self.options)
        if self.module:
            peer = ModulePeer(peer, self.report_length)
        peer.report_length = self.report_length
        peer.forbidden = {int(text, 16): f"forbidden to {self.name}" for text in self.forbidden}
        return peer

    @property
    def is_vial(self) -> bool:
        return is_vial(DeviceIdentity("hid", serial=self.make().serial))


class BytesPeer(Peer):
    """A device of which only some answers are known."""

    def __init__(self, answers: list[list[str]], unknown: str) -> None:
        super().__init__()
        self._answers = [(bytes.fromhex(begin), bytes.fromhex(answer)) for begin, answer in answers]
        self._unknown = unknown

    def answer(self, data: bytearray) -> bool:
        for begin, answer in self._answers:
            if data.startswith(begin):
                data[: len(answer)] = answer
                return True
        if self._unknown == "ff":
            data[0] = UNHANDLED
        return self._unknown != "silent"


class ModulePeer(Peer):
    """Firmware with Thock's module, which answers first. The core's clock stands still."""

    def __init__(self, inner: Peer, report_length: int) -> None:
        super().__init__(inner.serial)
        self._inner = inner
        self._out: list[bytes] = []
        self._core = FirmwareCore(BoardConfig(report_length=report_length), self._send)

    def reply(self, report: bytes) -> Iterator[bytes]:
        if not self._core.receive(report, 0):
            yield from self._inner.reply(report)
            return
        self._core.task(0)
        out, self._out = self._out, []
        yield from out

    def _send(self, report: bytes) -> bool:
        self._out.append(report)
        return True


def load_peers() -> tuple[PeerRow, ...]:
    rows = tomllib.loads(ROWS.read_text(encoding="utf-8"))["peer"]
    return tuple(PeerRow(**row) for row in rows)


PEERS = load_peers()


def row_of(name: str) -> PeerRow:
    return next(row for row in PEERS if row.name == name)


def make_peer(name: str) -> Peer:
    return row_of(name).make()


class PeerTransport:
    """The device of a row. Time passes only when somebody waits for it."""

    wakeable = True

    def __init__(self, row: PeerRow) -> None:
        self.peer = row.make()
        self.identity = DeviceIdentity("hid", row.vendor, 1, self.peer.serial, "usb-1", row.name)
        self.report_length = row.report_length
        self.now = 0.0
        self.closed = 0
        self.noise: deque[bytes] = deque()  # reports for other programs, which come to us too
        self._queue: deque[bytes] = deque()

    @property
    def written(self) -> list[bytes]:
        return self.peer.writes

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
        answers = list(self.peer(report))
        if self.noise:
            self._queue.append(self.noise.popleft())
        self._queue.extend(answers)
