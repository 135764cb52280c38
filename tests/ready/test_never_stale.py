# SPDX-License-Identifier: Apache-2.0
"""Whatever happens in whatever order, a ready reply is shown to the question that it answers, and to no other.

The engine of this test writes the question that it answers into each ready reply, in letters that nobody
types. So the display tells whose reply it shows.
"""

from __future__ import annotations

import re

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.companion.messages import (
    CancelReply,
    Configure,
    FocusChanged,
    Forget,
    Message,
    Pause,
    Resume,
    SetMode,
)
from app.settings import ChatSettings, ModeName, Settings
from engine.client import EngineState
from engine.messages import (
    Cancel,
    Chat,
    Failed,
    Prepare,
    Prepared,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
)
from firmware_bridge.events import (
    CaptureEnded,
    CaptureStarted,
    EventsDropped,
    KeyPressed,
    LinkLost,
    LinkReady,
    MacroTriggered,
)
from firmware_bridge.keys.usage import Usage
from tests.helpers.companion import Desk, board

KEYS = [Usage.A, Usage.B, Usage.SPACE, Usage.BACKSPACE, Usage.ESCAPE, Usage.TAB]
TRIGGERS = [Usage.ENTER, Usage.KEYPAD_ENTER, None]  # None: the ask key
MODIFIERS = [Usage.LEFT_SHIFT, Usage.LEFT_CONTROL]
ASK = 1
MARK = re.compile(r"\[(\w+)\]")
LETTERS = str.maketrans("ab ", "XYZ")


def marked(ask: Chat) -> str:
    """A reply that tells the question."""
    return f"[{ask.turns[-1].content.translate(LETTERS)}]"


class NeverStale(RuleBasedStateMachine):
    """One desk in chat mode. `asked` is the question at the last trigger, as this test counts it."""

    def __init__(self) -> None:
        super().__init__()
        chat = ChatSettings(question_chars=24)
        self.desk = Desk(Settings(mode=ModeName.CHAT, chat=chat), columns=40, rows=4, ahead=True)
        self.begun: dict[int, list[int]] = {}
        self.ended: set[int] = set()
        self.is_capturing = False
        self.asked: str | None = None
        self.is_up = True

    @initialize()
    def begin(self) -> None:
        self.desk.keyboard.columns = 40

    # ---------------------------------------------------------------- what may happen

    @rule(usage=st.sampled_from(KEYS), times=st.integers(1, 3))
    def key(self, usage: int, times: int) -> None:
        for _ in range(times):
            self.desk.press(usage)

    @rule(text=st.text("ab ", min_size=1, max_size=6), gap_s=st.sampled_from([0.0, 0.01, 0.3]))
    def words(self, text: str, gap_s: float) -> None:
        self.desk.type(text, gap_s)

    @rule(usage=st.sampled_from(MODIFIERS), is_down=st.booleans())
    def modifier(self, usage: int, is_down: bool) -> None:
        (self.desk.down if is_down else self.desk.up)(usage)

    @rule(is_begun=st.booleans())
    def capture(self, is_begun: bool) -> None:
        """The keyboard holds keys back for a question, in whatever mode."""
        now = self.desk.clock.now
        kind = CaptureStarted if is_begun else CaptureEnded
        self.is_capturing = is_begun
        self.desk.post(kind(int(now * 1000) & 0xFFFF, now))

    @rule(usage=st.sampled_from(TRIGGERS), is_held=st.booleans())
    def trigger(self, usage: int | None, is_held: bool) -> None:
        """What a reflex would show is what the companion shows; and no engine is asked on the way."""
        event = self._event(usage)
        reflex = self.desk.keyboard.reflex
        hits = self.desk.state.ready.hits
        commands = len(self.desk.engine.commands)
        question = self._question()
        if reflex is not None:
            kinds = reflex.macros if usage is None else reflex.keys
            assert reflex.after is self.desk.companion._machine._newest_event
        self.desk.post(event)
        is_hit = self.desk.state.ready.hits > hits
        if reflex is not None and (ASK if usage is None else usage) in kinds:
            assert is_hit
            assert self.desk.keyboard.frame == reflex.frame
        if is_hit:
            asked = self.desk.engine.commands[commands:]
            assert not [c for c in asked if not isinstance(c, Cancel)]
            assert self._shown() == {question}
        if question and not self._question():
            self.asked = question
        if usage is not None and not is_held:
            self.desk.up(usage)

    @rule(which=st.integers(0, 5), count=st.integers(1, 3), is_whole=st.booleans())
    def ready(self, which: int, count: int, is_whole: bool) -> None:
        """The engine tells of a Prepare: of the newest, or of one of long ago, and once more."""
        prepares = [c for c in self.desk.engine.commands if isinstance(c, Prepare)]
        if prepares:
            prepare = prepares[-1 - which % len(prepares)]
            assert isinstance(prepare.ask, Chat)
            self.desk.post(
                ReplyReady(
                    request=prepare.request,
                    context=prepare.context,
                    text=marked(prepare.ask) + " x" * (count - 1),
                    tokens=list(range(count)),
                    is_whole=is_whole,
                )
            )

    @rule(
        text=st.text("ab", min_size=1, max_size=4),
        count=st.integers(1, 3),
        is_whole=st.booleans(),
        usage=st.sampled_from(TRIGGERS),
        is_asked=st.booleans(),
    )
    def question_with_ready_reply(
        self, text: str, count: int, is_whole: bool, usage: int | None, is_asked: bool
    ) -> None:
        self.desk.type(text, 0.01)
        self.ready(0, count, is_whole)
        if is_asked:
            self.trigger(usage, False)

    @rule()
    def all_is_well(self) -> None:
        """So that not every run ends in a state in which nothing can be asked."""
        self.engine(True)
        for message in (Resume(), SetMode(ModeName.CHAT)):
            self.tell(message)
        for usage in MODIFIERS:
            self.desk.up(usage)

    @rule(which=st.integers(0, 5), computed=st.integers(0, 9))
    def prepared(self, which: int, computed: int) -> None:
        if (number := self._last_event(which)) is not None:
            self.desk.post(Prepared(request=number, computed=computed, wasted=computed // 2))

    @rule(which=st.integers(0, 5))
    def prepare_fails(self, which: int) -> None:
        if (number := self._last_event(which)) is not None:
            self.desk.post(Failed(request=number, code="context-overflow", message="too long"))

    def _last_event(self, which: int) -> int | None:
        """A Prepare that ends now, and only once."""
        commands = self.desk.engine.commands
        numbers = [c.request for c in commands if isinstance(c, Prepare)]
        numbers = [number for number in numbers if number not in self.ended]
        if not numbers:
            return None
        self.ended.add(numbers[-1 - which % len(numbers)])
        return numbers[-1 - which % len(numbers)]

    @rule(is_last=st.booleans())
    def answer(self, is_last: bool) -> None:
        """The engine goes on with the reply that was asked for last, with the same mark."""
        chats = [c for c in self.desk.engine.commands if isinstance(c, Chat)]
        if chats and is_last:
            number = chats[-1].request
            self.desk.post(
                ReplyFinished(
                    request=number, reason="stop", tokens=1, first_token_ms=1, milliseconds=1
                )
            )
        elif chats:
            self.desk.post(ReplyGrew(request=chats[-1].request, text=f" {marked(chats[-1])}"))

    @rule(
        message=st.sampled_from(
            [
                SetMode(ModeName.SUGGEST),
                SetMode(ModeName.CHAT),
                SetMode(ModeName.CHAT),
                Pause(),
                Resume(),
                Resume(),
                CancelReply(),
                Forget(),
                FocusChanged(),
                EventsDropped(2),
                LinkLost(""),
                LinkReady(board(40, 4)),
            ]
        )
    )
    def tell(self, message: Message) -> None:
        self.desk.post(message)

    @rule(most=st.sampled_from([50, 60]))
    def configure(self, most: int) -> None:
        changed = self.desk.settings.model_copy(
            update={"chat": ChatSettings(question_chars=24, max_tokens=most)}
        )
        self.desk.post(Configure(changed))

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.5, 3.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.desk.advance(seconds)

    @rule(is_up=st.booleans())
    def engine(self, is_up: bool) -> None:
        self.desk.engine_is(EngineState.READY if is_up else EngineState.RESTARTING)
        if not is_up:
            self.ended |= {c.request for c in self.desk.engine.commands}

    def _event(self, usage: int | None) -> KeyPressed | MacroTriggered:
        now = self.desk.clock.now
        ms = int(now * 1000) & 0xFFFF
        if usage is None:
            return MacroTriggered(ASK, ms, now)
        return KeyPressed(usage, usage >> 4, usage & 15, ms, now, self.is_capturing)

    def _question(self) -> str:
        """What stands typed now, in the letters of the marks."""
        return self.desk.companion._machine._modes.chat.typed.strip().translate(LETTERS)

    def _shown(self) -> set[str]:
        rows = getattr(self.desk.keyboard.frame, "rows", ())
        return {mark for row in rows for mark in MARK.findall(row)}

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def no_handler_raised(self) -> None:
        assert self.desk.state.error == ""

    @invariant()
    def no_timer_is_overdue(self) -> None:
        wait_s = self.desk.companion.wait_s()
        assert wait_s is None or wait_s > 0

    @invariant()
    def a_reply_is_shown_to_its_question_only(self) -> None:
        shown = self._shown()
        assert shown <= {self.asked}
        if shown:
            assert self.desk.state.mode is ModeName.CHAT
            assert not self.desk.state.is_paused

    @invariant()
    def a_reflex_is_for_what_is_typed_now(self) -> None:
        reflex = self.desk.keyboard.reflex
        if reflex is None:
            return
        marks = {m for row in getattr(reflex.frame, "rows", ()) for m in MARK.findall(row)}
        assert marks <= {self._question()}
        assert self.desk.state.mode is ModeName.CHAT
        assert not self.desk.state.is_paused
        assert self.desk.state.engine is EngineState.READY

    @invariant()
    def what_is_shown_is_what_the_engine_goes_on_with(self) -> None:
        for command in self.desk.engine.commands:
            if isinstance(command, Chat) and command.begun:
                held = self.begun.setdefault(command.request, command.begun)
                assert command.begun == held == list(range(len(held)))

    @invariant()
    def little_is_held_and_nothing_after_a_wipe(self) -> None:
        ready = self.desk.companion._machine._desk.ready
        assert len(ready._held) <= 8
        assert len(ready._open) <= 8
        state = self.desk.state
        if state.is_paused or state.mode is not ModeName.CHAT:
            assert not ready._held
            assert ready.expected is None

    @invariant()
    def no_more_is_counted_than_was_told(self) -> None:
        stats = self.desk.state.ready
        assert stats.wasted <= stats.computed


TestNeverStale = NeverStale.TestCase
TestNeverStale.settings = hypothesis_settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
