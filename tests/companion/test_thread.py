# SPDX-License-Identifier: Apache-2.0
"""The companion on its own thread: order, timers, subscribers that fail, start and stop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.companion.core import Companion, Mailbox
from app.companion.messages import Ask, Forget, Pause, SetMode, Stop
from app.companion.run import run_companion
from app.companion.state import CompanionState
from app.settings import ModeName, Settings, SuggestSettings
from engine.client import EngineState
from engine.messages import Device, RemoteServer
from firmware_bridge.events import EventsDropped
from tests.helpers.companion import FakeEngine, FakeKeyboard

WAIT_S = 20.0


class Watch:
    """A subscriber that another thread can wait on."""

    def __init__(self) -> None:
        self.states: list[CompanionState] = []
        self._changed = threading.Condition()

    def __call__(self, state: CompanionState) -> None:
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def until(self, text: str) -> None:
        """Wait until the display shows `text`."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(text in row for state in self.states[-1:] for row in state.frame.rows),
                WAIT_S,
            )


class StartableKeyboard(FakeKeyboard):
    def start(self) -> None:
        self.log.append("start")

    def stop(self) -> bool:
        self.log.append("stop")
        return True


class StartableEngine(FakeEngine):
    def start(
        self,
        model: Path | str,
        max_context: int = 2048,
        device: Device = Device.AUTO,
        server: RemoteServer | None = None,
        window: int = 128,
    ) -> None:
        self.log.append(f"engine start {model} {max_context} {window}")

    def stop(self) -> None:
        self.log.append("engine stop")


def companion(mailbox: Mailbox, settings: Settings | None = None) -> Companion:
    keyboard = FakeKeyboard()
    return Companion(mailbox, keyboard, FakeEngine(keyboard.log), settings or Settings())


def test_messages_are_taken_in_order_from_any_thread_until_stop() -> None:
    mailbox, watch = Mailbox(), Watch()
    one = companion(mailbox)
    one.subscribe(watch)
    ended = threading.Event()
    one.start(on_end=ended.set)
    posters = [
        threading.Thread(target=lambda: [mailbox.post(EventsDropped(1)) for _ in range(200)])
        for _ in range(4)
    ]
    for poster in posters:
        poster.start()
    for poster in posters:
        poster.join()
    one.stop(WAIT_S)
    assert ended.is_set()
    assert watch.states[-1].dropped == 800
    counts = [state.dropped for state in watch.states]
    assert counts == sorted(counts)
    one.stop(WAIT_S)


def test_a_timer_fires_without_any_message() -> None:
    mailbox, watch = Mailbox(), Watch()
    one = companion(mailbox)
    one.subscribe(watch)
    one.start()
    mailbox.post(Forget())
    watch.until("forgotten")
    watch.until("no engine")
    with watch._changed:
        assert watch._changed.wait_for(
            lambda: "forgotten" not in watch.states[-1].frame.rows, WAIT_S
        )
    one.stop(WAIT_S)


@pytest.mark.expected_log("a subscriber is dropped after RuntimeError at test_thread.py")
def test_a_subscriber_that_fails_is_dropped_and_the_others_stay() -> None:
    mailbox, watch = Mailbox(), Watch()
    calls = []

    def fails(state: CompanionState) -> None:
        calls.append(state)
        if len(calls) > 1:
            raise RuntimeError("not mine")

    one = companion(mailbox)
    one.subscribe(fails)
    one.subscribe(watch)
    for message in (Pause(), SetMode(ModeName.CHAT), SetMode(ModeName.REACT)):
        one.step(message)
    assert len(calls) == 2
    assert watch.states[-1].mode is ModeName.REACT


def test_a_subscriber_gets_the_present_state_at_once_and_only_changes_later() -> None:
    mailbox, watch = Mailbox(), Watch()
    one = companion(mailbox)
    one.subscribe(watch)
    assert watch.states == [one.state]
    one.step(SetMode(ModeName.CHAT))
    before = len(watch.states)
    one.step(SetMode(ModeName.CHAT))
    assert len(watch.states) == before


def test_run_starts_everything_and_ends_it_in_the_right_order() -> None:
    mailbox, stop = Mailbox(), threading.Event()
    keyboard = StartableKeyboard()
    engine = StartableEngine(keyboard.log)
    suggest = SuggestSettings(context_tokens=256)
    settings = Settings(model=Path("a.gguf"), max_context=512, suggest=suggest)
    watch = Watch()
    thread = threading.Thread(
        target=run_companion, args=(mailbox, keyboard, engine, settings, stop, [watch]), daemon=True
    )
    thread.start()
    mailbox.engine_changed(EngineState.LOADING, "")
    watch.until("loading model")
    stop.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert keyboard.log.index("start") < keyboard.log.index("engine start a.gguf 512 256")
    assert keyboard.log[-3:] == ["release", "stop", "engine stop"]


def test_a_stop_from_inside_ends_run() -> None:
    mailbox, stop = Mailbox(), threading.Event()
    keyboard = StartableKeyboard()
    mailbox.post(Ask("too late?"))
    mailbox.post(Stop())
    run_companion(mailbox, keyboard, StartableEngine(keyboard.log), Settings(), stop)
    assert stop.is_set()
    assert "engine start" not in "".join(keyboard.log)
    assert keyboard.log[-2:] == ["stop", "engine stop"]
