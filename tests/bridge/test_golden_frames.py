# SPDX-License-Identifier: Apache-2.0
"""One conversation, byte for byte: the Python codec and the C core must both give these reports.

tests/golden/frames/*.json change only with the version of the protocol.
`THOCK_REWRITE_GOLDENS=1 python -m pytest tests/bridge/test_golden_frames.py` writes them anew.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
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
    Offer,
    Parts,
    Poll,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "frames"
BOARD = BoardConfig(
    panel_width=128, panel_height=32, led_count=16, uid=bytes.fromhex("0123456789ab"), build=1
)
CLIENT = 0x2A
FIRST, LAST = True, True


class Happening(enum.Enum):
    """What a person does on the board, besides its ordinary keys and macros."""

    CAPTURE_BEGINS = enum.auto()
    CAPTURE_ENDS = enum.auto()
    ACCEPT_KEY = enum.auto()


Key = tuple[int, int, int, bool]  # row, column, keycode, pressed
# (time in ms, what the host sends with FIRST and LAST, or what happens on the board)
CONVERSATION: list[tuple[int, tuple[Message, bool, bool] | Key | int | Happening]] = [
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
    (900, (Subscribe(EventKinds(15)), FIRST, LAST)),
    (901, (TextRun(0, 0, "1 brown"), FIRST, LAST)),
    (902, (Offer(0, 1, 6), FIRST, LAST)),
    (950, Happening.ACCEPT_KEY),
    (1000, Happening.CAPTURE_BEGINS),
    (1050, (1, 2, 0x04, True)),
    (1130, (1, 2, 0x04, False)),
    (1200, Happening.CAPTURE_ENDS),
    (1300, (Release(Parts.SUBSCRIPTION), FIRST, LAST)),
]
POLLED_CONVERSATION: list[tuple[int, tuple[Message, bool, bool] | Key | int | Happening]] = [
    (1, (Hello(0x89ABCDEF, 1, 1), FIRST, LAST)),
    (2, (Subscribe(EventKinds.KEYS | EventKinds.MACROS), FIRST, LAST)),
    (10, (Poll(), FIRST, LAST)),  # nothing yet
    (100, (1, 2, 0x04, True)),
    (110, (Poll(), FIRST, LAST)),
]
CONVERSATIONS = {
    "v1": (BOARD, CONVERSATION),
    "v1_polled": (replace(BOARD, features=BOARD.features | Feature.POLL), POLLED_CONVERSATION),
}
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
    ("host", FrameType.POLL): Poll.unpack,
    ("host", FrameType.ACCEPT): Offer.unpack,
    ("keyboard", FrameType.ACK): Ack.unpack,
    ("keyboard", FrameType.NAK): Nak.unpack,
}


def act(core: FirmwareCore, what: Key | int | Happening, at_ms: int) -> None:
    match what:
        case (row, column, keycode, pressed):
            tell = core.captured_key_event if core.capturing else core.key_event
            tell(row, column, keycode, pressed, at_ms)
        case int(number):
            core.macro_event(number, True, at_ms)
        case Happening.CAPTURE_BEGINS:
            core.begin_capture(at_ms)
        case Happening.CAPTURE_ENDS:
            core.end_capture(at_ms)
        case Happening.ACCEPT_KEY:
            core.panel()
            assert core.accept(at_ms)


def converse(name: str) -> list[dict[str, Any]]:
    """What Python encodes for the host, and what the C core sends."""
    sent: list[bytes] = []

    def send(report: bytes) -> bool:
        sent.append(report)
        return True

    lines: list[dict[str, Any]] = []
    board, conversation = CONVERSATIONS[name]
    core = FirmwareCore(board, send)
    seq = 0
    for at_ms, what in conversation:
        match what:
            case (message, first, last):
                frame = Frame(message.type, CLIENT, seq, message.pack(), first, last)
                report = encode(frame, board.report_length)
                kind = type(message).__name__
                lines.append({"ms": at_ms, "from": "host", "message": kind, "report": report.hex()})
                assert core.receive(report, at_ms)
                seq += 1
            case _:
                act(core, what, at_ms)
        core.task(at_ms)
        for report in sent:
            message = UNPACK["keyboard", decode(report).type](decode(report).payload)
            kind = type(message).__name__
            lines.append({"ms": at_ms, "from": "keyboard", "message": kind, "report": report.hex()})
        sent.clear()
    return lines


def golden(name: str) -> list[dict[str, Any]]:
    file = GOLDEN / f"{name}.json"
    if os.environ.get("THOCK_REWRITE_GOLDENS") == "1":
        lines = ",\n".join(f"  {json.dumps(line)}" for line in converse(name))
        file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    content: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return content


ALL = [(name, line) for name in CONVERSATIONS for line in golden(name)]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_both_codecs_give_the_golden_conversation(name: str) -> None:
    assert converse(name) == golden(name)


def test_every_kind_of_message_is_in_the_conversations() -> None:
    kinds = {(line["from"], decode(bytes.fromhex(line["report"])).type) for _, line in ALL}
    assert kinds == UNPACK.keys()


@pytest.mark.parametrize(
    "line",
    [line for _, line in ALL],
    ids=[f"{name}-{line['ms']}-{line['message']}" for name, line in ALL],
)
def test_python_reads_and_writes_each_golden_report(line: dict[str, Any]) -> None:
    report = bytes.fromhex(line["report"])
    frame = decode(report)
    assert encode(frame, len(report)) == report
    message = UNPACK[line["from"], frame.type](frame.payload)
    assert type(message).__name__ == line["message"]
    assert message.pack() == frame.payload
