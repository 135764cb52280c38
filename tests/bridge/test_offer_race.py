# SPDX-License-Identifier: Apache-2.0
"""An offer is for the text that it was made for: a key pressed since takes it back, whoever is slow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.keys.usage import Usage
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.messages import EventKinds, Offer
from tests.helpers.session_lab import SessionLab, ready_lab

BEFORE, AFTER = TextFrame(("t", ">then")), TextFrame(("th", ">then"))
OFFER_BEFORE, OFFER_AFTER = Offer(1, 2, 3), Offer(1, 3, 2)


def offering() -> SessionLab:
    lab = ready_lab()
    lab.output.allowed = EventKinds.TYPING
    lab.run(0.2)
    lab.output.show(BEFORE, lab.now, OFFER_BEFORE)
    lab.run(0.2)
    lab.core.panel()
    return lab


def accept(lab: SessionLab) -> str:
    lab.core.panel()
    return lab.core.accept(lab.ms)


def test_without_a_key_it_is_typed() -> None:
    assert accept(offering()) == "hen"


@pytest.mark.parametrize("wait_s", [0.0, 0.05, 1.0])
def test_after_a_key_the_old_offer_types_nothing_however_slow_the_host_is(wait_s: float) -> None:
    lab = offering()
    lab.press(Usage.H)
    if wait_s:
        lab.run(wait_s)  # the link hears of it; the companion says nothing yet
    assert accept(lab) == ""


def test_the_next_picture_offers_again() -> None:
    lab = offering()
    lab.press(Usage.H)
    lab.run(0.05)
    lab.output.show(AFTER, lab.now, OFFER_AFTER)
    lab.run(0.2)
    assert accept(lab) == "en"


def test_an_offer_that_was_on_its_way_when_the_key_went_down_is_refused() -> None:
    lab = offering()
    lab.output.show(AFTER, lab.now, OFFER_AFTER)
    while lab.session.next_report(lab.now) is None:
        lab.now += 0.001
    lab.press(Usage.E)  # the picture is about "th" still
    lab.run(0.3)
    assert accept(lab) == ""


def test_a_key_between_the_picture_and_its_offer_costs_the_offer_and_nothing_else() -> None:
    lab = ready_lab()
    lab.output.allowed = EventKinds.TYPING
    lab.run(0.2)

    def press_before(report: bytes) -> list[bytes]:
        if lab.sent[-1].type is FrameType.ACCEPT and lab.stats.events == 0:
            lab.core.key_event(0, 5, Usage.H, True, lab.ms)  # told after the answer to the offer
        return [report]

    lab.to_keyboard = press_before
    lab.output.show(BEFORE, lab.now, OFFER_BEFORE)
    lab.run(1.5)
    assert lab.stats.naks == 1
    assert lab.session.ready
    assert accept(lab) == ""
    lab.output.show(AFTER, lab.now, OFFER_AFTER)
    lab.run(0.2)
    assert accept(lab) == "en"


@pytest.mark.parametrize(("number", "typed"), [(16, ""), (146, ""), (0, "hen"), (4, "hen")])
def test_a_macro_of_the_keymap_may_type_and_a_companion_key_does_not(
    number: int, typed: str
) -> None:
    lab = offering()
    lab.core.macro_event(number, True, lab.ms)
    lab.core.task(lab.ms)
    lab.run(0.2)
    assert accept(lab) == typed


@pytest.mark.parametrize("code", [Usage.LEFT_SHIFT, 0x5221, 0x412C])
def test_a_modifier_or_layer_key_alone_takes_nothing_back(code: int) -> None:
    """MO(1), or a layer-tap that is held: the accept key may lie behind it."""
    lab = offering()
    lab.press(code)
    lab.run(0.05)
    assert accept(lab) == "hen"


@given(steps=st.lists(st.sampled_from(["key", "step", "show", "wait", "accept"]), max_size=30))
def test_whatever_the_order_what_is_typed_goes_on_with_what_was_pressed(steps: list[str]) -> None:
    """The host shows "N" with a piece that names N, the number of keys it has heard of."""
    lab = offering()
    lab.output.show(TextFrame(("", "n0")), lab.now, Offer(1, 0, 2))
    lab.run(0.2)
    pressed = 0
    for step in steps:
        heard = sum(type(event).__name__ == "KeyPressed" for event in lab.events)
        match step:
            case "key" if pressed < 9:
                pressed += 1
                lab.press(Usage.A + pressed, column=pressed)
            case "step":
                lab.now += 0.001
                lab.settle()
            case "wait":
                lab.run(0.1)
            case "show":
                lab.output.show(TextFrame(("", f"n{heard}")), lab.now, Offer(1, 0, 2))
            case "accept":
                assert accept(lab) in ("", f"n{pressed}")
