# SPDX-License-Identifier: Apache-2.0
"""Other programs on the interface: the link makes room for them."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import BridgeEvent, KeyPressed, KeyReleased, LinkLost, LinkReady
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.link_session import Session
from firmware_bridge.link_state import LinkOptions, LinkProblem, LinkState, SessionIds
from firmware_bridge.neighbours import (
    QuietTimes,
    Sign,
)
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.transport.base import DeviceIdentity, Transport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.others import FakeOthers
from tests.helpers.session_lab import SessionLab, lose, ready_lab
from tests.helpers.transports import WrappedTransport
from tests.helpers.waiting import wait_until

VIA_VERSION = b"\x01\x00\x0c".ljust(32, b"\0")
KEYMAP = b"\x12\x00\x00\x1c".ljust(32, b"\4")
UNKNOWN = b"\x90".ljust(32, b"\7")
LIGHTS_PROGRAM = b"\x21".ljust(32, b"\0")


def paused_lab() -> SessionLab:
    lab = ready_lab()
    lab.output.show(TextFrame(("mine",)), lab.now)
    lab.key(4, 1, 2, pressed=True)
    lab.run(0.2)
    lab.events.clear()
    lab.sent.clear()
    lab.give(VIA_VERSION)
    lab.now += 0.01
    lab.give(KEYMAP)
    return lab


def test_the_link_falls_silent_lifts_keys_and_says_who_it_is() -> None:
    lab = paused_lab()
    released, lost = lab.events
    assert isinstance(released, KeyReleased)
    assert lost == LinkLost("VIA is using the keyboard")
    assert lab.session.problem is LinkProblem.LEFT_OPEN
    assert lab.session.advice == "VIA is using the keyboard. Close it, then resume."
    lab.output.show(TextFrame(("newer",)), lab.now)
    lab.run(4.9)
    assert lab.sent == []
    assert lab.session.farewell() is None
    assert not lab.core.subscribed  # the firmware took its parts back by itself
    assert not lab.core.display_taken


def test_keys_that_come_in_the_pause_are_not_handed_on() -> None:
    lab = paused_lab()
    lab.events.clear()
    lab.press(9)
    lab.settle()
    assert lab.events == []


@pytest.mark.parametrize("ends", ["by itself", "when the person says so"])
def test_the_link_goes_on(ends: str) -> None:
    lab = paused_lab()
    lab.events.clear()
    lab.run(300, step_s=1)
    lab.give(UNKNOWN)  # within the conversation
    lab.run(599.9, step_s=1)
    assert lab.sent == []
    if ends == "by itself":
        lab.run(0.2)
    else:
        lab.session.come_back()
        lab.settle()
    (event,) = lab.events
    assert isinstance(event, LinkReady)
    assert lab.session.ready
    assert lab.session.problem is None
    assert lab.sent[0].type is FrameType.SUBSCRIBE
    reference = ready_lab()
    reference.output.show(TextFrame(("mine",)), reference.now)
    reference.settle()
    assert lab.core.picture() == reference.core.picture()
    lab.press(7)
    lab.settle()
    assert isinstance(lab.events[-1], KeyPressed)


def test_the_link_stays_silent_while_the_program_has_the_keyboard_open() -> None:
    others = FakeOthers()
    lab = watched_lab(others)
    lab.give(VIA_VERSION)
    others.program = "chrome"
    lab.give(KEYMAP)
    lab.sent.clear()
    lab.run(60)
    assert lab.sent == []
    others.program = None
    lab.run(5.1)
    assert lab.session.ready


def watched_lab(others: FakeOthers) -> SessionLab:
    lab = ready_lab()
    lab.session = Session(
        32,
        SessionIds(7, 1),
        lab.seqs,
        lab.output,
        LinkOptions(),
        lab.stats,
        lambda: lab.asleep,
        others,
    )
    lab.settle()
    return lab


def test_nothing_is_sent_from_the_moment_that_somebody_opens_the_keyboard() -> None:
    others = FakeOthers()
    lab = watched_lab(others)
    assert lab.session.ready
    lab.key(4, 1, 2, pressed=True)
    lab.run(0.05)
    lab.events.clear()
    lab.sent.clear()
    others.come, others.program = Sign.OPENED, "vial"
    lab.output.lights.want(LightOverlay(Rgb(1, 2, 3)), lab.now)
    lab.run(1.9)
    assert lab.sent == []
    released, lost = lab.events
    assert isinstance(released, KeyReleased)
    assert lost == LinkLost("vial is using the keyboard")
    assert lab.session.problem is LinkProblem.OTHER_PROGRAM
    assert lab.session.farewell() is None
    others.program = None
    lab.run(5.1)
    assert lab.session.ready


def test_a_keyboard_that_somebody_has_open_is_not_even_greeted() -> None:
    others = FakeOthers("vial")
    lab = SessionLab()
    lab.session = Session(
        32,
        SessionIds(7, 1),
        lab.seqs,
        lab.output,
        LinkOptions(),
        lab.stats,
        lambda: lab.asleep,
        others,
    )
    lab.run(10)
    assert lab.sent == []
    assert lab.events == []
    assert lab.session.problem is LinkProblem.OTHER_PROGRAM
    others.program = None
    lab.run(5.1)
    assert lab.session.ready


def test_one_search_by_another_program_only_delays_the_next_frame() -> None:
    lab = ready_lab()
    lab.events.clear()
    lab.give(VIA_VERSION)
    lab.output.show(TextFrame(("mine",)), lab.now)
    lab.run(1.79)
    assert lab.sent == []
    lab.run(0.02)
    assert lab.sent
    assert lab.events == []
    assert lab.session.ready
    assert lab.core.subscribed


def test_a_request_without_answer_is_not_repeated_into_a_conversation() -> None:
    lab = ready_lab()
    lab.to_host = lose
    lab.run(1.05)
    assert len(lab.sent) == 1
    lab.give(VIA_VERSION)
    lab.give(KEYMAP)
    lab.run(4)
    assert len(lab.sent) == 1


def test_before_hello_was_answered_the_link_gives_way_too() -> None:
    lab = SessionLab()
    lab.to_keyboard = lose
    lab.settle()
    lab.give(VIA_VERSION)
    lab.give(KEYMAP)
    assert lab.events == []
    assert lab.session.problem is LinkProblem.LEFT_OPEN
    lab.to_keyboard = lambda report: [report]
    lab.session.come_back()
    lab.run(0.1)
    assert lab.session.ready
    assert [frame.type for frame in lab.sent[:2]] == [FrameType.HELLO, FrameType.HELLO]


class Overheard(WrappedTransport):
    """The answers to another program come in between."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.heard: deque[bytes] = deque()

    def read(self, timeout_s: float) -> bytes | None:
        return self.heard.popleft() if self.heard else super().read(timeout_s)


class OverheardVial(Overheard):
    @property
    def identity(self) -> DeviceIdentity:
        return replace(super().identity, serial="vial:f64c2b3c")


@pytest.mark.parametrize("ends", ["by itself", "when the person says so", "never on Vial boards"])
def test_a_running_link_is_paused_and_comes_back(ends: str) -> None:
    keyboard = VirtualKeyboard()
    kind = OverheardVial if "Vial" in ends else Overheard
    transport = kind(VirtualTransport(keyboard))
    events: list[BridgeEvent] = []
    stay_s = 100.0 if ends == "when the person says so" else 0.4
    options = LinkOptions(quiet_s=0.3, stay_s=stay_s)
    link = Link(lambda: transport, events.append, options=options)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, 10)
        transport.heard.extend((VIA_VERSION, KEYMAP))
        transport.wake()
        assert link.wait_for(LinkState.PAUSED, 10)
        assert link.problem is LinkProblem.LEFT_OPEN
        assert link.advice.startswith("VIA is using the keyboard")
        if ends != "by itself":
            assert not link.wait_for(LinkState.READY, 1)
            link.come_back()
        assert link.wait_for(LinkState.READY, 10)
        assert link.problem is None
        wait_until(lambda: len(events) == 3)
    finally:
        assert link.stop()
    assert [type(event) for event in events] == [LinkReady, LinkLost, LinkReady]


def test_what_the_keyboard_sends_by_itself_does_not_keep_thock_away() -> None:
    quiet = QuietTimes(hush_s=0.25, quiet_s=5, open_hush_s=1.8, stay_s=600)
    quiet.notice(VIA_VERSION, 10)
    assert quiet.notice(KEYMAP, 11)
    assert not quiet.notice(b"\x16\x01".ljust(32, b"\0"), 300)  # VIA's UI_SYNC_REQUEST
    assert not quiet.notice(LIGHTS_PROGRAM, 608)  # not VIA's
    assert quiet.silent_until == 613
    assert not quiet.is_over(612.9)
    assert quiet.is_over(613)


def test_the_link_says_so_when_via_comes_after_a_program_that_is_waited_for() -> None:
    lab = ready_lab()
    lab.give(LIGHTS_PROGRAM)
    lab.give(LIGHTS_PROGRAM)
    assert lab.session.problem is LinkProblem.OTHER_PROGRAM
    lab.events.clear()
    lab.give(KEYMAP)
    assert lab.session.problem is LinkProblem.LEFT_OPEN
    assert lab.session.advice == "VIA is using the keyboard. Close it, then resume."
    assert lab.events == []
