# SPDX-License-Identifier: Apache-2.0
"""Any interleaving of keys, commands, answers, deaths and time: nothing stale is seen, nothing raises.

Answers carry the number of their request in a form that nobody types, so the display tells whose
answer it shows.
"""

from __future__ import annotations

import itertools
import re

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.companion.messages import Ask, CancelReply, Forget, Message, Pause, Resume, SetMode
from app.companion.modes.moods import load_moods
from app.companion.ports import EngineCommand
from app.settings import ModeName
from engine.client import EngineState
from engine.messages import (
    Cancel,
    Chat,
    Choose,
    Failed,
    Forgotten,
    LabelChosen,
    ReplyFinished,
    ReplyGrew,
    Suggest,
)
from engine.messages import Forget as EngineForget
from firmware_bridge.events import EventsDropped, LinkLost, LinkReady
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk, board, suggestions

KEYS = [
    Usage.A, Usage.B, Usage.SPACE, Usage.ENTER, Usage.BACKSPACE, Usage.ESCAPE, Usage.LEFT, Usage.TAB,
]  # fmt: skip
MODIFIERS = [Usage.LEFT_SHIFT, Usage.LEFT_CONTROL]
SIZES = [(21, 4), (21, 8), (5, 16), (0, 0)]
SUGGESTED = re.compile(r"S(\d+)s")
REPLIED = re.compile(r"R(\d+)r")
LABELS = list(load_moods())


class Interleavings(RuleBasedStateMachine):
    """One desk. `given_up` counts the questions at the last moment when the person or the program gave
    up all of them: their replies are stale from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.is_up = True
        self.ended: set[int] = set()
        self.finished: set[int] = set()
        self.given_up = 0
        self.moods: list[tuple[float, str]] = []
        self.columns = 21

    # ---------------------------------------------------------------- what may happen

    @rule(usage=st.sampled_from(KEYS), hold_s=st.sampled_from([0.0, 0.05, 0.7]))
    def key(self, usage: int, hold_s: float) -> None:
        self.desk.press(usage, hold_s)
        if usage == Usage.ESCAPE and not self.has_modifier:
            self._give_up()

    @rule(usage=st.sampled_from(MODIFIERS), is_down=st.booleans())
    def modifier(self, usage: int, is_down: bool) -> None:
        (self.desk.down if is_down else self.desk.up)(usage)
        self.has_modifier = True

    @rule(
        data=st.data(),
        text=st.text("ab ", min_size=1, max_size=30),
        gap_s=st.sampled_from([0.0, 0.01, 0.06]),
        is_answered=st.booleans(),
    )
    def words(self, data: st.DataObject, text: str, gap_s: float, is_answered: bool) -> None:
        if is_answered:
            self.set_mode(ModeName.SUGGEST)
        self.desk.type(text, gap_s)
        if is_answered:
            self._answer_the_newest(data)

    @rule(data=st.data(), question=st.sampled_from(["why", "what"]), is_answered=st.booleans())
    def question(self, data: st.DataObject, question: str, is_answered: bool) -> None:
        self.set_mode(ModeName.CHAT)
        self.desk.type(f"{question}\n", 0.01)
        if is_answered:
            self._answer_the_newest(data)

    @rule(data=st.data(), times=st.integers(1, 3))
    def reaction(self, data: st.DataObject, times: int) -> None:
        self.set_mode(ModeName.REACT)
        for _ in range(times):
            self.desk.press_macro(9)
            self._answer_the_newest(data)

    @rule(number=st.integers(0, 5))
    def macro(self, number: int) -> None:
        self.desk.press_macro(number)
        if number in (0, 2, 3):
            self._give_up()

    @rule(mode=st.sampled_from(list(ModeName)))
    def set_mode(self, mode: ModeName) -> None:
        if mode is not self.desk.state.mode:
            self._give_up()
        self.desk.post(SetMode(mode))

    @rule(
        message=st.sampled_from(
            [
                Ask("why?"),
                Pause(),
                Resume(),
                CancelReply(),
                Forget(),
                EventsDropped(2),
                LinkLost(""),
            ]
        )
    )
    def tell(self, message: Message) -> None:
        if isinstance(message, Pause | CancelReply | Forget):
            self._give_up()
        self.desk.post(message)

    @rule(size=st.sampled_from(SIZES))
    def connect(self, size: tuple[int, int]) -> None:
        self.desk.post(LinkReady(board(*size)))
        self.columns = size[0] or self.columns
        self.desk.keyboard.columns = self.columns

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.1, 5.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.desk.advance(seconds)
        if seconds > 300:
            self._give_up()

    @rule(data=st.data(), cancelled=st.booleans())
    def answer(self, data: st.DataObject, cancelled: bool) -> None:
        """Any of the last requests, in any order and more than once: also those given up long ago."""
        commands = [c for c in self.desk.engine.commands if not isinstance(c, Cancel)]
        if commands:
            self._answer(data, data.draw(st.sampled_from(commands[-6:])), cancelled)

    @rule(data=st.data())
    def answer_the_newest(self, data: st.DataObject) -> None:
        self._answer_the_newest(data)

    @rule(then=st.sampled_from([EngineState.LOADING, EngineState.READY, EngineState.FAILED]))
    def engine_dies_or_comes_back(self, then: EngineState) -> None:
        if self.is_up:
            if not any(c.request in self.finished for c in self._chats()[-1:]):
                self._give_up()  # the reply that was under way; a whole one stays
            for command in self.desk.engine.commands:
                if not isinstance(command, Cancel) and command.request not in self.ended:
                    self.ended.add(command.request)
                    self.desk.post(
                        Failed(request=command.request, code="engine-died", message="it ended")
                    )
            self.desk.engine_is(EngineState.RESTARTING, "it was killed")
        self.desk.engine_is(then)
        self.is_up = then is EngineState.READY

    has_modifier = False

    def _answer_the_newest(self, data: st.DataObject) -> None:
        commands = [c for c in self.desk.engine.commands if not isinstance(c, Cancel)]
        if commands:
            self._answer(data, commands[-1], cancelled=False)

    def _give_up(self) -> None:
        self.given_up = len(self._chats())

    def _chats(self) -> list[Chat]:
        return [c for c in self.desk.engine.commands if isinstance(c, Chat)]

    def _answer(self, data: st.DataObject, command: EngineCommand, cancelled: bool) -> None:
        n = command.request
        match command:
            case Suggest():
                self.desk.post(suggestions(n, (f"S{n}s", 0.5), cancelled=cancelled))
            case Chat() if data.draw(st.booleans()):
                self.desk.post(ReplyGrew(request=n, text=f"R{n}r "))
            case Chat():
                self.finished.add(n)
                reason = "cancelled" if cancelled else "stop"
                self.desk.post(
                    ReplyFinished(
                        request=n, reason=reason, tokens=1, first_token_ms=1, milliseconds=1
                    )
                )
            case Choose():
                label = data.draw(st.sampled_from(LABELS))
                self.desk.post(
                    LabelChosen(
                        request=n, label=label, probability=1, milliseconds=1, cancelled=cancelled
                    )
                )
            case EngineForget():
                self.desk.post(Forgotten(request=n))

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def no_handler_raised(self) -> None:
        assert self.desk.state.error == ""

    @invariant()
    def no_timer_is_overdue(self) -> None:
        wait_s = self.desk.companion.wait_s()
        assert wait_s is None or wait_s > 0

    @invariant()
    def candidates_are_of_the_text_as_it_is(self) -> None:
        for number in self._seen(SUGGESTED):
            asked = [c for c in self.desk.engine.commands if c.request == number]
            assert self.desk.state.mode is ModeName.SUGGEST
            assert asked[0].text == self.desk.companion._machine._desk.context.text
            assert Cancel(request=number) not in self.desk.engine.commands
            assert number not in self.ended

    @invariant()
    def a_reply_is_of_the_last_question(self) -> None:
        for number in self._seen(REPLIED):
            assert self.desk.state.mode is ModeName.CHAT
            assert [c.request for c in self._chats()[self.given_up :]][-1:] == [number]

    @invariant()
    def a_pause_holds_and_shows_nothing(self) -> None:
        if self.desk.state.is_paused and self.desk.state.lines:
            assert self.desk.picture.startswith("|paused"[: self.columns])
            assert len(self.desk.companion._machine._desk.context) == 0
            assert self.desk.state.reply == ""

    @invariant()
    def moods_change_at_most_once_a_second(self) -> None:
        if self.desk.state.mode is ModeName.REACT and self.desk.state.reply:
            mood = self.desk.state.reply
            if not self.moods or self.moods[-1][1] != mood:
                self.moods.append((self.desk.clock.now, mood))
        for (before, _), (after, _) in itertools.pairwise(self.moods):
            assert after - before >= 1.0

    @invariant()
    def no_more_is_open_than_the_engine_takes(self) -> None:
        assert len(self.desk.companion._machine._modes.suggest._open) <= 8

    def _seen(self, marker: re.Pattern[str]) -> list[int]:
        return [int(n) for line in self.desk.state.lines for n in marker.findall(line)]


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = hypothesis_settings(
    max_examples=80, stateful_step_count=50, deadline=None
)
