# SPDX-License-Identifier: Apache-2.0
"""Display, lights and status over a session: newest wins, rate limits, differences, turns, refusals."""

from __future__ import annotations

import pytest

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.messages import Nak, NakReason, Parts, Release, Status, TextRun
from tests.helpers.session_lab import SessionLab, carry

TEXT, BITMAP = FrameType.TEXT, FrameType.BITMAP
LIT = BitmapFrame(128, 32, b"\xff" * 512)


@pytest.fixture
def lab() -> SessionLab:
    lab = SessionLab()
    lab.settle()
    lab.sent.clear()
    return lab


def text(*rows: str) -> TextFrame:
    return TextFrame(rows)


def sent(lab: SessionLab, kind: FrameType) -> list[Frame]:
    return [frame for frame in lab.sent if frame.type is kind]


def test_the_first_update_goes_at_once_and_the_next_waits(lab: SessionLab) -> None:
    start = lab.now
    lab.output.show(text("one"), lab.now)
    lab.settle()
    assert len(sent(lab, TEXT)) == 1
    lab.output.show(text("two"), lab.now)
    lab.settle()
    assert len(sent(lab, TEXT)) == 1
    lab.run(0.2)
    assert len(sent(lab, TEXT)) == 2
    assert lab.stats.shown_s == pytest.approx(lab.options.text_interval_s)
    assert lab.now - start == pytest.approx(0.2)


def test_only_the_newest_content_is_sent(lab: SessionLab) -> None:
    for i in range(100):
        lab.output.show(text(f"number {i}"), lab.now)
    lab.settle()
    (frame,) = sent(lab, TEXT)
    assert TextRun.unpack(frame.payload).text == "number 99"


@pytest.mark.parametrize(("kind", "most"), [("text", 20), ("bitmap", 10)])
def test_a_stream_of_updates_stays_within_the_rate_and_ends_right(
    lab: SessionLab, kind: str, most: int
) -> None:
    updates = 0
    for i in range(200):
        if kind == "text":
            lab.output.show(text(f"{i}"), lab.now)
        else:
            pages = bytearray(512)
            pages[i] = 1
            lab.output.show(BitmapFrame(128, 32, bytes(pages)), lab.now)
        lab.run(0.01)
    updates = sum(frame.last for frame in (*sent(lab, TEXT), *sent(lab, BITMAP)))
    assert 2 * most - 2 <= updates <= 2 * most + 1
    lab.run(0.2)
    assert lab.output.due() == float("inf")


def test_an_update_is_finished_before_the_next_begins(lab: SessionLab) -> None:
    """On a slow keyboard, where a full bitmap takes longer than its interval."""
    slow: list[bytes] = []
    lab.to_host = lambda report: slow.append(report) or []  # type: ignore[func-returns-value]
    flipped = BitmapFrame(128, 32, bytes(512))
    lasts = 0
    for i in range(600):
        lab.output.show(LIT if i % 2 else flipped, lab.now)
        lab.settle()
        lab.now += 0.01
        for report in slow:
            lab.give(report)
        slow.clear()
        lasts = sum(frame.last for frame in sent(lab, BITMAP))
    assert lasts >= 20
    assert lab.core.picture() in (LIT, flipped)


def test_differences_are_against_what_was_acknowledged(lab: SessionLab) -> None:
    lab.output.show(text("one", "two", "three"), lab.now)
    lab.run(0.1)
    lab.output.show(text("one", "2", "three"), lab.now)
    lab.run(0.1)
    assert len(sent(lab, TEXT)) == 4
    assert TextRun.unpack(lab.sent[-1].payload) == TextRun(1, 0, "2")
    lab.output.show(text("one", "2", "three"), lab.now)
    assert lab.output.due() == float("inf")


def test_everything_is_sent_again_after_a_reconnect(lab: SessionLab) -> None:
    lab.output.show(text("hello", "there"), lab.now)
    lab.output.lights.want(LightOverlay(Rgb(1, 2, 3)), lab.now)
    lab.output.status.want(Status.PAUSED, lab.now)
    lab.run(0.2)
    picture, lights = lab.core.picture(), lab.core.led_colors(lab.ms)
    lab.power_cycle()
    lab.connect()
    lab.run(0.2)
    assert lab.core.picture() == picture
    assert lab.core.led_colors(lab.ms) == lights
    assert lab.core.status is Status.PAUSED


def test_what_is_wanted_before_the_keyboard_comes_is_shown_when_it_comes() -> None:
    lab = SessionLab()
    lab.output.show(text("early"), lab.now)
    lab.settle()
    assert lab.core.display_taken


def test_release_gives_the_parts_back_and_stays_after_a_reconnect(lab: SessionLab) -> None:
    lab.output.show(text("hello"), lab.now)
    lab.output.status.want(Status.PAUSED, lab.now)
    lab.run(0.2)
    lab.sent.clear()
    for channel in (lab.output.display, lab.output.status, lab.output.lights):
        channel.want(None, lab.now)
    lab.run(0.2)
    parts = [Release.unpack(frame.payload).parts for frame in sent(lab, FrameType.RELEASE)]
    assert sorted(parts) == [Parts.DISPLAY, Parts.STATUS]  # the lights were never ours
    assert not lab.core.display_taken
    lab.connect()
    lab.run(0.2)
    assert not lab.core.display_taken


def test_channels_take_turns_frame_by_frame(lab: SessionLab) -> None:
    lab.output.show(LIT, lab.now)
    lab.output.lights.want(LightOverlay(leds={i: Rgb(i, i, i) for i in range(0, 16, 2)}), lab.now)
    lab.output.status.want(Status.LISTENING, lab.now)
    lab.settle()
    kinds = [frame.type for frame in lab.sent]
    assert kinds[:3] == [BITMAP, FrameType.STATUS, FrameType.LIGHTS]
    assert max(i for i, kind in enumerate(kinds) if kind is FrameType.LIGHTS) < 20
    assert kinds.count(BITMAP) == 24


def test_keys_come_in_between_the_frames_of_an_update(lab: SessionLab) -> None:
    keys_before_end: list[int] = []

    def press_meanwhile(report: bytes) -> list[bytes]:
        lab.press(len(keys_before_end))
        keys_before_end.append(len(lab.events))
        return [report]

    lab.to_keyboard = press_meanwhile
    lab.output.show(LIT, lab.now)
    lab.settle()
    lab.to_keyboard = carry
    assert keys_before_end[-1] >= 20  # of 24 frames; LinkReady is one event more


def test_text_is_cut_to_the_display(lab: SessionLab) -> None:
    lab.output.show(text("x" * 42, *["row"] * 20), lab.now)
    lab.run(0.1)
    assert lab.stats.naks == 0
    assert max(TextRun.unpack(frame.payload).row for frame in sent(lab, TEXT)) == 3


@pytest.mark.expected_log("a bitmap of 64x32 on a display of 128x32")
def test_a_bitmap_of_another_size_is_not_sent_and_the_next_content_is(lab: SessionLab) -> None:
    lab.output.show(BitmapFrame(64, 32, bytes(256)), lab.now)
    lab.output.status.want(Status.ERROR, lab.now)
    lab.run(0.2)
    assert not sent(lab, BITMAP)
    assert lab.core.status is Status.ERROR
    lab.output.show(LIT, lab.now)
    lab.output.status.want(Status.IDLE, lab.now)
    lab.run(0.3)
    assert lab.core.picture() == LIT


@pytest.mark.expected_log("the keyboard refused TEXT: RANGE")
def test_refused_content_is_given_up_and_the_next_is_sent_from_a_clean_display(
    lab: SessionLab,
) -> None:
    lab.output.show(text("first"), lab.now)
    lab.settle()

    def refuse(report: bytes) -> list[bytes]:
        frame = Frame(FrameType.NAK, 7, lab.sent[-1].seq, Nak(TEXT, NakReason.RANGE).pack())
        return [encode(frame, 32)] if lab.sent[-1].type is TEXT else [report]

    lab.to_host = refuse
    for i in range(3):
        lab.output.show(text("bad", str(i)), lab.now)
        lab.run(0.3)
    assert lab.stats.naks == 3
    lab.to_host = carry
    lab.sent.clear()
    lab.output.show(text("good"), lab.now)
    lab.run(0.1)
    assert [frame.type for frame in lab.sent] == [FrameType.RELEASE, TEXT]
    assert lab.sent[-1].first


def test_a_board_without_parts_gets_nothing() -> None:
    lab = SessionLab(BoardConfig(panel_width=0, panel_height=0, led_count=0, features=Feature.KEYS))
    lab.settle()
    lab.sent.clear()
    lab.output.show(text("hello"), lab.now)
    lab.output.lights.want(LightOverlay(Rgb(1, 2, 3)), lab.now)
    lab.output.status.want(Status.THINKING, lab.now)
    lab.run(0.5)
    assert lab.sent == []
    assert lab.output.due() == float("inf")
    lab.output.show(LIT, lab.now)
    lab.run(0.1)
    assert lab.sent == []


def test_times_are_measured_from_the_wish(lab: SessionLab) -> None:
    lab.output.show(text("one", "two"), lab.now - 0.003)
    lab.settle()
    assert lab.stats.first_report_s == pytest.approx(0.003)
    assert lab.stats.shown_s == pytest.approx(0.003)
