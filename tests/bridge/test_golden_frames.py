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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode, is_frame, shift_of
from firmware_bridge.protocol.key_messages import KeyReport
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
    Message,
    Nak,
    NakReason,
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
CLIENT, STRANGER = 0x2A, 0x2B


@dataclass(frozen=True)
class Says:
    """The host sends a frame."""

    message: Message
    first: bool = True
    last: bool = True
    client: int = CLIENT
    version: int = 1


@dataclass(frozen=True)
class Malformed:
    """A payload that no message has."""

    type: FrameType
    payload: bytes

    def pack(self) -> bytes:
        return self.payload


@dataclass(frozen=True)
class OtherAsks:
    """Another program sends a request; whether VIA's answer waits for the core to give it."""

    report: bytes
    is_late: bool


class Happening(enum.Enum):
    """What a person does on the board, besides its ordinary keys and macros."""

    TIME_PASSES = enum.auto()

    CAPTURE_BEGINS = enum.auto()
    CAPTURE_ENDS = enum.auto()
    ACCEPT_KEY = enum.auto()


Key = tuple[int, int, int, bool]  # row, column, keycode, pressed
Step = tuple[
    int, Says | OtherAsks | Key | int | Happening
]  # time in ms; an int is the number of a macro key
HELLO = Says(Hello(0x89ABCDEF, 1, 1))
SUBSCRIBE = Says(Subscribe(EventKinds.KEYS | EventKinds.MACROS))
CONVERSATION: list[Step] = [
    (0, Says(SetStatus(Status.THINKING))),  # refused: not subscribed
    (1, HELLO),
    (2, SUBSCRIBE),
    (100, (1, 2, 0x04, True)),
    (180, (1, 2, 0x04, False)),
    (200, 3),
    (300, Says(TextRun(0, 0, "Hello from your"), last=False)),
    (301, Says(TextRun(1, 0, "keyboard!"), first=False)),
    (400, Says(TextRun(1, 8, "."), first=False)),
    (500, Says(BitmapRun(0, 0, bytes(range(22))), last=False)),
    (501, Says(BitmapRun(3, 126, b"\xff\x81"), first=False)),
    (502, Says(BitmapRun(4, 0, b"\xff"))),  # refused: there is no such page
    (600, Says(LightsFill(LightEffect.BREATHE, Rgb(0, 64, 255)))),
    (601, Says(LightsRun(9, (Rgb(255, 0, 0), Rgb(0, 255, 0), Rgb(0, 0, 255))))),
    (602, Says(LightsForget())),
    (603, Says(LightsOff())),
    (700, Says(SetStatus(Status.LISTENING))),
    (800, Says(Release(Parts.DISPLAY | Parts.STATUS))),
    (900, Says(Subscribe(EventKinds(15)))),
    (901, Says(TextRun(0, 0, "1 brown"))),
    (902, Says(Offer(0, 1, 6))),
    (950, Happening.ACCEPT_KEY),
    (1000, Happening.CAPTURE_BEGINS),
    (1050, (1, 2, 0x04, True)),
    (1130, (1, 2, 0x04, False)),
    (1200, Happening.CAPTURE_ENDS),
    (1300, Says(Release(Parts.SUBSCRIPTION))),
]
POLLED: list[Step] = [
    (1, HELLO),
    (2, SUBSCRIBE),
    (10, Says(Poll())),  # nothing yet
    (100, (1, 2, 0x04, True)),
    (110, Says(Poll())),
]
REFUSED: list[Step] = [
    (1, Says(Hello(0x89ABCDEF, 2, 3))),  # version
    (2, Says(Subscribe(EventKinds.KEYS), version=2)),  # version
    (3, Says(Poll())),  # type
    (4, Says(Subscribe(EventKinds.KEYS), client=0)),  # range
    (5, Says(Subscribe(EventKinds(15)))),  # unsupported
    (6, SUBSCRIBE),
    (7, replace(SUBSCRIBE, client=STRANGER)),  # busy
    (8, Says(Malformed(FrameType.STATUS, b"\1\2"))),  # length
    (9, Says(LightsOff())),  # unsupported
]
FIRST_QUESTION = b"\x01".ljust(32, b"\0")
VIA_FORM: list[Step] = [
    (1, HELLO),
    (2, Says(Subscribe(EventKinds.KEYS | EventKinds.MACROS | EventKinds.VIA_FORM))),
    (100, (1, 2, 0x04, True)),
    (180, (1, 2, 0x04, False)),
    (300, OtherAsks(FIRST_QUESTION, is_late=False)),  # nothing of ours is under way
    (350, Says(SetStatus(Status.THINKING))),  # not answered
    (450, (1, 2, 0x05, True)),  # held
    (500, Says(SetStatus(Status.THINKING))),
    (520, OtherAsks(FIRST_QUESTION, is_late=True)),
    (619, Happening.TIME_PASSES),
    (620, Happening.TIME_PASSES),  # VIA's answer
    (700, Says(Release(Parts.SUBSCRIPTION))),
]
CONVERSATIONS = {
    "v1": (BOARD, CONVERSATION),
    "v1_polled": (replace(BOARD, features=BOARD.features | Feature.POLL), POLLED),
    "v1_via_form": (replace(BOARD, via_version=12), VIA_FORM),
    "v1_refused": (replace(BOARD, led_count=0, features=Feature(0x2F)), REFUSED),
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
        case Happening.TIME_PASSES:
            pass


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
            case Says(message=message):
                frame = Frame(
                    message.type,
                    what.client,
                    seq,
                    message.pack(),
                    what.first,
                    what.last,
                    what.version,
                )
                report = encode(frame, board.report_length)
                kind = type(message).__name__
                lines.append({"ms": at_ms, "from": "host", "message": kind, "report": report.hex()})
                assert core.receive(report, at_ms)
                seq += 1
            case OtherAsks(report=report):
                lines.append({"ms": at_ms, "from": "other", "report": report.hex()})
                assert core.other_request(report, at_ms) == what.is_late
            case _:
                act(core, what, at_ms)
        core.task(at_ms)
        for report in sent:
            if not is_frame(report):
                lines.append({"ms": at_ms, "from": "keyboard as VIA", "report": report.hex()})
                continue
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


ALL = [(name, line) for name in CONVERSATIONS for line in golden(name) if "message" in line]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_both_codecs_give_the_golden_conversation(name: str) -> None:
    assert converse(name) == golden(name)


def test_every_reason_of_a_refusal_is_in_the_conversations() -> None:
    frames = [decode(bytes.fromhex(line["report"])) for _, line in ALL]
    reasons = {Nak.unpack(f.payload).reason for f in frames if f.type is FrameType.NAK}
    assert reasons == set(NakReason)


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
    via_version = int.from_bytes(report[1:3], "big") if shift_of(report) else None
    assert encode(frame, len(report), via_version=via_version) == report
    if line["message"] == "Malformed":
        return
    message = UNPACK[line["from"], frame.type](frame.payload)
    assert type(message).__name__ == line["message"]
    assert message.pack() == frame.payload
