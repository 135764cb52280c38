# SPDX-License-Identifier: Apache-2.0
"""What a link does over every live transport; the keyboard at the other end runs the C core.

A new transport adds a maker to MAKERS: it turns a virtual keyboard into something to open.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.events import (
    BridgeEvent,
    CaptureEnded,
    CaptureStarted,
    KeyPressed,
    KeyReleased,
    LinkLost,
    LinkReady,
    MacroTriggered,
    SuggestionAccepted,
)
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkOptions, LinkProblem, LinkState, SessionIds
from firmware_bridge.protocol.messages import Offer, Status
from firmware_bridge.transport.base import Transport
from firmware_bridge.transport.replay import RecordingTransport
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.transports import DeafTransport
from tests.helpers.waiting import wait_until

OPTIONS = LinkOptions(search_s=0.02, backoff_first_s=0.02, backoff_limit_s=0.1, busy_retry_s=0.05)
LIT = BitmapFrame(128, 32, b"\x3c" * 512)

OpenTransport = Callable[[], Transport]


def virtual(keyboard: VirtualKeyboard, folder: Path) -> OpenTransport:
    return lambda: VirtualTransport(keyboard)


def recorded(keyboard: VirtualKeyboard, folder: Path) -> OpenTransport:
    return lambda: RecordingTransport(VirtualTransport(keyboard), folder / "traffic.jsonl")


def polled(keyboard: VirtualKeyboard, folder: Path) -> OpenTransport:
    """Cannot be woken, as hidapi cannot."""
    return lambda: DeafTransport(VirtualTransport(keyboard))


def serial(keyboard: VirtualKeyboard, folder: Path) -> OpenTransport:
    """Over a pseudo-terminal, another one each time."""
    if os.name != "posix":
        pytest.skip("pseudo-terminals are POSIX")
    from tests.helpers.serial_board import SerialBoardTransport

    return lambda: SerialBoardTransport(keyboard)


MAKERS: list[Callable[[VirtualKeyboard, Path], OpenTransport]] = [virtual, recorded, polled, serial]


@dataclass
class Desk:
    """A keyboard, its link and what the link told."""

    keyboard: VirtualKeyboard
    open_transport: OpenTransport
    events: list[BridgeEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.link = self.make_link(self.events, client=1)

    def make_link(self, events: list[BridgeEvent], client: int) -> Link:
        return Link(
            self.open_transport,
            events.append,
            client_source=lambda: SessionIds(client, 0xCAFE),
            options=OPTIONS,
        )

    def start(self) -> None:
        self.link.start()
        self.until_ready()

    def until_ready(self) -> None:
        """Until the link is ready and has told so; what was told is dropped."""
        assert self.link.wait_for(LinkState.READY, 60)
        wait_until(lambda: any(isinstance(event, LinkReady) for event in self.events))
        self.events.clear()


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    keyboard = VirtualKeyboard()
    desk = Desk(keyboard, request.param(keyboard, tmp_path))
    yield desk
    assert desk.link.stop(10)
    assert not [thread for thread in threading.enumerate() if thread.name == "thock-link"]


def test_the_link_gets_ready_and_says_what_the_board_is(desk: Desk) -> None:
    assert desk.link.state is LinkState.STOPPED
    assert desk.link.capabilities is None
    desk.link.start()
    assert desk.link.wait_for(LinkState.READY, 60)
    wait_until(lambda: desk.events)
    assert desk.events == [LinkReady(desk.link.capabilities)]  # type: ignore[arg-type]
    assert desk.link.problem is None
    assert desk.link.capabilities is not None
    assert desk.link.capabilities.width == 128


def test_keys_and_macros_arrive_in_order(desk: Desk) -> None:
    desk.start()
    for key in range(4, 30):
        desk.keyboard.press(key)
        desk.keyboard.release(key)
    desk.keyboard.macro(3)
    wait_until(lambda: len(desk.events) == 53)
    pairs = [(type(e), e.keycode) for e in desk.events if isinstance(e, KeyPressed | KeyReleased)]
    assert pairs == [(kind, key) for key in range(4, 30) for kind in (KeyPressed, KeyReleased)]
    assert isinstance(desk.events[-1], MacroTriggered)
    assert desk.events[-1].number == 3


def test_display_lights_and_status_follow_and_are_given_back(desk: Desk) -> None:
    desk.start()
    red = Rgb(200, 0, 0)
    desk.link.show(LIT)
    desk.link.set_lights(LightOverlay(leds={3: red}))
    wait_until(lambda: desk.keyboard.panel() == LIT and desk.keyboard.leds()[3] == red)
    desk.link.set_status(Status.THINKING)
    wait_until(lambda: desk.keyboard.status is Status.THINKING)
    desk.link.show(TextFrame(("now text",)))
    wait_until(lambda: desk.keyboard.panel() != LIT)
    desk.link.release()
    wait_until(lambda: not desk.keyboard.display_taken)
    wait_until(lambda: not any(desk.keyboard.leds()))
    assert desk.keyboard.subscribed


def test_unplugging_lifts_the_keys_and_says_so_and_replugging_brings_all_back(desk: Desk) -> None:
    desk.start()
    desk.link.show(LIT)
    desk.link.set_status(Status.IDLE)
    wait_until(lambda: desk.keyboard.panel() == LIT)
    desk.keyboard.press(0x04)
    desk.keyboard.press(0x05)
    desk.keyboard.release(0x04)
    wait_until(lambda: len(desk.events) == 3)
    desk.keyboard.unplug()
    wait_until(lambda: len(desk.events) == 5)
    lifted, lost = desk.events[3:]
    assert isinstance(lifted, KeyReleased)
    assert lifted.keycode == 0x05
    assert lost == LinkLost(LinkProblem.GONE)
    wait_until(lambda: desk.link.problem is LinkProblem.NO_DEVICE)
    assert desk.link.capabilities is None
    desk.keyboard.plug()
    assert desk.link.wait_for(LinkState.READY, 60)
    wait_until(lambda: desk.keyboard.panel() == LIT)
    assert desk.link.stats.connections == 2


def test_a_keyboard_that_is_plugged_in_later_is_found(desk: Desk) -> None:
    desk.keyboard.unplug()
    desk.link.show(LIT)
    desk.link.start()
    wait_until(lambda: desk.link.problem is LinkProblem.NO_DEVICE)
    assert desk.link.state is LinkState.SEARCHING
    desk.keyboard.plug()
    assert desk.link.wait_for(LinkState.READY, 60)
    wait_until(lambda: desk.keyboard.panel() == LIT)


def test_captured_keys_reach_the_host_and_not_the_computer(desk: Desk) -> None:
    desk.start()
    assert not desk.keyboard.begin_capture()  # nobody allowed it
    desk.link.allow(capture=True, typing=False)
    wait_until(desk.keyboard.begin_capture)
    desk.keyboard.press(0x04)
    desk.keyboard.release(0x04)
    desk.keyboard.end_capture()
    desk.keyboard.press(0x05)
    wait_until(lambda: len(desk.events) == 5)
    kinds = [type(event) for event in desk.events]
    assert kinds == [CaptureStarted, KeyPressed, KeyReleased, CaptureEnded, KeyPressed]
    captured = [e.captured for e in desk.events if isinstance(e, KeyPressed | KeyReleased)]
    assert captured == [True, True, False]
    assert desk.keyboard.computer_keys == [(0x05, True)]


def test_the_accept_key_types_what_is_shown_also_after_a_replug(desk: Desk) -> None:
    desk.start()
    desk.link.allow(capture=False, typing=True)
    for text in ("brown", "black"):
        desk.link.show(TextFrame(("the quick", f"1 {text}")), Offer(1, 1, 6))
        wait_until(lambda text=text: _accepts(desk.keyboard, f" {text}"))  # type: ignore[misc]
        wait_until(lambda: any(isinstance(event, SuggestionAccepted) for event in desk.events))
        accepted = [event.text for event in desk.events if isinstance(event, SuggestionAccepted)]
        assert accepted == [f" {text}"]
        desk.keyboard.unplug()
        wait_until(lambda: desk.link.problem is LinkProblem.NO_DEVICE)
        desk.keyboard.plug()
        assert desk.link.wait_for(LinkState.READY, 60)
        desk.events.clear()


def _accepts(keyboard: VirtualKeyboard, text: str) -> bool:
    """A press before the offer has come types nothing."""
    keyboard.macro(4)
    return keyboard.typed.endswith(text)


def test_stop_gives_everything_back(desk: Desk) -> None:
    desk.start()
    desk.link.show(LIT)
    desk.keyboard.press(0x04)
    wait_until(lambda: desk.keyboard.display_taken and desk.events)
    assert desk.link.stop(60)
    wait_until(lambda: not desk.keyboard.display_taken and not desk.keyboard.subscribed)
    assert desk.link.state is LinkState.STOPPED
    assert [type(event) for event in desk.events] == [KeyPressed, KeyReleased]
    desk.link.show(LIT)  # harmless
    assert desk.link.stop(10)


def test_a_second_program_waits_for_the_first(desk: Desk) -> None:
    desk.start()
    others: list[BridgeEvent] = []
    other = desk.make_link(others, client=2)
    other.start()
    try:
        wait_until(lambda: other.problem is LinkProblem.IN_USE)
        assert other.state is LinkState.CONNECTING
        desk.keyboard.press(0x04)
        wait_until(lambda: desk.events)
        assert desk.link.state is LinkState.READY
        assert others == []
        desk.link.stop(10)
        assert other.wait_for(LinkState.READY, 60)
        desk.keyboard.press(0x05)
        wait_until(lambda: any(isinstance(event, KeyPressed) for event in others))
    finally:
        assert other.stop(10)


@pytest.mark.expected_log("listener failed")
def test_a_listener_that_fails_neither_ends_the_link_nor_shows_content(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[BridgeEvent] = []

    def listener(event: BridgeEvent) -> None:
        heard.append(event)
        if isinstance(event, KeyPressed):
            raise RuntimeError(f"the secret key is {event.keycode}")

    link = Link(desk.open_transport, listener, options=OPTIONS)
    link.start()
    try:
        assert link.wait_for(LinkState.READY, 60)
        for _ in range(3):
            desk.keyboard.press(0x77)
            desk.keyboard.release(0x77)
        wait_until(lambda: len(heard) == 7)
        wait_until(lambda: link.stats.listener_failures == 3)
        assert link.state is LinkState.READY
    finally:
        assert link.stop(10)
    assert caplog.text.count("listener failed") == 1
    assert "secret" not in caplog.text
    assert str(0x77) not in caplog.text
