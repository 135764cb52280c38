# SPDX-License-Identifier: Apache-2.0
"""Who is answered, who is refused and why, and what ends by itself."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.light_messages import LightsFill, LightsForget, LightsOff, LightsRun
from firmware_bridge.protocol.messages import (
    NONCE_TRANSFORM,
    BitmapRun,
    Caps,
    EventKinds,
    Hello,
    Message,
    NakReason,
    Parts,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)
from tests.helpers.bench import CLIENT, Bench, nak_reason, with_crc

OTHER = 8
HELLO = Hello(0x89ABCDEF, 1, 1)
OUTPUTS: dict[Feature, Message] = {
    Feature.TEXT: TextRun(0, 0, "hi"),
    Feature.BITMAP: BitmapRun(0, 0, b"\x55"),
    Feature.LIGHTS: LightsOff(),
    Feature.STATUS: SetStatus(Status.THINKING),
}


def caps(bench: Bench, client: int = CLIENT) -> Caps:
    answer = bench.say(HELLO, client)
    assert answer.type == FrameType.CAPS
    return Caps.unpack(answer.payload)


def test_caps_say_what_the_board_has() -> None:
    board = BoardConfig(panel_width=128, panel_height=64, rotation=3, led_count=12, build=9)
    answer = caps(Bench(board))
    found = answer.capabilities
    assert answer.proof == HELLO.nonce ^ NONCE_TRANSFORM
    assert (found.protocol_low, found.protocol_high, found.report_length) == (1, 1, 32)
    assert (found.uid, found.build, found.ring_size) == (board.uid, 9, 32)
    assert (found.width, found.height, found.rotation) == (64, 128, 3)
    assert (found.columns, found.rows, found.led_count) == (10, 16, 12)
    assert found.features == board.features == Feature(255)


def test_caps_of_a_bare_board_offer_neither_display_nor_lights() -> None:
    bench = Bench(BoardConfig(panel_width=0, panel_height=0, led_count=0))
    found = caps(bench).capabilities
    assert (found.width, found.height, found.columns, found.rows, found.led_count) == (0,) * 5
    assert found.features == Feature.KEYS | Feature.MACROS | Feature.STATUS | Feature.CAPTURE
    bench.subscribe()
    for feature in (Feature.TEXT, Feature.BITMAP, Feature.LIGHTS):
        assert bench.refusal(OUTPUTS[feature]) == NakReason.UNSUPPORTED
    bench.do(SetStatus(Status.PAUSED))
    assert bench.core.status == Status.PAUSED
    assert not bench.core.display_taken


@pytest.mark.parametrize("feature", [feature for feature in Feature if feature & 63])
def test_a_feature_that_the_board_leaves_out_is_refused(feature: Feature) -> None:
    messages: dict[Feature, Message] = {
        Feature.KEYS: Subscribe(EventKinds.KEYS),
        Feature.MACROS: Subscribe(EventKinds.MACROS),
        **OUTPUTS,
    }
    bench = Bench(BoardConfig(features=Feature(63) & ~feature))
    assert caps(bench).capabilities.features == Feature(63) & ~feature
    bench.subscribe(EventKinds(0))
    assert bench.refusal(messages[feature]) == NakReason.UNSUPPORTED
    for other, message in messages.items():
        if other != feature:
            bench.do(message)


@pytest.mark.parametrize(
    "board",
    [
        BoardConfig(report_length=31),
        BoardConfig(report_length=65),
        BoardConfig(rotation=4),
        BoardConfig(led_count=257),
        BoardConfig(panel_width=0),
        BoardConfig(panel_height=0),
        BoardConfig(panel_width=127),
        BoardConfig(panel_height=36),
        BoardConfig(panel_width=136, panel_height=8),
        BoardConfig(panel_width=8, panel_height=136),
        BoardConfig(uid=b"short"),
    ],
)
def test_a_board_that_does_not_fit_is_refused_at_the_start(board: BoardConfig) -> None:
    with pytest.raises(ValueError, match=r"uid|room"):
        FirmwareCore(board, lambda report: True)


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
        (FrameType.SUBSCRIBE, b"\x10"),
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


def test_a_second_client_is_refused_while_the_first_is_alive() -> None:
    bench = Bench()
    bench.subscribe()
    bench.now = 2999
    release = Release(Parts.SUBSCRIPTION)
    for message in [Subscribe(EventKinds.KEYS), *OUTPUTS.values(), LightsForget(), release]:
        assert bench.refusal(message, OTHER) == NakReason.BUSY
    assert caps(bench, OTHER).capabilities.build == 1
    assert bench.core.subscribed
    bench.now = 3000
    bench.subscribe(client=OTHER)
    assert bench.refusal(TextRun(0, 0, "")) == NakReason.BUSY


def test_release_without_a_subscription_is_harmless() -> None:
    bench = Bench()
    bench.do(Release(Parts(15)))
    assert not bench.core.subscribed


@pytest.mark.parametrize("start", [0, 1, 0xFFFF_FFFF, 0xFFFF_F800, 0x7FFF_FF00, 0x8000_0000])
@pytest.mark.parametrize("noticed_by", ["task", "receive"])
def test_silence_ends_the_subscription_after_3_seconds(start: int, noticed_by: str) -> None:
    """Also where the clock wraps, and at its half."""
    bench = Bench(now=start)
    bench.subscribe()
    bench.now = start + 2000
    bench.subscribe()  # the keepalive
    for passed, alive in [(0, True), (2999, True), (3000, False)]:
        bench.now = start + 2000 + passed
        if noticed_by == "task":
            bench.task()
        else:
            bench.say(HELLO, OTHER)
        assert bench.core.subscribed == alive


def test_only_subscribe_keeps_the_subscription_alive() -> None:
    bench = Bench()
    bench.subscribe()
    bench.now = 2999
    bench.do(SetStatus(Status.LISTENING))
    bench.now = 3000
    assert bench.refusal(SetStatus(Status.PAUSED)) == NakReason.NOT_SUBSCRIBED


def test_a_clock_that_steps_back_does_not_end_the_subscription() -> None:
    bench = Bench(now=1000)
    bench.subscribe()
    bench.now = 990
    bench.task()
    assert bench.core.subscribed


def show_everything(bench: Bench) -> None:
    bench.subscribe()
    bench.show("text")
    bench.do(LightsFill(LightEffect.SOLID, Rgb(1, 2, 3)))
    bench.do(LightsRun(2, (Rgb(4, 5, 6),)))
    bench.do(SetStatus(Status.THINKING))
    bench.core.key_event(1, 1, 4, True, bench.now)


def is_as_new(bench: Bench) -> bool:
    return (
        not bench.core.display_taken
        and not any(bench.core.panel().pages)
        and not any(bench.core.led_colors(bench.now))
        and bench.core.status == Status.IDLE
        and not bench.core.subscribed
    )


@pytest.mark.parametrize("way", ["silence", "release", "hello again"])
def test_the_end_of_a_subscription_gives_everything_back(way: str) -> None:
    bench = Bench()
    show_everything(bench)
    assert any(bench.core.panel().pages)
    if way == "silence":
        bench.now = 3000
        bench.task()
    elif way == "release":
        bench.do(Release(Parts.SUBSCRIPTION))
    else:
        caps(bench)
    assert is_as_new(bench)
    assert bench.task() == []
    bench.subscribe()
    assert bench.key_reports() == []
    bench.core.key_event(0, 0, 4, True, bench.now)
    (report,) = bench.key_reports()
    assert (report.first_index, report.dropped) == (0, 0)


def test_release_gives_back_only_what_it_names() -> None:
    bench = Bench()
    show_everything(bench)
    bench.do(Release(Parts.LIGHTS))
    assert not any(bench.core.led_colors(0))
    assert bench.core.status == Status.THINKING
    bench.do(Release(Parts.STATUS))
    assert bench.core.status == Status.IDLE
    assert any(bench.core.panel().pages)
    bench.do(Release(Parts.DISPLAY))
    assert not bench.core.display_taken
    assert not any(bench.core.panel().pages)
    assert len(bench.key_reports()) == 1


def test_nothing_is_sent_before_a_host_speaks() -> None:
    bench = Bench()
    assert not bench.core.key_event(0, 0, 4, True, 0)
    assert not bench.core.macro_event(0, True, 0)
    for bench.now in range(0, 10_000, 100):
        assert bench.task() == []
    assert bench.offered == 0


def test_an_answer_that_the_link_refused_is_kept_until_it_takes_it() -> None:
    bench = Bench()
    bench.subscribe()
    bench.core.key_event(0, 0, 4, True, 0)
    bench.link_open = False
    assert bench.raw(FrameType.SUBSCRIBE, b"\3") == []
    kept = bench.seq
    assert bench.task() == []
    bench.link_open = True
    answer, key = bench.task()
    assert (answer.type, answer.seq, key.type) == (FrameType.ACK, kept, FrameType.KEY)
    assert bench.task() == []


def test_a_frame_is_left_undone_while_an_answer_waits() -> None:
    bench = Bench()
    bench.subscribe()
    bench.link_open = False
    bench.raw(FrameType.STATUS, bytes((Status.LISTENING,)))
    kept = bench.seq
    assert bench.raw(FrameType.STATUS, bytes((Status.ERROR,))) == []
    assert bench.core.status == Status.LISTENING
    bench.link_open = True
    first, second = bench.raw(FrameType.STATUS, bytes((Status.PAUSED,)))
    assert (first.seq, second.seq) == (kept, bench.seq)
    assert bench.core.status == Status.PAUSED


def test_what_the_send_callback_raises_comes_out_and_the_answer_is_kept() -> None:
    reports: list[bytes] = []

    def send(report: bytes) -> bool:
        if not reports:
            reports.append(report)
            raise OSError("unplugged")
        reports.append(report)
        return True

    core = FirmwareCore(BoardConfig(), send)
    with pytest.raises(OSError, match="unplugged"):
        core.receive(encode(Frame(FrameType.HELLO, CLIENT, 1, HELLO.pack()), 32), 0)
    core.task(1)
    assert len(reports) == 2
    assert reports[0] == reports[1]


def test_a_longer_report_carries_longer_payloads() -> None:
    bench = Bench(BoardConfig(report_length=64))
    assert caps(bench).capabilities.report_length == 64
    bench.subscribe()
    bench.do(BitmapRun(0, 0, bytes(range(54))))
    assert bench.core.picture().pages[:54] == bytes(range(54))
