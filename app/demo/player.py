# SPDX-License-Identifier: Apache-2.0
"""Plays a script on a DemoStation and reports what a person would have seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from app.companion.macros import MacroKey
from app.companion.state import CompanionState
from app.demo.blocks import BlockStyle, draw, framed
from app.demo.rhythm import TypingRhythm
from app.demo.script import Awaited, Line, Step
from app.demo.station import DemoStation
from app.i18n import Catalog, adopted, told, translation
from app.settings import ModeName
from engine.client import EngineState
from engine.texts import Text
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import KeyStroke, keys_for
from firmware_bridge.keys.usage import Usage

READY_TIMEOUT_S = 120.0
_SETTLE_S = 2.0  # for the last keys to arrive, and for a mode change to show
_DISPLAY_LAG_S = 0.12  # the link updates a display 20 times a second at most
_QUIET_S = 0.15  # longer than the pause after which suggest mode asks again

_KEYS = {
    "enter": Usage.ENTER,
    "escape": Usage.ESCAPE,
    "backspace": Usage.BACKSPACE,
    "tab": Usage.TAB,
    "left": Usage.LEFT,
    "right": Usage.RIGHT,
    "home": Usage.HOME,
    "end": Usage.END,
}
_MODIFIERS = {
    "ctrl": Usage.LEFT_CONTROL,
    "shift": Usage.LEFT_SHIFT,
    "alt": Usage.LEFT_ALT,
    "gui": Usage.LEFT_GUI,
}
_PRESSES = {
    "mode": MacroKey.NEXT_MODE,
    "ask": MacroKey.ASK,
    "pause": MacroKey.PAUSE,
    "cancel": MacroKey.CANCEL,
}
_AWAITED_MODE = {
    Awaited.SUGGESTION: ModeName.SUGGEST,
    Awaited.REPLY: ModeName.CHAT,
    Awaited.MOOD: ModeName.REACT,
}


@dataclass(slots=True)
class Outcome:
    """`failures` is empty when every step did what it should."""

    steps: int = 0
    failures: list[Text] = field(default_factory=list)


class ScriptPlayer:
    """Runs the lines in order; `say` gets each line of output, in the language of the station's settings."""

    def __init__(self, station: DemoStation, style: BlockStyle, say: Callable[[str], None]) -> None:
        self._station = station
        self._style = style
        self._say = say
        language = station.options.settings.language
        self._tr = translation(language, Catalog.MESSAGES)
        self._display_tr = translation(language, Catalog.COMPANION)
        self._layout = load_layout(station.options.settings.layout)
        self._rhythm = TypingRhythm(60)
        self._line = 0
        self._answered = 0
        self._outcome = Outcome()

    def play(self, lines: list[Line]) -> Outcome:
        """All steps, then the checks that hold for every script: no key lost or out of order."""
        station = self._station
        ready = station.wait_until(
            lambda s: (
                s.engine in (EngineState.READY, EngineState.FAILED) and s.keyboard is not None
            ),
            READY_TIMEOUT_S,
        )
        if not ready or station.state.engine is EngineState.FAILED:
            detail = station.state.engine_detail
            reason = adopted(detail) if detail else Text("no answer")
            self._fail(Text("the engine did not start: {reason}", reason=reason))
            return self._outcome
        note = Text("{model} is ready", model=station.state.model)
        if station.state.engine_detail:
            note = Text("{line} ({detail})", line=note, detail=adopted(station.state.engine_detail))
        self._say(told(self._tr, note))
        for line in lines:
            self._line = line.line
            self._play(line)
            self._outcome.steps += 1
        self._check_keys()
        return self._outcome

    def _play(self, line: Line) -> None:
        match line.step:
            case Step.SPEED:
                self._rhythm = TypingRhythm(line.number, seed=line.line)
            case Step.MODE:
                self._change_mode(ModeName(line.text))
            case Step.TYPE:
                self._say(f"> {line.text}")
                self._type(line.text)
            case Step.KEY:
                self._press_named(line.text)
            case Step.PRESS:
                self._station.keyboard.macro(_PRESSES[line.text])
            case Step.WAIT:
                self._wait(Awaited(line.text), line.number)
            case Step.SLEEP:
                time.sleep(line.number)
            case Step.SHOW:
                self._show()
            case Step.EXPECT:
                self._expect(line.text)
            case Step.KILL:
                self._kill_engine()

    def _type(self, text: str) -> None:
        try:
            strokes = keys_for(text, self._layout)
        except ValueError as error:
            self._fail(adopted(str(error)))
            return
        due = time.monotonic()
        for stroke, gap in zip(strokes, self._rhythm.gaps(text), strict=True):
            due += gap
            time.sleep(max(0.0, due - time.monotonic()))
            self._station.stroke(stroke, min(self._rhythm.hold_s, gap))

    def _press_named(self, name: str) -> None:
        *modifiers, key = name.split("+")
        if key not in _KEYS or not all(m in _MODIFIERS for m in modifiers):
            self._fail(Text("no key {name!r}; keys are {known}", name=name, known=", ".join(_KEYS)))
            return
        held = [_MODIFIERS[m] for m in modifiers]
        for usage in held:
            self._station.key(usage, True)
        self._station.stroke(KeyStroke(_KEYS[key]), self._rhythm.hold_s)
        for usage in reversed(held):
            self._station.key(usage, False)

    def _change_mode(self, mode: ModeName) -> None:
        for _ in ModeName:
            if self._station.state.mode is mode:
                return
            if not self._press_mode_key():
                break
        if self._station.state.mode is not mode:
            self._fail(Text("mode {mode} was not reached", mode=Text(mode.value)))

    def _press_mode_key(self) -> bool:
        """Whether the mode changed."""
        before = self._station.state.mode
        self._station.keyboard.macro(MacroKey.NEXT_MODE)
        return self._station.wait_until(lambda s: s.mode is not before, _SETTLE_S)

    def _wait(self, awaited: Awaited, timeout_s: float) -> None:
        """Wait for an answer that came after the last `wait`, and stood for a moment."""
        mode = _AWAITED_MODE.get(awaited)

        def done(state: CompanionState) -> bool:
            if state.is_busy:
                return False
            return mode is None or (state.mode is mode and state.answered > self._answered)

        deadline = time.monotonic() + timeout_s
        self._wait_for_keys()
        while (left := deadline - time.monotonic()) > 0:
            if not self._station.wait_until(done, left):
                break
            if not self._station.wait_until(lambda s: not done(s), _QUIET_S):
                self._answered = self._station.state.answered
                return
        self._fail(
            Text(
                "no {awaited} within {seconds:g} s ({state})",
                awaited=Text(awaited.value),
                seconds=timeout_s,
                state=Text(self._station.state.status.name.lower()),
            )
        )

    def _wait_for_keys(self) -> None:
        """Until the companion has got every key, or some were lost."""
        deadline = time.monotonic() + _SETTLE_S
        while len(self._station.heard) < len(self._station.typed) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _show(self) -> None:
        time.sleep(_DISPLAY_LAG_S)
        state = self._station.state
        picture = draw(self._station.keyboard.panel(), self._style)
        title = (Text(state.mode.value), Text(state.status.name.lower()))
        self._say("\n".join(framed(picture, " · ".join(told(self._tr, part) for part in title))))

    def _expect(self, text: str) -> None:
        wanted = (text, told(self._display_tr, text))

        def done(state: CompanionState) -> bool:
            lines = " ".join(" ".join(state.lines).split())
            return any(each in lines for each in wanted)

        shown = self._station.wait_until(done, _SETTLE_S)
        if not shown:
            rows = " / ".join(row.strip() for row in self._station.state.lines if row.strip())
            self._fail(Text("the OLED does not show {text!r} but {rows!r}", text=text, rows=rows))

    def _kill_engine(self) -> None:
        pid = self._station.engine.pid
        if pid is None:
            self._fail(Text("there is no engine child to kill"))
            return
        psutil.Process(pid).kill()
        if not self._station.wait_until(lambda s: s.engine is not EngineState.READY, _SETTLE_S):
            self._fail(Text("the companion did not notice that the engine died"))

    def _check_keys(self) -> None:
        station = self._station
        self._wait_for_keys()
        if station.heard != station.typed:
            self._fail(
                Text(
                    "{pressed} keys were pressed, {arrived} arrived in order",
                    pressed=len(station.typed),
                    arrived=len(station.heard),
                )
            )
        if station.state.dropped:
            self._fail(Text("{count} key events were dropped", count=station.state.dropped))

    def _fail(self, reason: Text) -> None:
        failure = Text("line {line}: {reason}", line=self._line, reason=reason)
        self._outcome.failures.append(failure)
        self._say(told(self._tr, Text("FAILED {failure}", failure=failure)))
