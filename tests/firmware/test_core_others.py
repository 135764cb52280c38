# SPDX-License-Identifier: Apache-2.0
"""Other programs on the keyboard's interface: VIA form, silence for their sake, and VIA's answer that waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode, is_frame
from firmware_bridge.protocol.key_messages import KeyReport
from firmware_bridge.protocol.messages import (
    EventKinds,
    NakReason,
    Parts,
    Poll,
    Release,
    SetStatus,
    Status,
    Subscribe,
)
from tests.helpers.bench import BOTH, CLIENT, HELLO, OUTPUTS, Bench

VIA = 0x0109  # as no VIA has it: both bytes count
BEGINS = bytes((1, VIA >> 8, VIA & 0xFF, 0x4C))
VIA_FORM = BOTH | EventKinds.VIA_FORM
STRANGER = CLIENT + 1
FIRST_QUESTION = b"\x01".ljust(32, b"\0")
ASKS_ON = b"\x0d".ljust(32, b"\0")
BOARD = BoardConfig(via_version=VIA)


def bench(kinds: EventKinds = VIA_FORM, config: BoardConfig = BOARD) -> Bench:
    bench = Bench(config, now=10_000)
    bench.subscribe(kinds)
    return bench


def sent_by(bench: Bench) -> list[bytes]:
    """Run the task once; the reports that went out since the last call."""
    bench.core.task(bench.now)
    reports, bench.sent = bench.sent, []
    return reports


def report_of(message: Subscribe | SetStatus | Release, client: int = CLIENT) -> bytes:
    return encode(Frame(message.type, client, 1, message.pack()), 32)


def answers_to(bench: Bench, message: Subscribe | SetStatus | Release) -> list[bytes]:
    assert bench.core.receive(report_of(message), bench.now)
    reports, bench.sent = bench.sent, []
    return reports


@pytest.mark.parametrize("version", [0, VIA])
def test_boards_with_via_have_the_feature(version: int) -> None:
    features = Bench(BoardConfig(via_version=version)).caps().capabilities.features
    assert (Feature.VIA_FORM in features) == bool(version)


def test_where_there_is_no_via_its_form_cannot_be_asked_for() -> None:
    assert Bench().refusal(Subscribe(VIA_FORM)) is NakReason.UNSUPPORTED


def test_every_answer_has_the_form_that_was_asked_for() -> None:
    for kinds in (BOTH, VIA_FORM):
        quiet = Bench(BOARD)
        for message in (Subscribe(kinds), *OUTPUTS.values(), SetStatus(Status.ERROR), Poll()):
            report = encode(Frame(message.type, CLIENT, 5, message.pack()), 32)
            assert quiet.core.receive(report, 0)
            (answer,) = quiet.sent
            quiet.sent.clear()
            assert answer.startswith(BEGINS) == (kinds is VIA_FORM)
            assert decode(answer).seq == 5


def test_the_answers_that_begin_and_end_the_subscription_have_it_too() -> None:
    quiet = Bench(BOARD)
    for message in (Subscribe(VIA_FORM), Release(Parts.SUBSCRIPTION)):
        (answer,) = answers_to(quiet, message)
        assert answer.startswith(BEGINS)
    (answer,) = answers_to(quiet, Release(Parts.SUBSCRIPTION))
    assert answer.startswith(b"\xe7\x4c")


def test_other_hosts_and_new_sessions_get_plain_frames() -> None:
    quiet = bench()
    assert quiet.core.receive(report_of(SetStatus(Status.IDLE), STRANGER), quiet.now)
    assert quiet.core.receive(encode(Frame(HELLO.type, STRANGER, 1, HELLO.pack()), 32), quiet.now)
    assert quiet.core.receive(encode(Frame(HELLO.type, CLIENT, 2, HELLO.pack()), 32), quiet.now)
    assert quiet.core.receive(report_of(Subscribe(BOTH)), quiet.now)
    assert [report[:2] for report in quiet.sent] == [b"\xe7\x4c"] * 4


@given(st.sampled_from([32, 33, 34, 48, 64]), st.integers(1, 9), st.sampled_from([BOTH, VIA_FORM]))
def test_no_event_is_lost_for_lack_of_room(length: int, count: int, kinds: EventKinds) -> None:
    quiet = Bench(BoardConfig(report_length=length, via_version=VIA))
    quiet.subscribe(kinds)
    for keycode in range(count):
        assert quiet.core.key_event(1, 2, keycode, True, quiet.now)
    reports = [report for _ in range(3) for report in quiet.key_reports()]
    assert [event.keycode for report in reports for event in report.events] == list(range(count))
    assert [report.first_index for report in reports] == sorted(
        report.first_index for report in reports
    )
    most = 2 if kinds is VIA_FORM and length < 34 else 3
    assert len(reports[0].events) == min(count, most)


def test_fetched_events_have_via_form_too() -> None:
    polled = bench(config=BoardConfig(features=BOARD.features | Feature.POLL, via_version=VIA))
    for keycode in range(3):
        polled.core.key_event(0, 0, keycode, True, polled.now)
    for expected in ([0, 1], [2]):
        frame = polled.say(Poll())
        assert [event.keycode for event in KeyReport.unpack(frame.payload).events] == expected


@pytest.mark.parametrize("kinds", [BOTH, VIA_FORM])
def test_events_wait_for_3_seconds_after_another_programs_request(kinds: EventKinds) -> None:
    busy = bench(kinds)
    busy.now += 1000
    assert not busy.core.other_request(ASKS_ON, busy.now)
    busy.core.key_event(0, 0, 4, True, busy.now)
    busy.now += 1000
    assert busy.task() == []
    busy.subscribe(kinds)
    busy.now += 1999
    assert busy.task() == []
    busy.now += 1
    (report,) = busy.key_reports()
    assert [event.keycode for event in report.events] == [4]


@pytest.mark.parametrize(("kinds", "held"), [(BOTH, False), (VIA_FORM, True)])
def test_the_first_question_holds_events_only_in_via_form(kinds: EventKinds, held: bool) -> None:
    busy = bench(kinds)
    busy.now += 1000
    assert not busy.core.other_request(FIRST_QUESTION, busy.now)
    busy.core.key_event(0, 0, 4, True, busy.now)
    busy.now += 1000
    assert bool(busy.task()) != held


def test_the_hosts_own_first_question_holds_nothing() -> None:
    """It asks before HELLO; also when it has come back before its old subscription ran out."""
    quiet = bench()
    quiet.now += 1000
    assert not quiet.core.other_request(FIRST_QUESTION, quiet.now)
    quiet.caps()
    quiet.subscribe(VIA_FORM)
    quiet.core.key_event(0, 0, 4, True, quiet.now)
    assert quiet.task()


def test_a_conversation_is_not_forgotten_with_the_session() -> None:
    busy = bench()
    busy.now += 1000
    busy.core.other_request(FIRST_QUESTION, busy.now)
    busy.core.other_request(ASKS_ON, busy.now)
    busy.core.other_request(FIRST_QUESTION, busy.now)
    busy.caps()
    busy.now += 100
    busy.subscribe(VIA_FORM)
    busy.core.key_event(0, 0, 4, True, busy.now)
    assert busy.task() == []


@pytest.mark.parametrize("request_", [FIRST_QUESTION, ASKS_ON])
def test_for_100_ms_nothing_but_hello_is_answered(request_: bytes) -> None:
    busy = bench()
    busy.now += 1000
    busy.core.other_request(request_, busy.now)
    busy.now += 99
    assert answers_to(busy, SetStatus(Status.THINKING)) == []
    assert busy.core.status is Status.IDLE
    assert busy.task() == []
    assert busy.caps(STRANGER)
    busy.now += 1
    assert len(answers_to(busy, SetStatus(Status.THINKING))) == 1


def test_an_answer_that_found_no_way_out_before_is_not_sent_into_a_conversation() -> None:
    busy = bench()
    busy.link_open = False
    answers_to(busy, SetStatus(Status.THINKING))
    busy.core.other_request(ASKS_ON, busy.now)
    busy.link_open = True
    for _ in range(40):
        busy.now += 10
        assert sent_by(busy) == []


@pytest.mark.parametrize(("age_ms", "is_late"), [(0, True), (49, True), (50, False), (1000, False)])
def test_vias_answer_waits_if_a_frame_may_have_been_taken_for_it(
    age_ms: int, is_late: bool
) -> None:
    busy = bench()
    busy.now += 1000
    busy.core.key_event(0, 0, 4, True, busy.now)
    assert busy.task()
    busy.now += age_ms
    assert busy.core.other_request(b"\x01\xaa\xbb\xcc".ljust(32, b"\0"), busy.now) == is_late
    busy.now += 99
    assert sent_by(busy) == []
    busy.now += 1
    answer = bytes((1, VIA >> 8, VIA & 0xFF, 0xCC)).ljust(32, b"\0")
    assert sent_by(busy) == [answer] * is_late
    busy.now += 1000
    assert sent_by(busy) == []


def test_an_old_frame_is_not_young_again_when_the_clock_has_wrapped() -> None:
    busy = bench()
    busy.now += 60
    busy.task()
    busy.now += 2**32 - 50
    assert not busy.core.other_request(FIRST_QUESTION, busy.now)


def asked_late() -> Bench:
    """VIA's answer waits."""
    busy = bench()
    busy.subscribe(VIA_FORM)  # its answer is young
    assert busy.core.other_request(FIRST_QUESTION, busy.now)
    return busy


@pytest.mark.parametrize("request_", [FIRST_QUESTION, ASKS_ON])
def test_whoever_asks_on_has_had_its_answer(request_: bytes) -> None:
    busy = asked_late()
    busy.now += 20
    assert not busy.core.other_request(request_, busy.now)
    for _ in range(40):
        busy.now += 10
        assert sent_by(busy) == []


def test_vias_answer_waits_for_the_link_and_no_frame_takes_its_place() -> None:
    busy = asked_late()
    busy.link_open = False
    busy.now += 100
    assert sent_by(busy) == []
    busy.link_open = True
    assert busy.core.receive(encode(Frame(HELLO.type, CLIENT, 1, HELLO.pack()), 32), busy.now)
    assert not is_frame(busy.sent[0])
    assert [is_frame(report) for report in busy.sent] == [False, True]


def test_hello_is_not_answered_while_vias_answer_waits() -> None:
    busy = asked_late()
    assert busy.core.receive(encode(Frame(HELLO.type, CLIENT, 1, HELLO.pack()), 32), busy.now)
    assert sent_by(busy) == []
    busy.now += 100
    assert [report[:4] for report in sent_by(busy)] == [BEGINS[:3] + b"\0"]


def test_vias_answer_comes_even_if_the_subscription_ends_before() -> None:
    busy = bench()
    busy.now += 2990
    busy.core.key_event(0, 0, 4, True, busy.now)
    assert busy.task()
    assert busy.core.other_request(FIRST_QUESTION, busy.now)
    busy.now += 50
    assert busy.task() == []
    assert not busy.core.subscribed
    busy.now += 50
    assert [report[:3] for report in sent_by(busy)] == [BEGINS[:3]]


def test_reports_of_another_length_do_not_wait() -> None:
    busy = bench()
    assert not busy.core.other_request(FIRST_QUESTION[:8], busy.now)
    assert not busy.core.other_request(b"\x01", busy.now)


def test_without_via_form_frames_are_answered_at_once() -> None:
    plain = bench(BOTH)
    assert not plain.core.other_request(FIRST_QUESTION, plain.now)
    assert not plain.core.other_request(ASKS_ON, plain.now)
    assert [decode(r).type for r in answers_to(plain, SetStatus(Status.ERROR))] == [FrameType.ACK]
