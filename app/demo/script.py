# SPDX-License-Identifier: Apache-2.0
"""Scripts for `thock demo --script`: one step a line.

# comment                       empty lines and comments are skipped
speed 60                        words a minute from here on
mode suggest | chat | react     the mode, through the Mode key of the board
type The quick brown            keys, with the gaps of a person; the rest of the line as it is
key enter | escape | backspace | tab | left | right | home | end
key ctrl+backspace              modifiers: ctrl, shift, alt, gui
press ask | pause | cancel      a companion key
wait suggestion 5               until a new suggestion stands on the OLED, at most 5 s
wait reply 30                   until a whole reply was shown
wait mood 10                    until a mood was shown
wait idle 5                     until nothing is under way
sleep 0.5                       seconds
show                            print the OLED
expect TEXT                     the OLED must show TEXT now, else the script fails; a text of Thock's own
                                may be told in English, whatever language the OLED speaks
kill engine                     SIGKILL to the engine child, to see that it comes back
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from engine.texts import Text


class ScriptError(ValueError):
    """A line of a script cannot be understood; the message names the line."""


class Step(enum.Enum):
    """What a line does."""

    SPEED = "speed"
    MODE = "mode"
    TYPE = "type"
    KEY = "key"
    PRESS = "press"
    WAIT = "wait"
    SLEEP = "sleep"
    SHOW = "show"
    EXPECT = "expect"
    KILL = "kill"


class Awaited(enum.Enum):
    """What `wait` waits for."""

    SUGGESTION = "suggestion"
    REPLY = "reply"
    MOOD = "mood"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Line:
    """One step; `text` or `number` as the step needs."""

    line: int
    step: Step
    text: str = ""
    number: float = 0.0


_WORDS = {
    Step.MODE: ("suggest", "chat", "react"),
    Step.PRESS: ("mode", "ask", "pause", "cancel"),
    Step.KILL: ("engine",),
}
_NUMBER_LIMITS = {Step.SPEED: (1.0, 1000.0), Step.SLEEP: (0.0, 3600.0)}
_LONGEST_WAIT_S = 600.0


def parse_script(text: str) -> list[Line]:
    """All steps of a script.

    Raises:
        ScriptError: naming the line and what is allowed there.
    """
    lines = []
    for number, raw in enumerate(text.splitlines(), start=1):
        stripped = raw.strip()
        if stripped and not stripped.startswith("#"):
            lines.append(_parse_line(number, raw.lstrip()))
    return lines


def _parse_line(number: int, raw: str) -> Line:
    word, _, rest = raw.partition(" ")
    try:
        step = Step(word.strip())
    except ValueError:
        known = ", ".join(s.value for s in Step)
        raise _refused(
            number, Text("{word!r} is no step; steps are {known}", word=word.strip(), known=known)
        ) from None
    if step is Step.TYPE:
        if not rest:
            raise _refused(number, Text("type needs a text"))
        return Line(number, step, rest)
    rest = rest.strip()
    if step in _NUMBER_LIMITS:
        return Line(number, step, number=_number(number, rest, *_NUMBER_LIMITS[step]))
    if step is Step.WAIT:
        what, _, limit = rest.partition(" ")
        if what not in {a.value for a in Awaited}:
            known = ", ".join(a.value for a in Awaited)
            raise _refused(number, Text("wait for one of {known}", known=known))
        return Line(number, step, what, _number(number, limit or "10", 0.0, _LONGEST_WAIT_S))
    if step in _WORDS and rest not in _WORDS[step]:
        known = ", ".join(_WORDS[step])
        raise _refused(number, Text("{step} takes one of {known}", step=step.value, known=known))
    if step is not Step.SHOW and not rest:
        raise _refused(number, Text("{step} needs something after it", step=step.value))
    return Line(number, step, rest)


def _number(line: int, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise _refused(line, Text("{text!r} is no number", text=text)) from None
    if not low <= value <= high:
        raise _refused(
            line,
            Text(
                "a number from {low:g} to {high:g} is wanted, not {number:g}",
                low=low,
                high=high,
                number=value,
            ),
        )
    return value


def _refused(line: int, reason: Text) -> ScriptError:
    return ScriptError(Text("line {line}: {reason}", line=line, reason=reason))
