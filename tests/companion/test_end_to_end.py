# SPDX-License-Identifier: Apache-2.0
"""The whole chain without hardware: firmware core, link, companion, engine child with scripted replies."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.companion.core import Companion, Mailbox
from app.companion.macros import MacroKey
from app.companion.modes.moods import load_moods
from app.companion.state import CompanionState
from app.settings import ModeName, Settings
from engine.client import FAKE_ENGINE, MODEL_ENGINE, ClientLimits, EngineClient, EngineState
from firmware_bridge.keys.typist import keys_for
from firmware_bridge.link import Link
from firmware_bridge.link_state import LinkState
from firmware_bridge.protocol.messages import Status
from firmware_bridge.transport.virtual import VirtualKeyboard, VirtualTransport
from tests.helpers.companion import US
from tests.helpers.timing import undisturbed
from tests.helpers.waiting import wait_until

GAP_S = 60 / (200 * 5)  # 200 words of five characters a minute
TEXT = "The quick brown fox jumps over the lazy dog; then THERE it sleeps, "
LONG_S = 120.0
LOAD_S = 120.0


@dataclass
class Chain:
    """A keyboard to type on, and the companion's states."""

    keyboard: VirtualKeyboard
    link: Link
    engine: EngineClient
    companion: Companion
    states: list[CompanionState] = field(default_factory=list)
    presses_s: list[float] = field(default_factory=list)

    @property
    def context(self) -> str:
        return self.companion._machine._desk.context.text

    def type(self, text: str, gap_s: float = GAP_S) -> None:
        """Press and release each key, `gap_s` seconds from one to the next, as exactly as the system can."""
        due = time.monotonic()
        for stroke in keys_for(text, US):
            start = time.monotonic()
            for usage, is_down in stroke.actions():
                assert (self.keyboard.press if is_down else self.keyboard.release)(usage)
            self.presses_s.append(time.monotonic() - start)
            due += gap_s
            time.sleep(max(due - time.monotonic(), 0))

    def shows(self, text: str) -> bool:
        return any(text in row for row in self.companion.state.frame.rows)

    def until_shown(self, text: str) -> None:
        wait_until(lambda: self.shows(text), timeout_s=LONG_S)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(
        json.dumps(
            {
                "words": ["soundly", "then", "there", "sleeps"],
                "replies": ["One two three four five six seven.", "Second."],
                "token_ms": 30,
            }
        )
    )
    return path


@contextmanager
def running(argv: Sequence[str], model: Path, mode: ModeName) -> Iterator[Chain]:
    """The whole chain, with the model loaded."""
    mailbox = Mailbox()
    keyboard = VirtualKeyboard()
    link = Link(lambda: VirtualTransport(keyboard), mailbox.post)
    engine = EngineClient(
        mailbox.post, mailbox.engine_changed, argv=argv, limits=ClientLimits(silence_s=120)
    )
    companion = Companion(mailbox, link, engine, Settings(mode=mode))
    chain = Chain(keyboard, link, engine, companion)
    companion.subscribe(chain.states.append)
    companion.start()
    link.start()
    try:
        assert link.wait_for(LinkState.READY, LONG_S)
        engine.start(model)
        wait_until(lambda: companion.state.engine is EngineState.READY, timeout_s=LOAD_S)
        yield chain
    finally:
        companion.stop()
        link.stop()
        engine.stop()


@pytest.fixture
def chain(script: Path, request: pytest.FixtureRequest) -> Iterator[Chain]:
    with running(FAKE_ENGINE, script, getattr(request, "param", ModeName.SUGGEST)) as chain:
        yield chain


def test_at_200_words_a_minute_no_key_is_lost_and_the_last_text_is_answered(chain: Chain) -> None:
    chain.type(TEXT)
    wait_until(lambda: chain.context == TEXT, timeout_s=LONG_S)
    chain.until_shown("soundly")
    assert chain.companion.state.dropped == 0
    assert chain.companion.state.error == ""
    assert chain.link.stats.dropped == chain.link.stats.naks == 0
    wait_until(lambda: chain.keyboard.status is Status.LISTENING, timeout_s=LONG_S)
    assert chain.keyboard.display_taken
    assert any(chain.keyboard.panel().pages)
    assert chain.companion.state.latency is not None
    # Holding one lock for one call into the firmware core; a token of the engine takes 0.03 s.
    assert undisturbed(chain.presses_s) < 0.005


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP is POSIX")
def test_keys_and_display_do_not_wait_for_an_engine_that_stands_still(chain: Chain) -> None:
    pid = chain.engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        chain.type(TEXT, gap_s=0.01)
        wait_until(lambda: chain.context == TEXT, timeout_s=LONG_S)
        chain.until_shown("it sleeps, _")
        assert not chain.shows("soundly")
    finally:
        os.kill(pid, signal.SIGCONT)
    chain.until_shown("soundly")
    assert chain.companion.state.dropped == 0


@pytest.mark.parametrize("chain", [ModeName.CHAT], indirect=True)
@pytest.mark.expected_log("engine child died")
def test_an_engine_killed_in_the_middle_of_a_reply_is_back_for_the_next(chain: Chain) -> None:
    chain.type("count\n", gap_s=0.01)
    chain.until_shown("One two three")
    pid = chain.engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    chain.until_shown("engine stopped,")
    chain.type("again", gap_s=0.01)
    wait_until(lambda: chain.companion.state.engine is EngineState.READY, timeout_s=LONG_S)
    chain.until_shown("> again_")
    chain.type("\n")
    chain.until_shown("One two three")
    assert chain.companion.state.dropped == 0
    assert any(state.status is Status.ERROR for state in chain.states)


def test_a_keyboard_that_is_unplugged_and_plugged_in_goes_on(chain: Chain) -> None:
    chain.type("the", gap_s=0.01)
    chain.keyboard.unplug()
    wait_until(lambda: chain.companion.state.keyboard is None, timeout_s=LONG_S)
    chain.keyboard.plug()
    wait_until(lambda: chain.companion.state.keyboard is not None, timeout_s=LONG_S)
    wait_until(lambda: chain.keyboard.status is Status.LISTENING, timeout_s=LONG_S)
    chain.type("sl", gap_s=0.01)
    chain.until_shown("sleeps")


def test_pausing_takes_everything_off_the_keyboard(chain: Chain) -> None:
    chain.type("sl", gap_s=0.01)
    chain.until_shown("sleeps")
    chain.keyboard.macro(2)
    chain.until_shown("paused")
    wait_until(lambda: chain.keyboard.status is Status.PAUSED, timeout_s=LONG_S)
    wait_until(lambda: set(chain.keyboard.leds()) == {None}, timeout_s=LONG_S)
    chain.companion.stop()
    wait_until(lambda: not chain.keyboard.display_taken, timeout_s=LONG_S)


@pytest.mark.model
def test_the_default_model_answers_in_all_three_modes(smollm2: Path) -> None:
    with running(MODEL_ENGINE, smollm2, ModeName.SUGGEST) as chain:
        chain.type("The quick brown f", gap_s=0.01)
        chain.until_shown("fox")
        chain.keyboard.macro(MacroKey.NEXT_MODE)
        chain.type("What is the capital of France?\n", gap_s=0.01)
        wait_until(lambda: "Paris" in chain.companion.state.reply, timeout_s=LONG_S)
        chain.keyboard.macro(MacroKey.NEXT_MODE)
        chain.type("we won the game, i am so happy!\n", gap_s=0.05)
        wait_until(lambda: chain.companion.state.reply in load_moods(), timeout_s=LONG_S)
        assert chain.companion.state.error == ""
        assert chain.companion.state.dropped == 0
