# SPDX-License-Identifier: Apache-2.0
"""The bytes in docs/PROTOCOL.md, section "Examples", are those of the golden conversations."""

from __future__ import annotations

import json
import re
from pathlib import Path

from firmware_bridge.protocol.frames import Frame, FrameType, decode, is_frame
from firmware_bridge.protocol.key_messages import KeyReport, RecordKind
from firmware_bridge.protocol.messages import (
    Nak,
    NakReason,
)
from firmware_bridge.protocol.serial_framing import encode_report
from firmware_bridge.transport.base import DeviceIdentity
from firmware_bridge.via.channel import ViaChannelTransport

ROOT = Path(__file__).resolve().parents[2]
_BYTES = re.compile(r"`((?:[0-9A-F]{2} ?)+)`")
_ROW = re.compile(r"^\| (host|keyboard) \| ([^|]+) \| (.*) \|$", re.MULTILINE)


def section(title: str) -> str:
    text = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    _, heading, rest = text.partition(f"\n### {title}\n")
    assert heading, f"docs/PROTOCOL.md has no section {title}"
    return rest.partition("\n### ")[0]


def bytes_in(text: str) -> bytes:
    return b"".join(bytes.fromhex(found) for found in _BYTES.findall(text))


def golden_reports() -> list[tuple[str, bytes]]:
    lines = [
        line
        for file in sorted((ROOT / "tests" / "golden" / "frames").glob("*.json"))
        for line in json.loads(file.read_text(encoding="utf-8"))
    ]
    return [(line["from"], bytes.fromhex(line["report"])) for line in lines]


def golden() -> list[tuple[str, Frame, bytes]]:
    return [
        (sender, decode(report), report) for sender, report in golden_reports() if is_frame(report)
    ]


def payloads() -> list[tuple[str, FrameType, bytes]]:
    return [
        (sender, FrameType[name], bytes_in(text))
        for sender, name, text in _ROW.findall(section("Payloads"))
    ]


def test_the_report_that_is_taken_apart_is_whole() -> None:
    rows = re.findall(r"^\| (`[0-9A-F ]+`) \|", section("A report"), re.MULTILINE)
    report = b"".join(bytes_in(row) for row in rows)
    assert report in [raw for _, _, raw in golden()]


def test_each_payload_was_sent() -> None:
    sent = {(sender, frame.type, frame.payload) for sender, frame, _ in golden()}
    assert set(payloads()) <= sent
    assert len(set(payloads())) == len(payloads())


def test_there_is_a_payload_of_every_frame_and_of_every_kind_in_it() -> None:
    shown = payloads()
    sent = {(sender, frame.type) for sender, frame, _ in golden()}
    assert {(sender, kind) for sender, kind, _ in shown} == sent
    naks = {Nak.unpack(payload).reason for _, kind, payload in shown if kind is FrameType.NAK}
    assert naks == set(NakReason)
    lights = {payload[0] for _, kind, payload in shown if kind is FrameType.LIGHTS}
    assert lights == {0, 1, 2, 3}
    keys = [KeyReport.unpack(p).events[0] for _, kind, p in shown if kind is FrameType.KEY]
    assert {key.kind for key in keys} == set(RecordKind)
    assert {key.captured for key in keys} == {True, False}
    assert {len(payload) for _, kind, payload in shown if kind is FrameType.ACK} == {1, 3}


class _Wire:
    """A transport of which only its reports matter."""

    identity, report_length, wakeable = DeviceIdentity("test"), 32, False

    def __init__(self, incoming: bytes = b"") -> None:
        self.incoming, self.written = incoming, b""

    def wake(self) -> None: ...

    def open(self) -> None: ...

    def close(self) -> None: ...

    def read(self, timeout_s: float) -> bytes | None:
        return self.incoming

    def write(self, report: bytes) -> None:
        self.written = report


def test_the_same_frames_in_the_other_ways() -> None:
    asked, answered, unknown, key, late, packet = (
        bytes_in(text) for _, _, text in _ROW.findall(section("Other ways"))
    )
    reports = {(sender, frame.type, frame.seq): raw for sender, frame, raw in reversed(golden())}
    subscribe = reports["host", FrameType.SUBSCRIBE, 2]
    ack = reports["keyboard", FrameType.ACK, 2]
    caps = reports["keyboard", FrameType.CAPS, 1]
    wire = _Wire(answered)
    channel = ViaChannelTransport(wire)
    channel.write(subscribe)
    assert wire.written == asked
    assert channel.read(1) == ack
    assert unknown == b"\xff" + asked[1:]
    assert packet == encode_report(caps)
    keyboard = [report for sender, report in golden_reports() if sender.startswith("keyboard")]
    assert key in keyboard
    assert late in keyboard
    assert decode(key) == decode(reports["keyboard", FrameType.KEY, 0])
