# SPDX-License-Identifier: Apache-2.0
"""What is no frame of ours, and which frames are refused, and why."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.messages import (
    EventKinds,
    Hello,
    Message,
    NakReason,
    Status,
    Subscribe,
)
from tests.helpers.bench import CLIENT, HELLO, OUTPUTS, Bench, nak_reason, with_crc

OTHER = 8


@pytest.mark.parametrize("feature", [feature for feature in Feature if feature & 63])
def test_a_feature_that_the_board_leaves_out_is_refused(feature: Feature) -> None:
    messages: dict[Feature, Message] = {
        Feature.KEYS: Subscribe(EventKinds.KEYS),
        Feature.MACROS: Subscribe(EventKinds.MACROS),
        **OUTPUTS,
    }
    bench = Bench(BoardConfig(features=Feature(63) & ~feature))
    assert bench.caps().capabilities.features == Feature(63) & ~feature
    bench.subscribe(EventKinds(0))
    assert bench.refusal(messages[feature]) == NakReason.UNSUPPORTED
    for other, message in messages.items():
        if other != feature:
            bench.do(message)


@pytest.mark.parametrize("index", range(32))
def test_a_frame_with_one_wrong_bit_is_not_ours(index: int) -> None:
    bench = Bench()
    report = encode(Frame(FrameType.HELLO, CLIENT, 1, HELLO.pack()), 32)
    for bit in range(8):
        broken = bytearray(report)
        broken[index] ^= 1 << bit
        assert not bench.core.receive(bytes(broken), 0)
    assert bench.offered == 0


def test_foreign_reports_are_left_alone() -> None:
    bench = Bench()
    bench.subscribe()
    before = bench.offered
    via = bytes([0x01]).ljust(32, b"\0")
    vial = bytes([0xFE, 0x00]).ljust(32, b"\0")
    too_long = bytearray(encode(Frame(FrameType.TEXT, CLIENT, 1, b""), 32))
    too_long[5] = 25
    other_magic = bytearray(encode(Frame(FrameType.TEXT, CLIENT, 1, b"\0\0a"), 32))
    other_magic[1] = 0x4D
    for report in (via, vial, bytes(32), with_crc(too_long), with_crc(other_magic)):
        assert not bench.core.receive(report, 0)
    assert bench.offered == before


def test_a_report_of_another_length_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Bench().core.receive(bytes(31), 0)


@pytest.mark.parametrize("version", [0, 2, 15])
@pytest.mark.parametrize("kind", [0, 1, 3, 9, 12])
def test_another_version_is_refused(version: int, kind: int) -> None:
    bench = Bench()
    (answer,) = bench.raw(kind, version=version)
    assert answer.version == 1
    assert nak_reason(answer, kind) == NakReason.VERSION


@pytest.mark.parametrize(("low", "high"), [(2, 3), (0, 0), (2, 1)])
def test_hello_without_a_common_version_is_refused(low: int, high: int) -> None:
    assert Bench().refusal(Hello(1, low, high)) == NakReason.VERSION


def test_hello_from_a_host_that_speaks_more_is_answered() -> None:
    assert Bench().say(Hello(1, 0, 15)).type == FrameType.CAPS


@pytest.mark.parametrize("kind", range(10, 16))
def test_reserved_types_are_refused(kind: int) -> None:
    """POLL and ACCEPT too, on a board without them: it answers as firmware that never knew them."""
    (answer,) = Bench(BoardConfig(features=Feature(63))).raw(kind)
    assert nak_reason(answer, kind) == NakReason.TYPE


@pytest.mark.parametrize("kind", [FrameType.KEY, FrameType.ACK, FrameType.NAK])
def test_what_only_keyboards_send_gets_no_answer(kind: int) -> None:
    """A link that echoes must not make the keyboard talk to itself."""
    bench = Bench()
    bench.subscribe()
    assert bench.raw(kind, bytes(2)) == []


@pytest.mark.parametrize("kind", range(8))
def test_client_number_0_is_refused(kind: int) -> None:
    if kind == FrameType.KEY:
        return
    (answer,) = Bench().raw(kind, client=0)
    assert answer.client == 0
    assert nak_reason(answer, kind) == NakReason.RANGE


@pytest.mark.parametrize(
    ("kind", "lengths"),
    [
        (FrameType.HELLO, [0, 5, 7, 24]),
        (FrameType.SUBSCRIBE, [0, 2, 24]),
        (FrameType.TEXT, [0, 1]),
        (FrameType.BITMAP, [0, 1]),
        (FrameType.STATUS, [0, 2]),
        (FrameType.RELEASE, [0, 2]),
    ],
)
def test_wrong_lengths_are_refused(kind: int, lengths: list[int]) -> None:
    bench = Bench()
    bench.subscribe()
    for length in lengths:
        (answer,) = bench.raw(kind, bytes(length))
        assert nak_reason(answer, kind) == NakReason.LENGTH


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0\0",
        b"\1\0\0\0",
        b"\1\0\0\0\0\0",
        b"\2\0\0",
        b"\2\0\0\1\2",
        b"\2\0\0\1\2\3\4",
        b"\3\0",
    ],
)
def test_wrong_lengths_of_lights_are_refused(payload: bytes) -> None:
    bench = Bench()
    bench.subscribe()
    (answer,) = bench.raw(FrameType.LIGHTS, payload)
    assert nak_reason(answer, FrameType.LIGHTS) == NakReason.LENGTH


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (FrameType.SUBSCRIBE, b"\x20"),
        (FrameType.RELEASE, b"\x10"),
        (FrameType.STATUS, b"\6"),
        (FrameType.TEXT, b"\4\0a"),  # row 4 of 4
        (FrameType.TEXT, b"\0\x15"),  # column 21 of 21
        (FrameType.TEXT, b"\0\0" + b"a" * 22),  # one too many
        (FrameType.TEXT, b"\0\0\x1f"),
        (FrameType.TEXT, b"\0\0ab\x7f"),
        (FrameType.BITMAP, b"\4\0a"),
        (FrameType.BITMAP, b"\0\x80"),
        (FrameType.BITMAP, b"\0\x7fab"),
        (FrameType.LIGHTS, b"\4"),
        (FrameType.LIGHTS, b"\1\3\0\0\0"),
        (FrameType.LIGHTS, b"\2\x10\0\0\0\0"),  # LED 16 of 16
        (FrameType.LIGHTS, b"\2\x0f\0\0\0\0\0\0\0"),
        (FrameType.LIGHTS, b"\2\xff\xff\0\0\0\0\0\0"),
    ],
)
def test_what_the_board_lacks_is_refused_and_changes_nothing(kind: int, payload: bytes) -> None:
    bench = Bench()
    bench.subscribe()
    bench.show("before")
    picture, lights = bench.core.picture(), bench.core.led_colors(0)
    (answer,) = bench.raw(kind, payload)
    assert nak_reason(answer, kind) == NakReason.RANGE
    assert (bench.core.picture(), bench.core.led_colors(0)) == (picture, lights)
    assert bench.core.status == Status.IDLE


@pytest.mark.parametrize("message", OUTPUTS.values())
def test_output_needs_a_subscription(message: Message) -> None:
    bench = Bench()
    assert bench.refusal(message) == NakReason.NOT_SUBSCRIBED
    bench.subscribe(EventKinds(0))
    bench.do(message)
