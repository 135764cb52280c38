# SPDX-License-Identifier: Apache-2.0
"""The link's state machine in invented time: handshake, heartbeat, retries, refusals, faults."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import (
    KeyPressed,
    LinkReady,
)
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link_state import LinkProblem, SessionEndedError
from firmware_bridge.neighbours import load_neighbours, program_of
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import MAGIC, Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import (
    Ack,
    Caps,
    Nak,
    NakReason,
    Release,
    Status,
    Subscribe,
)
from tests.helpers.session_lab import SessionLab, carry, ended, from_keyboard, lose, ready_lab


def is_noise(report: bytes) -> bool:
    """Neither ours nor the answer to a program that we know (for which see tests/via)."""
    return report[:2] != MAGIC and program_of(report, load_neighbours()) is None


def test_the_handshake_takes_two_frames() -> None:
    lab = SessionLab()
    lab.settle()
    assert [frame.type for frame in lab.sent] == [FrameType.HELLO, FrameType.SUBSCRIBE]
    (event,) = lab.events
    assert isinstance(event, LinkReady)
    assert event.capabilities == lab.session.capabilities
    assert event.capabilities.columns == 21
    assert lab.core.subscribed


def test_only_what_the_board_has_is_subscribed() -> None:
    lab = SessionLab(BoardConfig(features=Feature.KEYS | Feature.TEXT))
    lab.settle()
    assert Subscribe.unpack(lab.sent[1].payload).kinds == 1
    assert lab.session.ready


def test_a_heartbeat_a_second_keeps_the_subscription() -> None:
    lab = ready_lab()
    lab.run(10.5)
    assert [frame.type for frame in lab.sent] == [FrameType.SUBSCRIBE] * 10
    assert lab.core.subscribed


def test_an_echo_is_no_module() -> None:
    lab = SessionLab()
    report = lab.session.next_report(lab.now)
    assert report is not None
    for echo in (report, b"\xff" + report[1:]):  # Vial, VIA
        with pytest.raises(SessionEndedError) as caught:
            lab.session.take(echo, lab.now)
        assert caught.value.problem is LinkProblem.NO_MODULE


def test_a_silent_keyboard_is_given_up_after_three_hellos() -> None:
    lab = SessionLab()
    lab.to_keyboard = lose
    start = lab.now
    assert ended(lab, 5) is LinkProblem.NO_ANSWER
    assert len(lab.sent) == 3
    assert lab.now - start == pytest.approx(0.6, abs=0.02)


def test_a_keyboard_that_falls_silent_is_given_up_within_the_heartbeat_and_three_tries() -> None:
    lab = ready_lab()
    lab.to_host = lose
    start = lab.now
    assert ended(lab, 5) is LinkProblem.SILENT
    assert lab.now - start == pytest.approx(1.6, abs=0.03)
    assert lab.stats.retries == 2


def test_single_losses_are_repaired_without_anybody_noticing() -> None:
    lab = ready_lab()
    dice = random.Random(5)
    lab.to_keyboard = lab.to_host = lambda report: lose(report) if dice.random() < 0.1 else [report]
    for i in range(40):
        lab.output.show(TextFrame((f"line {i}", "second")), lab.now)
        lab.run(0.1)
    lab.to_keyboard = lab.to_host = carry
    lab.run(0.5)
    assert lab.stats.retries > 3
    reference = ready_lab()
    reference.output.show(TextFrame(("line 39", "second")), reference.now)
    reference.settle()
    assert lab.core.picture() == reference.core.picture()


def test_a_late_answer_to_an_earlier_copy_counts() -> None:
    lab = ready_lab()
    lab.to_host = lose
    lab.output.status.want(Status.THINKING, lab.now)
    lab.settle()
    lab.run(0.25)
    first, second = lab.sent[-2:]
    assert (first.type, second.type) == (FrameType.STATUS, FrameType.STATUS)
    assert first.seq != second.seq
    lab.to_host = carry
    lab.give(from_keyboard(lab, Ack(FrameType.STATUS), first.seq))
    lab.give(from_keyboard(lab, Ack(FrameType.STATUS), second.seq))
    assert lab.stats.stale == 1
    assert lab.core.status is Status.THINKING
    count = len(lab.sent)
    lab.run(0.5)
    assert not any(frame.type is FrameType.STATUS for frame in lab.sent[count:])


def test_answers_to_frames_that_were_given_up_are_stale() -> None:
    lab = ready_lab()
    lab.settle()
    for seq in range(256):
        lab.give(from_keyboard(lab, Ack(FrameType.TEXT), seq))
        lab.give(from_keyboard(lab, Nak(FrameType.TEXT, NakReason.RANGE), seq))
    assert lab.stats.stale == 512
    assert lab.stats.naks == 0
    assert lab.session.ready


def test_an_answer_with_another_type_or_number_does_not_answer() -> None:
    lab = ready_lab()
    lab.to_host = lose
    lab.run(1.05)
    (heartbeat,) = lab.sent
    lab.to_host = carry
    lab.give(from_keyboard(lab, Ack(FrameType.TEXT), heartbeat.seq))
    lab.give(from_keyboard(lab, Ack(FrameType.SUBSCRIBE), heartbeat.seq - 1))
    assert lab.stats.stale == 2
    lab.give(from_keyboard(lab, Ack(FrameType.SUBSCRIBE), heartbeat.seq))
    lab.run(0.5)
    assert lab.stats.retries == 0


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=20), st.integers(1, 255))
def test_foreign_reports_are_counted_and_change_nothing(noise: list[bytes], other: int) -> None:
    lab = ready_lab()
    strangers = [
        *(report for report in noise if is_noise(report)),
        encode(Frame(FrameType.ACK, other if other != lab.client else 200, 3, b"\1"), 32),
        encode(Frame(FrameType.TEXT, lab.client, 3, b"\0\0"), 32),
        encode(Frame(FrameType.NAK, lab.client, 3, b"\1\xff"), 32),
        encode(Frame(FrameType.KEY, lab.client, 3, b"\0\0\0\1"), 32),
    ]
    for report in strangers:
        lab.give(report)
    assert lab.stats.foreign == len(strangers)
    assert len(lab.events) == 1
    lab.run(2)
    assert lab.session.ready


def test_foreign_reports_between_all_others_lose_nothing() -> None:
    lab = ready_lab()
    dice = random.Random(3)

    def noisy(report: bytes) -> list[bytes]:
        noise = (dice.randbytes(32) for _ in range(dice.randrange(3)))
        return [*(other for other in noise if is_noise(other)), report]

    lab.to_host = noisy
    for i in range(200):
        lab.press(i)
        lab.output.show(TextFrame((str(i),)), lab.now)
        lab.run(0.02)
    keys = [event.keycode for event in lab.events if isinstance(event, KeyPressed)]
    assert keys == list(range(200))
    assert lab.stats.foreign > 100


def test_caps_with_another_nonce_are_not_ours() -> None:
    lab = SessionLab()
    report = lab.session.next_report(lab.now)
    assert report is not None
    lab.session.written(lab.now)
    board = ready_lab().session.capabilities
    assert board is not None
    lab.give(from_keyboard(lab, Caps(0x12345678, board), 0))
    assert lab.stats.foreign == 1
    assert lab.session.capabilities is None


@pytest.mark.parametrize("change", [{"protocol_low": 2, "protocol_high": 3}, {"report_length": 64}])
def test_a_keyboard_that_speaks_otherwise_is_incompatible(change: dict[str, int]) -> None:
    board = ready_lab().session.capabilities
    assert board is not None
    lab = SessionLab()
    lab.session.next_report(lab.now)
    lab.session.written(lab.now)
    caps = Caps(0x12345678 ^ 0x4B434F54, replace(board, **change))  # type: ignore[arg-type]
    with pytest.raises(SessionEndedError) as caught:
        lab.session.take(from_keyboard(lab, caps, 0), lab.now)
    assert caught.value.problem is LinkProblem.INCOMPATIBLE


@pytest.mark.parametrize("reason", [NakReason.VERSION, NakReason.TYPE])
def test_a_refused_hello_is_incompatible(reason: NakReason) -> None:
    lab = SessionLab()
    lab.session.next_report(lab.now)
    lab.session.written(lab.now)
    with pytest.raises(SessionEndedError) as caught:
        lab.session.take(from_keyboard(lab, Nak(FrameType.HELLO, reason), 0), lab.now)
    assert caught.value.problem is LinkProblem.INCOMPATIBLE


def test_farewell_gives_everything_back() -> None:
    lab = ready_lab()
    lab.output.show(TextFrame(("text",)), lab.now)
    lab.settle()
    report = lab.session.farewell()
    assert report is not None
    assert Release.unpack(decode(report).payload).parts == 15
    lab.core.receive(report, lab.ms)
    assert not lab.core.subscribed
    assert not lab.core.display_taken


def test_there_is_no_farewell_before_the_subscription() -> None:
    assert SessionLab().session.farewell() is None


def test_round_trips_are_measured_from_the_write() -> None:
    lab = SessionLab()
    report = lab.session.next_report(lab.now)
    assert report is not None
    lab.session.written(lab.now)
    lab.core.receive(report, lab.ms)
    lab.now += 0.004
    lab.give(lab.queue.popleft())
    assert lab.stats.rtt_s == pytest.approx(0.004)
    assert lab.stats.rtt_worst_s == pytest.approx(0.004)
