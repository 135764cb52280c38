# SPDX-License-Identifier: Apache-2.0
"""The continuation of a text is shown to that text and to no other, whatever happens in whatever order.

Candidates and what goes on after them carry the text that they answer, in letters that nobody types.
"""

from __future__ import annotations

import re

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.companion.messages import FocusChanged, Forget, Message, Pause, Resume, SetMode
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import (
    Cancel,
    Complete,
    Prepare,
    Prepared,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
    Suggest,
)
from firmware_bridge.events import EventsDropped, LinkLost, MacroTriggered
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk, suggestions

KEYS = [Usage.A, Usage.B, Usage.SPACE, Usage.BACKSPACE, Usage.ESCAPE, Usage.LEFT, Usage.TAB]
ASK = 1
LETTERS = str.maketrans("ab ", "XYZ")
CANDIDATE = re.compile(r"<(\w*)>")
GOES_ON = re.compile(r"\[(\w*)\]")


def after(ask: Complete) -> str:
    """What the engine writes after the candidate at the end of `ask`."""
    return f" [{CANDIDATE.findall(ask.text)[-1]}]"


class NeverStaleSuggest(RuleBasedStateMachine):
    """One desk in suggest mode."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(Settings(), columns=60, rows=4, ahead=True)
        self.desk.keyboard.columns = 60

    @rule(usage=st.sampled_from(KEYS), hold_s=st.sampled_from([0.0, 0.5]))
    def key(self, usage: int, hold_s: float) -> None:
        self.desk.press(usage, hold_s)

    @rule(text=st.text("ab ", min_size=1, max_size=4), gap_s=st.sampled_from([0.0, 0.06]))
    def words(self, text: str, gap_s: float) -> None:
        self.desk.type(text, gap_s)

    @rule(is_quick=st.booleans())
    def trigger(self, is_quick: bool) -> None:
        """What a reflex would show is what the companion shows; and no engine is asked on the way."""
        now = self.desk.clock.now
        event = MacroTriggered(ASK, int(now * 1000) & 0xFFFF, now)
        reflex, hits = self.desk.keyboard.reflex, self.desk.state.ready.hits
        commands = len(self.desk.engine.commands)
        self.desk.post(event)
        if reflex is not None:
            assert self.desk.state.ready.hits == hits + 1
            assert self.desk.keyboard.frame == reflex.frame
        if self.desk.state.ready.hits > hits:
            asked = self.desk.engine.commands[commands:]
            assert not [c for c in asked if not isinstance(c, Cancel)]
        if not is_quick:
            self.desk.advance(0.01)

    @rule(which=st.integers(0, 3), is_cancelled=st.booleans())
    def suggest(self, which: int, is_cancelled: bool) -> None:
        asked = [c for c in self.desk.engine.commands if isinstance(c, Suggest)]
        if asked:
            command = asked[-1 - which % len(asked)]
            word = f" <{command.text.translate(LETTERS)}>"
            self.desk.post(suggestions(command.request, (word, 0.5), cancelled=is_cancelled))

    @rule(which=st.integers(0, 3), count=st.integers(1, 3), is_whole=st.booleans())
    def ready(self, which: int, count: int, is_whole: bool) -> None:
        prepares = [c for c in self.desk.engine.commands if isinstance(c, Prepare)]
        asked = [(c, c.ask) for c in prepares if isinstance(c.ask, Complete)]
        if asked:
            prepare, ask = asked[-1 - which % len(asked)]
            self.desk.post(
                ReplyReady(
                    request=prepare.request,
                    context=prepare.context,
                    text=after(ask) + " x" * count,
                    tokens=list(range(count)),
                    is_whole=is_whole,
                )
            )

    @rule(text=st.text("ab", min_size=1, max_size=3), is_prepared=st.booleans())
    def text_with_candidates(self, text: str, is_prepared: bool) -> None:
        """What happens nearly always."""
        self.desk.post(Resume())
        self.desk.post(SetMode(ModeName.SUGGEST))
        self.desk.engine_is(EngineState.READY)
        self.desk.type(text, 0.06)
        self.suggest(0, False)
        if is_prepared:
            self.ready(0, 2, False)

    @rule()
    def prepared(self) -> None:
        numbers = [c.request for c in self.desk.engine.commands if isinstance(c, Prepare)]
        if numbers:
            self.desk.post(Prepared(request=numbers[-1], computed=3, wasted=1))

    @rule(is_last=st.booleans())
    def answer(self, is_last: bool) -> None:
        asked = [c for c in self.desk.engine.commands if isinstance(c, Complete)]
        if asked and is_last:
            number = asked[-1].request
            self.desk.post(
                ReplyFinished(
                    request=number, reason="stop", tokens=1, first_token_ms=1, milliseconds=1
                )
            )
        elif asked:
            self.desk.post(ReplyGrew(request=asked[-1].request, text=after(asked[-1])))

    @rule(
        message=st.sampled_from(
            [
                SetMode(ModeName.CHAT),
                SetMode(ModeName.SUGGEST),
                Pause(),
                Resume(),
                Forget(),
                FocusChanged(),
                EventsDropped(1),
                LinkLost(""),
            ]
        )
    )
    def tell(self, message: Message) -> None:
        self.desk.post(message)

    @rule(seconds=st.sampled_from([0.001, 0.1, 0.6, 3.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.desk.advance(seconds)

    @rule(is_up=st.booleans())
    def engine(self, is_up: bool) -> None:
        self.desk.engine_is(EngineState.READY if is_up else EngineState.RESTARTING)

    # ---------------------------------------------------------------- what must hold

    def _text(self) -> str:
        return self.desk.companion._machine._desk.context.text.translate(LETTERS)

    @invariant()
    def no_handler_raised(self) -> None:
        assert self.desk.state.error == ""

    @invariant()
    def no_timer_is_overdue(self) -> None:
        wait_s = self.desk.companion.wait_s()
        assert wait_s is None or wait_s > 0

    @invariant()
    def what_goes_on_goes_on_after_this_text(self) -> None:
        frames = [self.desk.keyboard.frame]
        if self.desk.keyboard.reflex is not None:
            frames.append(self.desk.keyboard.reflex.frame)
            assert not self.desk.state.is_paused
        for frame in frames:
            for row in getattr(frame, "rows", ()):
                assert set(GOES_ON.findall(row)) <= {self._text()}
                if frame is self.desk.keyboard.frame and GOES_ON.search(row):
                    assert self.desk.state.mode is ModeName.SUGGEST

    @invariant()
    def a_reflex_is_for_this_text(self) -> None:
        reflex = self.desk.keyboard.reflex
        for row in getattr(reflex.frame, "rows", ()) if reflex is not None else ():
            assert set(CANDIDATE.findall(row)) <= {self._text()}


TestNeverStaleSuggest = NeverStaleSuggest.TestCase
TestNeverStaleSuggest.settings = hypothesis_settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
