# SPDX-License-Identifier: Apache-2.0
"""What a board says of itself, who is answered, and what ends by itself."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.light_messages import LightsFill, LightsForget, LightsRun
from firmware_bridge.protocol.messages import (
    NONCE_TRANSFORM,
    BitmapRun,
    EventKinds,
    NakReason,
    Parts,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)
from tests.helpers.bench import CLIENT, HELLO, OUTPUTS, Bench

OTHER = 8


def test_caps_say_what_the_board_has() -> None:
    board = BoardConfig(panel_width=128, panel_height=64, rotation=3, led_count=12, build=9)
    answer = Bench(board).caps()
    found = answer.capabilities
    assert answer.proof == HELLO.nonce ^ NONCE_TRANSFORM
    assert (found.protocol_low, found.protocol_high, found.report_length) == (1, 1, 32)
    assert (found.uid, found.build, found.ring_size) == (board.uid, 9, 32)
    assert (found.width, found.height, found.rotation) == (64, 128, 3)
    assert (found.columns, found.rows, found.led_count) == (10, 16, 12)
    assert found.features == board.features == Feature(255)


def test_caps_of_a_bare_board_offer_neither_display_nor_lights() -> None:
    bench = Bench(BoardConfig(panel_width=0, panel_height=0, led_count=0))
    found = bench.caps().capabilities
    assert (found.width, found.height, found.columns, found.rows, found.led_count) == (0,) * 5
    assert found.features == Feature.KEYS | Feature.MACROS | Feature.STATUS | Feature.CAPTURE
    bench.subscribe()
    for feature in (Feature.TEXT, Feature.BITMAP, Feature.LIGHTS):
        assert bench.refusal(OUTPUTS[feature]) == NakReason.UNSUPPORTED
    bench.do(SetStatus(Status.PAUSED))
    assert bench.core.status == Status.PAUSED
    assert not bench.core.display_taken


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


def test_a_second_client_is_refused_while_the_first_is_alive() -> None:
    bench = Bench()
    bench.subscribe()
    bench.now = 2999
    release = Release(Parts.SUBSCRIPTION)
    for message in [Subscribe(EventKinds.KEYS), *OUTPUTS.values(), LightsForget(), release]:
        assert bench.refusal(message, OTHER) == NakReason.BUSY
    assert bench.caps(OTHER).capabilities.build == 1
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
        bench.caps()
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
    assert bench.caps().capabilities.report_length == 64
    bench.subscribe()
    bench.do(BitmapRun(0, 0, bytes(range(54))))
    assert bench.core.picture().pages[:54] == bytes(range(54))
