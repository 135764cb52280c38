# SPDX-License-Identifier: Apache-2.0
"""Capture in the core: only keys of the board begin it, its end is always told, it ends with the permission."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.key_messages import KeyRecord, RecordKind
from firmware_bridge.protocol.messages import (
    EventKinds,
    NakReason,
    Subscribe,
)
from tests.helpers.bench import BOTH, CLIENT, Bench

ALL = BOTH | EventKinds.CAPTURES


def capturing(kinds: EventKinds = ALL) -> Bench:
    bench = Bench()
    bench.subscribe(kinds)
    assert bench.core.begin_capture(bench.now)
    return bench


def records(bench: Bench) -> list[KeyRecord]:
    found: list[KeyRecord] = []
    while reports := bench.key_reports():
        found += [event for report in reports for event in report.events]
    return found


def test_beginning_captured_keys_and_end_come_in_order() -> None:
    bench = capturing()
    assert bench.core.captured_key_event(1, 2, 4, True, 10)
    assert bench.core.key_event(3, 3, 0xE1, True, 11)  # a layer key, say: still an ordinary one
    bench.core.end_capture(12)
    assert bench.core.captured_key_event(1, 2, 4, False, 13)
    assert records(bench) == [
        KeyRecord(True, RecordKind.CAPTURE, 0, 0, 0, 0),
        KeyRecord(True, RecordKind.KEY, 1, 2, 4, 10, captured=True),
        KeyRecord(True, RecordKind.KEY, 3, 3, 0xE1, 11),
        KeyRecord(False, RecordKind.CAPTURE, 0, 0, 0, 12),
        KeyRecord(False, RecordKind.KEY, 1, 2, 4, 13, captured=True),
    ]


def test_a_host_that_did_not_ask_gets_no_capture() -> None:
    bench = Bench()
    bench.subscribe()
    assert not bench.core.begin_capture(0)
    assert not bench.core.capturing


def test_the_end_finds_a_place_in_a_full_ring() -> None:
    bench = Bench()
    bench.subscribe(ALL)
    bench.link_open = False
    assert bench.core.begin_capture(0)
    while bench.core.captured_key_event(0, 0, 4, True, 0):
        pass
    bench.core.end_capture(5)
    bench.link_open = True
    assert records(bench)[-1] == KeyRecord(False, RecordKind.CAPTURE, 0, 0, 0, 5)


def test_a_beginning_that_cannot_be_told_does_not_happen() -> None:
    bench = Bench()
    bench.subscribe(ALL)
    bench.link_open = False
    while bench.core.key_event(0, 0, 4, True, 0):
        pass
    assert not bench.core.begin_capture(0)
    assert not bench.core.capturing


def test_a_renewed_subscription_leaves_the_capture_alone() -> None:
    bench = capturing()
    bench.subscribe(ALL)
    assert bench.core.capturing


@pytest.mark.parametrize("how", ["forbidden", "silence", "hello"])
def test_a_capture_ends_with_its_permission(how: str) -> None:
    bench = capturing()
    match how:
        case "forbidden":
            bench.subscribe(BOTH)
        case "silence":
            bench.now = 3000
            bench.task()
        case "hello":
            bench.raw(0, bytes(4) + b"\1\1")
    assert not bench.core.capturing


def test_a_board_without_capture_refuses_the_wish() -> None:
    bench = Bench(BoardConfig(features=Feature(63)))
    assert bench.refusal(Subscribe(ALL), CLIENT) == NakReason.UNSUPPORTED


def test_the_sign_stands_on_the_display_while_keys_are_captured() -> None:
    bench = Bench()
    bench.subscribe(ALL)
    assert bench.core.begin_capture(0)
    assert bench.core.display_taken
    sign = bench.core.picture()
    assert any(sign.pages)
    bench.core.end_capture(0)
    assert not bench.core.display_taken
    assert not any(bench.core.picture().pages)
