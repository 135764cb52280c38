# SPDX-License-Identifier: Apache-2.0
"""Another keyboard in the settings is in use at once, and shows what the one before it showed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from app.companion.away import Away
from app.companion.lights_port import Listener
from app.lifecycle.host import HostState
from app.lifecycle.keyboard_switch import KeyboardSwitch, OpenKeyboard
from app.settings import LightsSettings, Settings
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import BridgeEvent, LinkLost, LinkReady, MacroTriggered
from firmware_bridge.lights.overlay import LightOverlay, Rgb
from firmware_bridge.protocol.messages import Offer, Status
from tests.helpers.companion import Desk, FakeKeyboard, board
from tests.helpers.waiting import wait_until

BLUE = LightOverlay(Rgb(0, 0, 255))


class Board(FakeKeyboard):
    """Connects as it starts. `listener` is kept beyond its end, for what is said too late."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self.listener = listener
        self.lights: LightsSettings | None = None

    def start(self) -> None:
        self.log.append("start")
        self.listener(LinkReady(board()))

    def stop(self) -> bool:
        self.log.append("stop")
        return True


class Shelf:
    """Opens boards by name, but "broken", and writes down what came and went."""

    def __init__(self) -> None:
        self.boards: dict[str, Board] = {}
        self.closed: list[str] = []
        self.events: list[BridgeEvent] = []
        self.watchers: list[Callable[[], None]] = []

    @contextmanager
    def open(
        self, name: str, _lights: LightsSettings, listener: Listener
    ) -> Iterator[OpenKeyboard]:
        if name == "broken":
            raise OSError("no such bus")
        port = self.boards[name] = Board(listener)
        yield OpenKeyboard(
            port, lambda: f"Board {name}", lambda lights: setattr(port, "lights", lights),
            away=lambda: Away(name, until_resumed=True), watch_away=self.watchers.append,
        )  # fmt: skip
        self.closed.append(name)

    def switch(self) -> KeyboardSwitch:
        switch = KeyboardSwitch(self.open, "a", LightsSettings())
        return switch.heard_by(self.events.append)


def chosen(keyboard: str) -> HostState:
    return HostState(Desk().state, Settings(keyboard=keyboard))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def switch(shelf: Shelf) -> Iterator[KeyboardSwitch]:
    switch = shelf.switch()
    switch.start()
    yield switch
    assert switch.stop()


def test_what_is_wanted_holds_for_the_next_keyboard(shelf: Shelf, switch: KeyboardSwitch) -> None:
    frame = TextFrame(("hello", "1 world"))
    switch.allow(capture=True, typing=True)
    switch.set_status(Status.LISTENING)
    switch.set_lights(BLUE)
    switch.show(frame, Offer(1, 2, 5))
    assert shelf.boards["a"].offer is not None
    switch.follow(chosen("b"))
    wait_until(lambda: switch.name == "Board b")
    wait_until(lambda: "start" in shelf.boards["b"].log)
    second = shelf.boards["b"]
    assert second.frame == frame
    assert second.offer is None  # made on another keyboard
    assert second.log[0] == "allow capture True typing True"
    assert {"status listening", "lights 0,0,255 solid"} < set(second.log)
    assert second.log[-1] == "start"
    assert shelf.boards["a"].log[-1] == "stop"
    assert shelf.closed == ["a"]
    assert [type(event) for event in shelf.events] == [LinkReady, LinkLost, LinkReady]


def test_what_was_given_back_is_not_shown_again(shelf: Shelf, switch: KeyboardSwitch) -> None:
    switch.show(TextFrame(("hello",)))
    switch.set_lights(BLUE)
    switch.release()
    assert shelf.boards["a"].log[-1] == "release"
    switch.follow(chosen("b"))
    wait_until(lambda: switch.name == "Board b")
    assert shelf.boards["b"].frame == TextFrame(())
    assert "lights 0,0,255 solid" not in shelf.boards["b"].log


def test_nothing_is_heard_of_a_keyboard_that_is_no_longer_chosen(
    shelf: Shelf, switch: KeyboardSwitch
) -> None:
    first = shelf.boards["a"]
    switch.follow(chosen("b"))
    wait_until(lambda: len(shelf.events) == 3)
    first.listener(MacroTriggered(0, 0, 0.0))
    first.listener(LinkLost("late"))
    assert len(shelf.events) == 3


@pytest.mark.expected_log("the keyboard could not be changed: no such bus")
def test_a_keyboard_that_cannot_be_opened_leaves_room_for_another(
    shelf: Shelf, switch: KeyboardSwitch, caplog: pytest.LogCaptureFixture
) -> None:
    switch.follow(chosen("broken"))
    wait_until(lambda: "no such bus" in caplog.text)
    switch.show(TextFrame(("hello",)))
    assert switch.name == ""
    assert isinstance(shelf.events[-1], LinkLost)
    switch.follow(chosen("c"))
    wait_until(lambda: switch.name == "Board c")
    assert shelf.boards["c"].frame == TextFrame(("hello",))


def test_the_same_keyboard_stays_and_hears_of_its_lights(
    shelf: Shelf, switch: KeyboardSwitch
) -> None:
    switch.follow(chosen("a"))
    assert shelf.boards["a"].lights == LightsSettings()
    assert "stop" not in shelf.boards["a"].log
    assert len(shelf.events) == 1


def test_it_may_be_told_while_an_event_is_heard(shelf: Shelf, switch: KeyboardSwitch) -> None:
    """A keyboard holds a lock of its own in both; the other order of locks would stop both threads."""
    port = shelf.boards["a"]
    own = threading.Lock()

    def locked_lights(overlay: LightOverlay) -> None:
        with own:
            FakeKeyboard.set_lights(port, overlay)

    port.set_lights = locked_lights  # type: ignore[method-assign]

    def speak() -> None:
        for _ in range(300):
            with own:
                port.listener(MacroTriggered(0, 0, 0.0))

    speaker = threading.Thread(target=speak, daemon=True)
    teller = threading.Thread(
        target=lambda: [switch.set_lights(BLUE) for _ in range(300)], daemon=True
    )
    for thread in (speaker, teller):
        thread.start()
    for thread in (speaker, teller):
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.expected_log("the keyboard could not be changed: no such bus")
def test_that_another_program_has_a_keyboard_ends_with_the_keyboard(shelf: Shelf) -> None:
    switch = shelf.switch()
    seen: list[Away | None] = []
    switch.watch_away(lambda: seen.append(switch.away))
    switch.start()
    shelf.watchers[0]()
    assert seen == [Away("a", until_resumed=True)]
    switch.follow(chosen("broken"))
    wait_until(lambda: len(seen) == 2)
    assert seen[1] is None
    assert switch.stop()
