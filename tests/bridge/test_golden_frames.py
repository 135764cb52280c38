# SPDX-License-Identifier: Apache-2.0
"""One conversation, byte for byte: the Python codec and the C core must both give these reports.

tests/golden/frames/v1.json changes only with the version of the protocol.
`THOCK_REWRITE_GOLDENS=1 python -m pytest tests/bridge/test_golden_frames.py` writes it anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsOff,
    LightsRun,
    unpack_lights,
)
from firmware_bridge.protocol.messages import (
    Ack,
    BitmapRun,
    Caps,
    EventKinds,
    Hello,
    KeyReport,
    Message,
    Nak,
    Parts,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "frames" / "v1.json"
BOARD = BoardConfig(
    panel_width=128, panel_height=32, led_count=16, uid=bytes.fromhex("0123456789ab"), build=1
)
CLIENT = 0x2A
FIRST, LAST = True, True

Key = tuple[int, int, int, bool]  # row, column, keycode, pressed
# (time in ms, what the host sends with FIRST and LAST, or what happens on the board)
CONVERSATION: list[tuple[int, tuple[Message, bool, bool] | Key | int]] = [
    (0, (SetStatus(Status.THINKING), FIRST, LAST)),  # refused: not subscribed
    (1, (Hello(0x89ABCDEF, 1, 1), FIRST, LAST)),
    (2, (Subscribe(EventKinds.KEYS | EventKinds.MACROS), FIRST, LAST)),
    (100, (1, 2, 0x04, True)),
    (180, (1, 2, 0x04, False)),
    (200, 3),  # companion key 3
    (300, (TextRun(0, 0, "Hello from your"), FIRST, not LAST)),
    (301, (TextRun(1, 0, "keyboard!"), not FIRST, LAST)),
    (400, (TextRun(1, 8, "."), not FIRST, LAST)),
    (500, (BitmapRun(0, 0, bytes(range(22))), FIRST, not LAST)),
    (501, (BitmapRun(3, 126, b"\xff\x81"), not FIRST, LAST)),
    (502, (BitmapRun(4, 0, b"\xff"), FIRST, LAST)),  # refused: there is no such page
    (600, (LightsFill(LightEffect.BREATHE, Rgb(0, 64, 255)), FIRST, LAST)),
    (601, (LightsRun(9, (Rgb(255, 0, 0), Rgb(0, 255, 0), Rgb(0, 0, 255))), FIRST, LAST)),
    (602, (LightsForget(), FIRST, LAST)),
    (603, (LightsOff(), FIRST, LAST)),
    (700, (SetStatus(Status.LISTENING), FIRST, LAST)),
    (800, (Release(Parts.DISPLAY | Parts.STATUS), FIRST, LAST)),
    (900, (Release(Parts.SUBSCRIPTION), FIRST, LAST)),
]
UNPACK: dict[tuple[str, FrameType], Callable[[bytes], Message]] = {
    ("host", FrameType.HELLO): Hello.unpack,
    ("keyboard", FrameType.CAPS): Caps.unpack,
    ("host", FrameType.SUBSCRIBE): Subscribe.unpack,
    ("keyboard", FrameType.KEY): KeyReport.unpack,
    ("host", FrameType.TEXT): TextRun.unpack,
    ("host", FrameType.BITMAP): BitmapRun.unpack,
    ("host", FrameType.LIGHTS): unpack_lights,
    ("host", FrameType.STATUS): SetStatus.unpack,
    ("host", FrameType.RELEASE): Release.unpack,
    ("keyboard", FrameType.ACK): Ack.unpack,
    ("keyboard", FrameType.NAK): Nak.unpack,
}


def converse() -> list[dict[str, Any]]:
    """What Python encodes for the host, and what the C core sends."""
    sent: list[bytes] = []

    def send(report: bytes) -> bool:
        sent.append(report)
        return True

    lines: list[dict[str, Any]] = []
    core = FirmwareCore(BOARD, send)
    seq = 0
    for at_ms, what in CONVERSATION:
        match what:
            case (row, column, keycode, pressed):
                core.key_event(row, column, keycode, pressed, at_ms)
            case int(number):
                core.macro_event(number, True, at_ms)
            case (message, first, last):
                frame = Frame(message.type, CLIENT, seq, message.pack(), first, last)
                report = encode(frame, BOARD.report_length)
                name = type(message).__name__
                lines.append({"ms": at_ms, "from": "host", "message": name, "report": report.hex()})
                assert core.receive(report, at_ms)
                seq += 1
        core.task(at_ms)
        for report in sent:
            message = UNPACK["keyboard", decode(report).type](decode(report).payload)
            name = type(message).__name__
            lines.append({"ms": at_ms, "from": "keyboard", "message": name, "report": report.hex()})
        sent.clear()
    return lines


def golden() -> list[dict[str, Any]]:
    if os.environ.get("THOCK_REWRITE_GOLDENS") == "1":
        lines = ",\n".join(f"  {json.dumps(line)}" for line in converse())
        GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    content: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return content


def test_both_codecs_give_the_golden_conversation() -> None:
    assert converse() == golden()


def test_every_kind_of_message_is_in_the_conversation() -> None:
    kinds = {(line["from"], decode(bytes.fromhex(line["report"])).type) for line in golden()}
    assert kinds == UNPACK.keys()


@pytest.mark.parametrize("line", golden(), ids=lambda line: f"{line['ms']}-{line['message']}")
def test_python_reads_and_writes_each_golden_report(line: dict[str, Any]) -> None:
    report = bytes.fromhex(line["report"])
    frame = decode(report)
    assert encode(frame, len(report)) == report
    message = UNPACK[line["from"], frame.type](frame.payload)
    assert type(message).__name__ == line["message"]
    assert message.pack() == frame.payload
