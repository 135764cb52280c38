# SPDX-License-Identifier: Apache-2.0
"""Keys of a session, and keyboards, hosts and wires that fail; in invented time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import (
    CaptureEnded,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    MacroTriggered,
)
from firmware_bridge.link_state import LinkProblem, SessionEndedError
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind
from firmware_bridge.protocol.messages import (
    Ack,
    EventKinds,
    Status,
)
from tests.helpers.session_lab import SessionLab, carry, ended, from_keyboard, lose, ready_lab


def test_keys_become_events_with_both_clocks() -> None:
    lab = ready_lab()
    lab.events.clear()
    lab.key(0x04, 1, 2, pressed=True)
    lab.core.macro_event(5, True, lab.ms)
    lab.core.macro_event(5, False, lab.ms)
    lab.key(0x04, 1, 2, pressed=False)
    lab.core.task(lab.ms)
    lab.settle()
    ms = lab.ms & 0xFFFF
    assert lab.events == [
        KeyPressed(0x04, 1, 2, ms, lab.now),
        MacroTriggered(5, ms, lab.now),
        KeyReleased(0x04, 1, 2, ms, lab.now),
    ]
    assert lab.stats.events == 4


def test_a_lost_report_is_a_gap() -> None:
    lab = ready_lab()
    lab.press(1)
    lab.settle()
    lab.to_host = lose
    lab.press(2)
    lab.press(3)
    lab.settle()
    lab.to_host = carry
    lab.events.clear()
    lab.press(4)
    lab.settle()
    dropped, key = lab.events
    assert dropped == EventsDropped(2)
    assert isinstance(key, KeyPressed)
    assert key.keycode == 4
    assert lab.stats.dropped == 2


def test_events_that_the_firmware_dropped_are_told_after_those_that_it_kept() -> None:
    lab = ready_lab()
    record = KeyRecord(True, RecordKind.KEY, 0, 1, 9, 1)
    lab.events.clear()
    lab.give(from_keyboard(lab, KeyReport(0, 7, (record, record)), 0))
    assert [type(event) for event in lab.events] == [KeyPressed, KeyPressed, EventsDropped]
    assert lab.events[-1] == EventsDropped(7)


def test_the_index_wraps_without_a_gap() -> None:
    lab = ready_lab()
    record = KeyRecord(True, RecordKind.KEY, 0, 1, 9, 1)
    lab.events.clear()
    for first in (*range(0, 65535, 3), 65535):
        lab.give(from_keyboard(lab, KeyReport(first, 0, (record,) * 3), 0))
        if first == 65535:
            break
    lab.give(from_keyboard(lab, KeyReport(2, 0, (record,)), 0))
    assert lab.stats.dropped == 0


def test_keys_that_are_down_are_lifted_at_the_end() -> None:
    lab = ready_lab()
    lab.key(0x04, 1, 2, pressed=True)
    lab.key(0x05, 3, 4, pressed=True)
    lab.key(0x04, 1, 2, pressed=False)
    lab.settle()
    (lifted,) = lab.session.lift_keys(lab.now)
    assert (lifted.keycode, lifted.row, lifted.column, lifted.host_s) == (0x05, 3, 4, lab.now)
    assert lab.session.lift_keys(lab.now) == []


@pytest.mark.parametrize("lost_answers", [0, 1, 2])
@pytest.mark.parametrize("keys_before", [0, 3, 100])
def test_a_restart_between_two_heartbeats_is_noticed_and_mended_at_once(
    lost_answers: int, keys_before: int
) -> None:
    lab = ready_lab()
    lab.output.show(TextFrame(("one", "two")), lab.now)
    lab.run(0.2)
    shown = lab.core.picture()
    for key in range(keys_before):
        lab.press(key, 1, key)
        lab.settle()
    lab.events.clear()
    lab.power_cycle()
    lab.sent.clear()
    lab.to_host = lambda report: lose(report) if len(lab.sent) <= lost_answers else [report]
    lab.run(0.8 + 0.2 * lost_answers + 0.1)
    assert lab.session.ready
    assert len(lab.events) == keys_before
    assert all(isinstance(event, KeyReleased) for event in lab.events)
    lab.run(0.1)
    assert lab.core.picture() == shown
    lab.press(0x06)  # the new subscription counts from 0
    lab.settle()
    assert isinstance(lab.events[-1], KeyPressed)
    assert lab.stats.dropped == 0


def test_a_keyboard_that_counts_from_zero_before_it_answered_has_restarted() -> None:
    lab = ready_lab()
    for key in range(3):
        lab.press(key)
        lab.settle()
    record = KeyRecord(True, RecordKind.KEY, 0, 1, 9, 1)
    with pytest.raises(SessionEndedError) as caught:
        lab.give(from_keyboard(lab, KeyReport(0, 0, (record,)), 0))
    assert caught.value.problem is LinkProblem.RESTARTED


def test_a_capture_ends_with_a_restart() -> None:
    lab = ready_lab()
    lab.output.allowed = EventKinds.CAPTURES
    lab.settle()
    assert lab.core.begin_capture(lab.ms)
    lab.core.task(lab.ms)
    lab.settle()
    lab.power_cycle()
    lab.run(1.1)
    assert isinstance(lab.events[-1], CaptureEnded)
    assert lab.session.ready


def test_a_host_that_was_stopped_for_long_is_forgotten_and_comes_back() -> None:
    """SIGSTOP, a debugger: no sleep of the computer, but the keyboard has given everything back."""
    lab = ready_lab()
    lab.output.show(TextFrame(("one", "two")), lab.now)
    lab.run(0.2)
    shown = lab.core.picture()
    lab.now += 60
    lab.core.task(lab.ms)
    assert not lab.core.display_taken
    lab.run(0.3)
    assert lab.session.ready
    assert lab.core.picture() == shown


def test_output_to_a_keyboard_that_forgot_us_subscribes_again_and_comes_back() -> None:
    lab = ready_lab()
    lab.output.show(TextFrame(("one", "two")), lab.now)
    lab.settle()
    shown = lab.core.picture()
    lab.key(0x04, 1, 2, pressed=True)
    lab.settle()
    lab.events.clear()
    lab.power_cycle()
    lab.now += 0.2
    lab.output.status.want(Status.LISTENING, lab.now)
    lab.settle()
    assert lab.stats.naks == 1
    assert lab.session.ready
    (event,) = lab.events
    assert isinstance(event, KeyReleased)
    lab.run(0.2)
    lab.output.status.want(Status.IDLE, lab.now)
    lab.run(0.2)
    assert lab.core.picture() == shown
    lab.press(0x06)  # the new subscription counts from 0
    lab.settle()
    assert isinstance(lab.events[-1], KeyPressed)


def test_sleep_of_the_computer_ends_the_session() -> None:
    lab = ready_lab()
    lab.output.show(TextFrame(("before",)), lab.now)
    lab.run(2)
    lab.asleep += 3600  # the monotonic clock stood still meanwhile
    assert ended(lab, 0.01) is LinkProblem.SUSPENDED


def test_clocks_that_are_read_one_after_the_other_are_no_sleep() -> None:
    lab = ready_lab()
    for _ in range(50):
        lab.asleep += 0.02
        lab.run(0.05)
    assert lab.session.ready


def test_a_second_client_waits_until_the_first_one_ends() -> None:
    lab = SessionLab()
    lab.settle()
    first = lab.session
    lab.client = 8
    lab.connect()
    lab.run(2.5)
    assert not lab.session.ready
    assert lab.session.problem is LinkProblem.IN_USE
    farewell = first.farewell()
    assert farewell is not None
    lab.core.receive(farewell, lab.ms)
    lab.queue.clear()
    lab.run(1.1)
    assert lab.session.ready
    assert lab.session.problem is None


def test_losing_the_subscription_to_another_client_ends_the_session() -> None:
    lab = ready_lab()
    lab.now += 3.1
    lab.core.task(lab.ms)
    other = encode(Frame(FrameType.SUBSCRIBE, 99, 0, b"\1"), 32)
    assert lab.core.receive(other, lab.ms)
    assert ended(lab, 0.1) is LinkProblem.IN_USE
    assert lab.stats.foreign == 1  # the answer to the other client


def test_a_host_that_comes_back_under_its_number_need_not_wait() -> None:
    lab = ready_lab()
    lab.output.show(TextFrame(("again",)), lab.now)
    lab.settle()
    picture = lab.core.picture()
    lab.press(3)  # still in the queue when the host went
    lab.connect()
    lab.settle()
    assert lab.session.ready
    lab.run(0.2)
    assert lab.core.picture() == picture
    assert lab.stats.dropped == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=60), st.randoms())
def test_after_any_traffic_over_a_bad_wire_a_new_session_shows_what_is_wanted(
    steps: list[tuple[bool, int]], dice: random.Random
) -> None:
    lab = SessionLab()

    def bad(report: bytes) -> list[bytes]:
        roll = dice.random()
        if roll < 0.15:
            return []
        if roll < 0.25:
            return [report, report]
        if roll < 0.35:
            return [bytes(report[:20]).ljust(len(report), b"\0"), report]
        return [report]

    lab.to_host = lab.to_keyboard = bad
    problem = None
    try:
        for press, number in steps:
            if press:
                lab.press(number)
            else:
                lab.output.show(TextFrame((str(number), "same")), lab.now)
            lab.run(0.05)
    except SessionEndedError as error:
        problem = error.problem
    # A KEY report that came twice looks like a keyboard that counts anew.
    assert problem in (None, LinkProblem.SILENT, LinkProblem.NO_ANSWER, LinkProblem.RESTARTED)
    lab.to_host = lab.to_keyboard = carry
    lab.connect()
    lab.output.show(TextFrame(("end", "same")), lab.now)
    lab.run(0.5)
    reference = ready_lab()
    reference.output.show(TextFrame(("end", "same")), reference.now)
    reference.settle()
    assert lab.core.picture() == reference.core.picture()


def test_a_keyboard_that_acknowledges_hello_instead_of_answering_is_no_keyboard_of_ours() -> None:
    lab = SessionLab()
    lab.to_keyboard = lose
    lab.settle()
    hello = lab.sent[0]
    lab.give(from_keyboard(lab, Ack(FrameType.HELLO), hello.seq))
    assert not lab.session.ready
    assert lab.session.capabilities is None
    assert lab.events == []
    assert ended(lab, 2) is LinkProblem.NO_ANSWER
