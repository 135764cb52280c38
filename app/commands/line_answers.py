# SPDX-License-Identifier: Apache-2.0
"""`thock run --stdin`: each line is typed on a virtual keyboard, its whole answer is printed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from app.commands.speech import in_words
from app.companion.state import CompanionState
from app.settings import ModeName
from engine.client import EngineState
from engine.texts import Text, as_text
from firmware_bridge.keys.layout import Layout
from firmware_bridge.keys.typist import KeyStroke, keys_for
from firmware_bridge.keys.usage import Usage
from firmware_bridge.transport.virtual import VirtualKeyboard

_QUIET_S = 0.5  # an answer that stood this long is the whole answer
_BEGIN_S = 5.0  # react asks after a pause of a second; nothing else waits before it is under way
_LOOK_S = 0.2  # between two looks at `stop` while waiting
_KEY_S = 0.005  # between two actions; faster than any person, slower than a full ring


class LineAnswers:
    """A subscriber of the companion, and a thread of its own that types. `failed` once it is over."""

    def __init__(
        self,
        keyboard: VirtualKeyboard,
        layout: Layout,
        say: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        """`say` prints an answer; when it raises OSError (nobody reads) everything is stopped."""
        self._keyboard = keyboard
        self._layout = layout
        self._say = say
        self._stop = stop
        self._state: CompanionState | None = None
        self._changed = threading.Condition()
        self.failed = False

    def __call__(self, state: CompanionState) -> None:
        """The companion's newest state."""
        with self._changed:
            self._state = state
            self._changed.notify_all()

    def run(self, lines: Iterable[str]) -> None:
        """Type all lines, say all answers, then set `stop`."""
        try:
            if self._wait(self._is_ready):
                for number, line in enumerate(lines, start=1):
                    self._answer(number, line.rstrip("\r\n"))
            else:
                self.failed = True
        except OSError:
            self.failed = True  # the reader of the answers is gone
        finally:
            self._stop.set()

    def _answer(self, number: int, line: str) -> None:
        if not line.strip() or self._stop.is_set():
            return
        try:
            strokes = keys_for(line, self._layout)
        except ValueError as error:
            self.failed = True
            self._say(
                in_words(
                    Text("line {number}: {error}; it was not typed.", number=number, error=error)
                )
            )
            return
        state = self._state
        assert state is not None  # it was ready
        asked = state.answered
        if state.mode is not ModeName.SUGGEST:
            strokes += keys_for("\n", self._layout)
        for stroke in strokes:
            self._press(stroke)
        self._wait(lambda s: s.is_busy or s.answered > asked, _BEGIN_S)
        while self._wait(lambda s: not s.is_busy) and self._wait(lambda s: s.is_busy, _QUIET_S):
            pass
        if not self._stop.is_set():
            self._say(self._whole_answer(asked))
        if state.mode is ModeName.SUGGEST:
            # An arrow ends the run of typing: the next line is another text.
            self._press(KeyStroke(Usage.RIGHT))

    def _press(self, stroke: KeyStroke) -> None:
        for usage, pressed in stroke.actions():
            (self._keyboard.press if pressed else self._keyboard.release)(usage)
            time.sleep(_KEY_S)

    def _whole_answer(self, asked: int) -> str:
        """The reply in full, not only the page that the display shows; suggestions as they stand there."""
        state = self._state
        assert state is not None
        if state.answered <= asked:
            # An empty reply, a refused request, or an engine that died.
            self.failed = True
            reason = state.engine_detail or state.error or Text("the model said nothing")
            return in_words(Text("no answer: {reason}", reason=as_text(reason)))
        if state.mode is ModeName.SUGGEST:
            return "\n".join(row.rstrip() for row in state.lines[1:] if row.strip())
        return state.reply

    def _wait(self, done: Callable[[CompanionState], bool], timeout_s: float | None = None) -> bool:
        """Until `done`; False after `timeout_s`, when the engine gave up or everything stops."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not self._stop.is_set():
                state = self._state
                if state is not None and done(state):
                    return True
                if state is not None and state.engine is EngineState.FAILED:
                    return False
                left = _LOOK_S if deadline is None else min(_LOOK_S, deadline - time.monotonic())
                if left <= 0:
                    return False
                self._changed.wait(left)
        return False

    @staticmethod
    def _is_ready(state: CompanionState) -> bool:
        return state.engine is EngineState.READY and state.keyboard is not None
