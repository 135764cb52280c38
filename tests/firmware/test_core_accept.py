# SPDX-License-Identifier: Apache-2.0
"""The accept key in the core: it types a piece of the text that the panel shows, once, and nothing else."""

from __future__ import annotations

import pytest

from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.key_messages import KeyRecord, RecordKind
from firmware_bridge.protocol.messages import (
    BitmapRun,
    EventKinds,
    NakReason,
    Offer,
    Parts,
    Release,
    SetStatus,
    Status,
    Subscribe,
)
from tests.helpers.bench import BOTH, Bench, nak_reason

ALL = BOTH | EventKinds.CAPTURES | EventKinds.TYPING


@pytest.fixture
def bench() -> Bench:
    """The panel shows two rows, of which " brown" is offered."""
    bench = Bench()
    bench.subscribe(ALL)
    bench.show("the quick", "1 brown  2 black")
    bench.do(Offer(1, 1, 6))
    bench.core.panel()
    return bench


def told(bench: Bench) -> list[KeyRecord]:
    return [event for report in bench.key_reports() for event in report.events]


def test_the_offered_piece_is_typed_once_and_told_with_the_number_of_its_frame(
    bench: Bench,
) -> None:
    seq = bench.seq
    assert bench.core.accept(7) == " brown"
    assert bench.core.accept(8) == ""
    assert told(bench) == [
        KeyRecord(True, RecordKind.ACCEPT, 6, seq, 0, 7),
        KeyRecord(True, RecordKind.ACCEPT, 0, 0, 0, 8),
    ]


@pytest.mark.parametrize(
    "what",
    ["withdrawn", "new text", "not drawn", "bitmap", "released", "forbidden", "capture", "hello"],
)
def test_what_is_not_offered_and_seen_any_more_is_not_typed(bench: Bench, what: str) -> None:
    match what:
        case "withdrawn":
            bench.do(Offer(1, 1, 0))
        case "new text":
            bench.show("the quick", "1 brown  2 black")
        case "not drawn":
            bench.show("the slow", "1 brown  2 black")
            bench.do(Offer(1, 1, 6))
        case "bitmap":
            bench.do(BitmapRun(0, 0, b"\1"))
        case "released":
            bench.do(Release(Parts.DISPLAY))
        case "forbidden":
            bench.subscribe(BOTH)
            bench.subscribe(ALL)
        case "capture":
            assert bench.core.begin_capture(0)
        case "hello":
            bench.raw(0, bytes(4) + b"\1\1")
            bench.subscribe(ALL)
    if what != "not drawn":
        bench.core.panel()
    assert bench.core.accept(0) == ""


def test_a_glyph_over_the_offer_keeps_it_from_being_typed(bench: Bench) -> None:
    bench.show("x" * 21)
    bench.do(Offer(0, 19, 2))
    bench.do(SetStatus(Status.THINKING))
    bench.core.panel()
    assert bench.core.accept(0) == ""


def test_what_cannot_be_told_is_not_typed(bench: Bench) -> None:
    bench.link_open = False
    while bench.core.key_event(0, 0, 4, True, 0):
        pass
    assert bench.core.accept(0) == ""


@pytest.mark.parametrize(("row", "column", "count"), [(4, 0, 1), (0, 21, 0), (0, 20, 2)])
def test_an_offer_outside_the_display_is_refused(
    bench: Bench, row: int, column: int, count: int
) -> None:
    assert bench.refusal(Offer(row, column, count)) == NakReason.RANGE


def test_an_offer_needs_text_permission_and_its_length(bench: Bench) -> None:
    (answer,) = bench.raw(FrameType.ACCEPT, b"\0\0")
    assert nak_reason(answer, FrameType.ACCEPT) == NakReason.LENGTH
    bench.do(Release(Parts.DISPLAY))
    assert bench.refusal(Offer(0, 0, 1)) == NakReason.RANGE
    bench.subscribe(BOTH)
    assert bench.refusal(Offer(0, 0, 1)) == NakReason.NOT_SUBSCRIBED
    assert Bench().refusal(Offer(0, 0, 1)) == NakReason.NOT_SUBSCRIBED


def test_a_board_without_the_accept_key_never_knew_it() -> None:
    bench = Bench(BoardConfig(features=Feature(63)))
    assert bench.refusal(Subscribe(ALL)) == NakReason.UNSUPPORTED
    bench.subscribe()
    assert bench.refusal(Offer(0, 0, 1)) == NakReason.TYPE
