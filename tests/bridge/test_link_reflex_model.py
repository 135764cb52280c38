# SPDX-License-Identifier: Apache-2.0
"""Reflexes of a companion that learns of keys late: no picture is shown to a key that it was not made for."""

from __future__ import annotations

import re

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import EventsDropped, KeyPressed
from firmware_bridge.keys.usage import Usage
from firmware_bridge.link_reflex import Reflex
from tests.helpers.reflex_lab import ASK, ENTER, ReflexLab


class Reflexes(RuleBasedStateMachine):
    """A slow companion: it learns of keys late, and sets reflexes for what it knows by then.

    A text is R, the number of the epoch, and the number of keys before the trigger.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lab = ReflexLab()
        self.learned = len(self.lab.told)
        self.known = 0  # keys that the companion has learned of
        self.pressed = 0  # keys that were pressed
        self.asked_at: set[int] = set()  # numbers of keys before each trigger
        self.epoch = 0

    @rule(usage=st.sampled_from([Usage.A, Usage.B]), is_down=st.booleans())
    def key(self, usage: int, is_down: bool) -> None:
        if is_down and self.lab.keyboard.press(usage):
            self.pressed += 1
        elif not is_down:
            self.lab.keyboard.release(usage)

    @rule(is_macro=st.booleans())
    def trigger(self, is_macro: bool) -> None:
        self.asked_at.add(self.pressed)
        if is_macro:
            self.lab.keyboard.macro(ASK)
        else:
            self.lab.keyboard.press(Usage.ENTER)

    @rule(count=st.integers(1, 5))
    def turns(self, count: int) -> None:
        self.lab.turns(count)

    @rule(count=st.integers(1, 4))
    def learn(self, count: int) -> None:
        for event in self.lab.told[self.learned : self.learned + count]:
            self.learned += 1
            if isinstance(event, KeyPressed) and event.keycode != Usage.ENTER:
                self.known += 1
            elif isinstance(event, EventsDropped):
                self.known = self.pressed = 10_000 * (self.epoch + 1)  # nothing is known any more
                self.change()

    @rule()
    def expect(self) -> None:
        after = self.lab.told[self.learned - 1]
        self.lab.link.set_reflex(
            Reflex(TextFrame((f"R{self.epoch}.{self.known}",)), ENTER, frozenset({ASK}), after)
        )

    @rule()
    def change(self) -> None:
        """A pause, another mode: the reflex is taken back, and something else is shown."""
        self.lab.link.set_reflex(None)
        self.epoch += 1
        self.lab.link.show(TextFrame((f"C{self.epoch}",)))

    @rule(seconds=st.sampled_from([0.001, 0.06]))
    def wait(self, seconds: float) -> None:
        self.lab.now += seconds

    @rule(learned=st.integers(0, 3))
    def expect_soon(self, learned: int) -> None:
        """The companion is quick, or some events behind."""
        self.lab.now += 0.2
        self.lab.turns(12)
        self.learn(max(len(self.lab.told) - self.learned - learned, 0))
        self.expect()
        self.lab.turns(4)

    @rule(learned=st.integers(0, 2), is_replaced=st.booleans(), turns=st.integers(0, 2))
    def another_key_comes(self, learned: int, is_replaced: bool, turns: int) -> None:
        self.expect_soon(learned)
        if is_replaced:
            self.lab.meanwhile += [self.change, self.expect, lambda: self.trigger(True)]
        else:
            self.lab.turns(turns)
            self.key(Usage.A, True)
        self.lab.turns(3)

    @rule()
    def ready_reply(self) -> None:
        """Everything is learned, expected, asked: what happens nearly always."""
        self.expect_soon(0)
        self.lab.texts.clear()
        self.trigger(False)
        self.lab.turns(1)
        texts = self.lab.last_texts()
        assert texts in ([f"R{self.epoch}.{self.known}"], []), "nothing if it stood there already"

    @invariant()
    def what_is_shown_was_asked(self) -> None:
        for text, _ in self.lab.texts:
            if match := re.fullmatch(r"R(\d+)\.(\d+)", text):
                assert int(match[2]) in self.asked_at
        self.lab.texts.clear()

    @invariant()
    def what_was_replaced_does_not_come_back(self) -> None:
        wanted = self.lab.link._output.display._wanted[0]
        if wanted is not None and isinstance(wanted.frame, TextFrame):
            text = wanted.frame.rows[0]
            assert re.fullmatch(rf"C{self.epoch}|R{self.epoch}\.\d+", text), text


TestReflexes = Reflexes.TestCase
TestReflexes.settings = hypothesis_settings(max_examples=120, stateful_step_count=40, deadline=None)
