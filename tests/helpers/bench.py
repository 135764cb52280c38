# SPDX-License-Identifier: Apache-2.0
"""A firmware core on a bench: frames in, everything it sends collected and decoded."""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.light_messages import LightsOff
from firmware_bridge.protocol.messages import (
    Ack,
    BitmapRun,
    Caps,
    EventKinds,
    Hello,
    Message,
    Nak,
    NakReason,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)

HELLO = Hello(0x89ABCDEF, 1, 1)
# What needs a subscription, and the feature of its name.
OUTPUTS: dict[Feature, Message] = {
    Feature.TEXT: TextRun(0, 0, "hi"),
    Feature.BITMAP: BitmapRun(0, 0, b"\x55"),
    Feature.LIGHTS: LightsOff(),
    Feature.STATUS: SetStatus(Status.THINKING),
}
CLIENT = 7
BOTH = EventKinds.KEYS | EventKinds.MACROS


@dataclass
class Bench:
    """`link_open` False makes the send hook refuse; `now` is the clock of every call."""

    config: BoardConfig = field(default_factory=BoardConfig)
    now: int = 0
    link_open: bool = True
    sent: list[bytes] = field(default_factory=list)
    offered: int = 0
    seq: int = 0
    core: FirmwareCore = field(init=False)

    def __post_init__(self) -> None:
        self.core = FirmwareCore(self.config, self._take)

    def _take(self, report: bytes) -> bool:
        self.offered += 1
        if self.link_open:
            self.sent.append(report)
        return self.link_open

    def taken(self) -> list[Frame]:
        """The frames that went out since the last call."""
        reports, self.sent = self.sent, []
        return [decode(report) for report in reports]

    def raw(
        self,
        kind: int,
        payload: bytes = b"",
        client: int = CLIENT,
        version: int = 1,
        flags: int = 3,
    ) -> list[Frame]:
        """Send a frame that may break any rule; the answers."""
        self.seq = (self.seq + 1) % 256
        frame = Frame(
            FrameType.HELLO, client, self.seq, payload, bool(flags & 2), bool(flags & 1), version
        )
        report = bytearray(encode(frame, self.config.report_length))
        report[2] = version << 4 | kind
        assert self.core.receive(with_crc(report), self.now)
        return self.taken()

    def say(
        self, message: Message, client: int = CLIENT, first: bool = True, last: bool = True
    ) -> Frame:
        """Send a message; its one answer, with client, sequence number and version checked."""
        flags = first << 1 | last
        answers = self.raw(message.type, message.pack(), client, flags=flags)
        assert len(answers) == 1
        answer = answers[0]
        assert (answer.client, answer.seq, answer.version) == (client, self.seq, 1)
        return answer

    def do(
        self, message: Message, client: int = CLIENT, first: bool = True, last: bool = True
    ) -> None:
        """Send a message that must get ACK."""
        answer = self.say(message, client, first, last)
        assert answer.type == FrameType.ACK
        assert Ack.unpack(answer.payload).done == message.type

    def refusal(self, message: Message, client: int = CLIENT) -> NakReason:
        """Send a message that must get NAK; the reason."""
        return nak_reason(self.say(message, client), message.type)

    def caps(self, client: int = CLIENT) -> Caps:
        """The answer to HELLO."""
        answer = self.say(HELLO, client)
        assert answer.type == FrameType.CAPS
        return Caps.unpack(answer.payload)

    def subscribe(self, kinds: EventKinds = BOTH, client: int = CLIENT) -> None:
        self.do(Subscribe(kinds), client)

    def show(self, *rows: str) -> None:
        """Complete a text picture; longer rows go out in several frames."""
        room = self.config.report_length - 10
        runs = [
            TextRun(number, start, row[start : start + room])
            for number, row in enumerate(rows)
            for start in range(0, max(len(row), 1), room)
        ]
        for number, run in enumerate(runs):
            self.do(run, first=number == 0, last=number == len(runs) - 1)

    def task(self) -> list[Frame]:
        self.core.task(self.now)
        return self.taken()

    def key_reports(self) -> list[KeyReport]:
        """Run the task once; the KEY frames it sent."""
        frames = self.task()
        assert all(frame.type == FrameType.KEY for frame in frames)
        return [KeyReport.unpack(frame.payload) for frame in frames]


def nak_reason(answer: Frame, refused: int) -> NakReason:
    assert answer.type == FrameType.NAK
    nak = Nak.unpack(answer.payload)
    assert nak.refused == refused
    return nak.reason


def with_crc(report: bytes | bytearray) -> bytes:
    """The report with its checksum made right."""
    crc = 0xFFFF  # bit by bit, so that no table and no library is shared with what is tested
    for byte in report[:-2]:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return bytes(report[:-2]) + crc.to_bytes(2, "little")
