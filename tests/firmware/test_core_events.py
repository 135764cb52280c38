# SPDX-License-Identifier: Apache-2.0
"""Key and macro events: none lost while the ring has room, and losses are counted."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.key_messages import KeyRecord, RecordKind
from firmware_bridge.protocol.messages import (
    EventKinds,
)
from tests.helpers.bench import Bench

RING = 32


def press(bench: Bench, number: int) -> bool:
    return bench.core.key_event(0, 0, number, True, bench.now)


def drained(bench: Bench) -> list[int]:
    """Keycodes of all events, with the running index checked."""
    codes: list[int] = []
    index: int | None = None
    while reports := bench.key_reports():
        for report in reports:
            assert index in (None, report.first_index)
            index = (report.first_index + len(report.events)) % 65536
            codes += [event.keycode for event in report.events]
    return codes


def test_an_event_carries_all_its_fields() -> None:
    bench = Bench(now=0x1_2345)
    bench.subscribe()
    assert bench.core.key_event(5, 14, 0x5220, True, bench.now)
    bench.now += 7
    assert bench.core.key_event(255, 255, 0xFFFF, False, bench.now)
    assert bench.core.macro_event(200, True, bench.now)
    (report,) = bench.key_reports()
    assert (report.first_index, report.dropped) == (0, 0)
    assert report.events == (
        KeyRecord(True, RecordKind.KEY, 5, 14, 0x5220, 0x2345),
        KeyRecord(False, RecordKind.KEY, 255, 255, 0xFFFF, 0x234C),
        KeyRecord(True, RecordKind.MACRO, 200, 0, 0, 0x234C),
    )


@pytest.mark.parametrize("length", [32, 64])
def test_a_frame_holds_at_most_three_events_and_the_task_sends_few(length: int) -> None:
    bench = Bench(BoardConfig(report_length=length))
    bench.subscribe()
    for number in range(20):
        assert press(bench, number)
    sizes = []
    while reports := bench.key_reports():
        sizes.append([len(report.events) for report in reports])
    assert sizes == [[3, 3, 3, 3], [3, 3, 2]]


def test_key_frames_count_their_own_sequence() -> None:
    bench = Bench()
    bench.subscribe()
    seen = []
    for number in range(300):
        press(bench, number)
        seen += [frame.seq for frame in bench.task()]
    assert seen == [number % 256 for number in range(300)]


@pytest.mark.parametrize(
    ("kinds", "key", "macro"),
    [
        (EventKinds(0), False, False),
        (EventKinds.KEYS, True, False),
        (EventKinds.MACROS, False, True),
        (EventKinds.KEYS | EventKinds.MACROS, True, True),
    ],
)
def test_only_wanted_kinds_are_recorded(kinds: EventKinds, key: bool, macro: bool) -> None:
    bench = Bench()
    bench.subscribe(kinds)
    assert press(bench, 1) == key
    assert bench.core.macro_event(1, True, 0) == macro
    assert sum(len(report.events) for report in bench.key_reports()) == key + macro


def test_a_closed_link_loses_nothing_while_the_ring_has_room() -> None:
    bench = Bench()
    bench.subscribe()
    bench.link_open = False
    for number in range(RING):
        assert press(bench, number)
        assert bench.task() == []
    bench.link_open = True
    assert drained(bench) == list(range(RING))


def test_overflow_keeps_the_oldest_events_and_counts_the_rest() -> None:
    bench = Bench()
    bench.subscribe()
    accepted = [number for number in range(RING + 5) if press(bench, number)]
    assert accepted == list(range(RING))
    reports = bench.key_reports()
    assert [report.dropped for report in reports] == [5, 0, 0, 0]
    assert press(bench, 99)
    assert drained(bench) == [*range(12, RING), 99]


def test_the_drop_counter_stops_at_255_and_survives_a_refused_frame() -> None:
    bench = Bench()
    bench.subscribe()
    for number in range(RING + 300):
        press(bench, number)
    bench.link_open = False
    assert bench.task() == []
    bench.link_open = True
    assert bench.key_reports()[0].dropped == 255


def test_the_running_index_wraps_at_65536() -> None:
    bench = Bench()
    bench.subscribe()
    total = 65_530
    for _ in range(0, total, 10):
        for number in range(10):
            press(bench, number)
        bench.core.task(bench.now)
    bench.sent.clear()
    for number in range(12):
        press(bench, number)
    reports = bench.key_reports()
    assert [report.first_index for report in reports] == [65530, 65533, 0, 3]


def test_the_ring_keeps_order_at_every_position() -> None:
    bench = Bench()
    bench.subscribe()
    expected, seen = [], []
    for number in range(500):
        if press(bench, number):
            expected.append(number)
        if number % 3 == 2:
            seen += [event.keycode for report in bench.key_reports() for event in report.events]
    assert seen + drained(bench) == expected == list(range(500))


def test_events_after_the_deadline_are_not_sent() -> None:
    """Even if no task ran in between: a keyboard never talks to a host that went away."""
    bench = Bench()
    bench.subscribe()
    assert press(bench, 1)
    bench.now = 3000
    press(bench, 2)
    assert bench.task() == []
