# SPDX-License-Identifier: Apache-2.0
"""An engine of invented answers in invented time: each comes `DELAY_S` after its command, unless cancelled.

The same question has the same answer, so that a day that is played twice looks the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from engine.messages import (
    Cancel,
    Candidate,
    Chat,
    Choose,
    Complete,
    Event,
    Forget,
    Forgotten,
    LabelChosen,
    Prepare,
    Prepared,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
    Suggest,
    SuggestionsReady,
)

DELAY_S = 0.03
_WORDS = ("the", "time", "people", "water", "morning", "question", "letter", "music", "work", "you")
_REPLIES = {
    "why is the sky blue?": "Light is scattered by the air, and blue light most of all; so the sky looks blue "
    "from every side, and red where the sun goes down.",
    "fix my loop": "Where does it end, and what did you expect there?",
    "hello": "你好！天空看起来是蓝色的，因为空气把蓝光散射得最多（Rayleigh scattering）。今天也请多喝水。",
}


class DayEngine:
    """The companion's engine port. `due(now)` gives the events whose time has come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: list[tuple[float, Event]] = []
        self.asked: list[str] = []

    def send(self, command: Suggest | Chat | Complete | Prepare | Choose | Forget | Cancel) -> None:
        """Answer later."""
        self.asked.append(command.type)
        at = self._clock() + DELAY_S
        match command:
            case Suggest():
                self._waiting.append((at, _suggestions(command)))
            case Prepare(request=request, context=context, ask=ask):
                text = self._reply(ask)
                first = text[: max(len(text) // 8, 1)]
                is_whole = first == text
                ready = ReplyReady(
                    request=request, context=context, text=first, tokens=[len(first)],
                    is_whole=is_whole,
                )  # fmt: skip
                self._waiting.append((at, ready))
                self._waiting.append((at, Prepared(request=request, computed=9, wasted=3)))
            case Chat(request=request) | Complete(request=request):
                text = self._reply(command)
                begun = sum(command.begun)  # a token is so many characters
                pieces = [text[i : i + 12] for i in range(begun, len(text), 12)]
                for number, piece in enumerate(pieces):
                    grown = ReplyGrew(request=request, text=piece)
                    self._waiting.append((at + number * DELAY_S, grown))
                self._waiting.append((at + len(pieces) * DELAY_S, _finished(request, "stop")))
            case Choose(request=request, labels=labels, turns=turns):
                number = _number(turns[-1].content)
                chosen = LabelChosen(
                    request=request, label=labels[number % len(labels)],
                    probability=0.4 + number % 6 / 10, milliseconds=12,
                )  # fmt: skip
                self._waiting.append((at, chosen))
            case Forget(request=request):
                self._waiting.append((at, Forgotten(request=request)))
            case Cancel(request=request):
                self._cancel(request)

    def due(self, now: float) -> list[Event]:
        """Take the events of up to `now`, in order."""
        due = [event for at, event in self._waiting if at <= now]
        self._waiting = [(at, event) for at, event in self._waiting if at > now]
        return due

    def die(self) -> None:
        """Nothing that waits is answered."""
        self._waiting.clear()

    def _reply(self, ask: Chat | Complete) -> str:
        text = ask.turns[-1].content if isinstance(ask, Chat) else ask.text
        return _REPLIES.get(text, "Yes.")

    def _cancel(self, request: int) -> None:
        """What is under way ends cancelled, and says so."""
        mine = [event for _, event in self._waiting if getattr(event, "request", None) == request]
        self._waiting = [(at, event) for at, event in self._waiting if event not in mine]
        ended = mine[-1] if mine else None
        now = self._clock()
        match ended:
            case ReplyFinished():
                self._waiting.append((now, _finished(request, "cancelled")))
            case SuggestionsReady() | LabelChosen() | Prepared():
                self._waiting.append((now, ended.model_copy(update={"cancelled": True})))


def _suggestions(command: Suggest) -> SuggestionsReady:
    stem = (
        ""
        if command.text[-1:].isspace()
        else command.text.split()[-1:] and command.text.split()[-1]
    )
    known = [word[len(stem) :] for word in _WORDS if word.startswith(stem) and word != stem]
    if not known:
        start = _number(command.text) % len(_WORDS)
        known = [" " + word for word in (_WORDS + _WORDS)[start : start + command.count]]
    if command.words > 1:
        known = [word + " of the day" for word in known]
    return SuggestionsReady(
        request=command.request,
        candidates=[
            Candidate(text=text, probability=0.5 / (place + 1))
            for place, text in enumerate(known[: command.count])
        ],
        reused=5, computed=1, milliseconds=12,
    )  # fmt: skip


def _finished(request: int, reason: str) -> ReplyFinished:
    return ReplyFinished.model_validate(
        {
            "request": request,
            "reason": reason,
            "tokens": 9,
            "first_token_ms": 12,
            "milliseconds": 99,
        }
    )


def _number(text: str) -> int:
    return zlib.crc32(text.encode())
