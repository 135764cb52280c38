# SPDX-License-Identifier: Apache-2.0
"""Offers to the accept key: made when the picture stands, over when typed or replaced, only with permission."""

from __future__ import annotations

import pytest

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.events import EventsDropped, SuggestionAccepted
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.link_offer import Picture
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, decode, encode
from firmware_bridge.protocol.messages import EventKinds, Offer, Status, Subscribe
from tests.helpers.session_lab import SessionLab, carry, lose

TYPING = EventKinds.TYPING
WORDS = TextFrame(("the quick", "1 brown  2 black"))
BROWN = Offer(1, 1, 6)
BLACK = Offer(1, 10, 6)


@pytest.fixture
def lab() -> SessionLab:
    """Typing is allowed; nothing is shown yet."""
    lab = SessionLab()
    lab.output.allowed = TYPING
    lab.settle()
    lab.sent.clear()
    lab.events.clear()
    return lab


def accept(lab: SessionLab) -> str:
    """The person presses the accept key; what the board typed."""
    lab.core.panel()
    typed = lab.core.accept(lab.ms)
    lab.core.task(lab.ms)
    lab.settle()
    return typed


def texts(lab: SessionLab) -> list[str]:
    return [event.text for event in lab.events if isinstance(event, SuggestionAccepted)]


def offers(lab: SessionLab) -> list[Offer]:
    return [Offer.unpack(f.payload) for f in lab.sent if f.type is FrameType.ACCEPT]


def test_the_offer_follows_the_picture_and_the_host_hears_what_was_typed(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    assert [f.type for f in lab.sent] == [FrameType.TEXT, FrameType.TEXT, FrameType.ACCEPT]
    assert accept(lab) == " brown"
    (event,) = lab.events
    assert event == SuggestionAccepted(" brown", 6, lab.ms & 0xFFFF, lab.now)
    assert "brown" not in repr(event)
    lab.run(2)
    assert accept(lab) == ""
    assert len(offers(lab)) == 1  # one offer, one press
    assert len(lab.events) == 1


def test_another_piece_of_the_same_picture_is_offered_without_drawing_it_again(
    lab: SessionLab,
) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.sent.clear()
    lab.output.show(WORDS, lab.now, BLACK)
    lab.run(0.2)
    assert [f.type for f in lab.sent] == [FrameType.ACCEPT]
    assert accept(lab) == " black"
    assert texts(lab) == [" black"]


def test_an_offer_is_withdrawn_when_it_is_not_wanted_any_more(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.output.show(WORDS, lab.now)
    lab.run(0.2)
    assert accept(lab) == ""
    assert [offer.count for offer in offers(lab)] == [6, 0]


def test_a_new_picture_takes_the_old_offer_away_and_brings_its_own(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.output.show(TextFrame(("the quick", "1 bread  2 black")), lab.now, BROWN)
    lab.run(0.2)
    assert accept(lab) == " bread"
    lab.output.show(TextFrame(("fox",)), lab.now)
    lab.run(0.2)
    assert accept(lab) == ""
    assert texts(lab) == [" bread"]


def test_a_press_that_typed_nothing_does_not_cost_the_offer(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.output.status.want(Status.THINKING, lab.now)
    lab.settle()
    assert lab.core.accept(lab.ms) == ""  # the glyph is not drawn yet
    lab.core.task(lab.ms)
    lab.run(0.2)
    assert lab.events == []
    assert accept(lab) == " brown"


def test_a_press_just_before_the_next_offer_tells_the_text_that_was_typed(lab: SessionLab) -> None:
    """The event of the old offer comes after the new one was acknowledged."""
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.core.panel()
    assert lab.core.accept(lab.ms) == " brown"  # waits in the ring
    held: list[bytes] = []
    lab.to_host = lambda report: held.append(report) or [] if report[2] & 15 == 2 else [report]  # type: ignore[func-returns-value]
    lab.output.show(WORDS, lab.now, BLACK)
    lab.run(0.2)
    lab.to_host = carry
    for report in held:
        lab.give(report)
    assert texts(lab) == [" brown"]
    lab.run(0.2)
    assert accept(lab) == " black"
    assert texts(lab) == [" brown", " black"]


def test_an_offer_whose_answer_was_lost_is_known_all_the_same(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.to_host = lambda report: lose(report) if lab.sent[-1].type is FrameType.ACCEPT else [report]
    lab.run(0.3)
    lab.to_host = carry
    assert accept(lab) == " brown"
    assert texts(lab) == [" brown"]


def test_nothing_is_offered_without_permission(lab: SessionLab) -> None:
    lab.output.allowed = EventKinds(0)
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(1.2)
    assert offers(lab) == []
    assert accept(lab) == ""
    lab.output.allowed = TYPING
    lab.settle()
    assert offers(lab) == [BROWN]
    lab.output.allowed = EventKinds(0)
    lab.settle()
    assert accept(lab) == ""
    assert lab.stats.naks == 0


@pytest.mark.parametrize("restart", ["same subscription gone", "new session"])
def test_permission_and_offer_come_back_with_the_keyboard(lab: SessionLab, restart: str) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.power_cycle()
    if restart == "new session":
        lab.connect()
    else:  # the next frame of ours is refused, so the session subscribes anew
        lab.output.status.want(Status.LISTENING, lab.now)
    lab.run(0.3)
    assert accept(lab) == " brown"
    assert texts(lab) == [" brown"]


def test_a_board_without_the_accept_key_is_told_of_no_offer() -> None:
    lab = SessionLab(BoardConfig(features=Feature(63)))
    lab.output.allowed = TYPING | EventKinds.CAPTURES
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(1.5)
    assert {Subscribe.unpack(f.payload).kinds for f in lab.sent if f.type == 1} == {3}
    assert offers(lab) == []


def test_a_piece_that_the_display_cuts_is_not_offered() -> None:
    lab = SessionLab(BoardConfig(panel_width=64))
    lab.output.allowed = TYPING
    lab.output.show(WORDS, lab.now, BLACK)  # columns 10..15 of 10
    lab.run(0.2)
    assert offers(lab) == []
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    assert offers(lab) == [BROWN]


@pytest.mark.parametrize(
    "offer", [Offer(2, 0, 1), Offer(1, 15, 2), Offer(0, 0, 0), Offer(-1, 0, 1)]
)
def test_only_a_piece_of_the_shown_text_can_be_offered(offer: Offer) -> None:
    with pytest.raises(ValueError, match="piece"):
        Picture(WORDS, offer)


def test_a_bitmap_offers_nothing() -> None:
    with pytest.raises(ValueError, match="piece"):
        Picture(BitmapFrame(8, 8, bytes(8)), Offer(0, 0, 1))


@pytest.mark.expected_log("the keyboard refused ACCEPT: RANGE")
def test_a_refused_offer_is_not_repeated(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.to_keyboard = lambda report: (
        [_moved(lab, report)] if lab.sent[-1].type is FrameType.ACCEPT else [report]
    )
    lab.run(1)
    assert lab.stats.naks == 1
    assert len(offers(lab)) == 1


def _moved(lab: SessionLab, report: bytes) -> bytes:
    """The frame as if it had been for a row that the board lacks."""
    frame = decode(report)
    payload = b"\x09" + frame.payload[1:]
    return encode(Frame(frame.type, frame.client, frame.seq, payload), len(report))


def test_an_accept_whose_offer_is_unknown_tells_the_count_only(lab: SessionLab) -> None:
    lab.output.show(WORDS, lab.now, BROWN)
    lab.run(0.2)
    lab.output.offer.forget()
    assert accept(lab) == " brown"
    assert [e for e in lab.events if not isinstance(e, EventsDropped)] == [
        SuggestionAccepted("", 6, lab.ms & 0xFFFF, lab.now)
    ]
