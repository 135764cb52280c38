# SPDX-License-Identifier: Apache-2.0
"""A canary is typed, asked and answered in every mode, with DEBUG logs and faults on every way out.

It may be seen on the display and in the engine's messages, and nowhere else.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import pytest

import app.companion.modes.chat
import app.companion.modes.react
import app.companion.modes.suggest
from app.companion.context import TypingContext
from app.companion.messages import Ask, EngineChanged, SetMode
from app.companion.modes.base import View
from app.log import OUR_LOGGERS, set_up_logging
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.failures import name_of_error
from engine.messages import LabelChosen, ReplyFinished, ReplyGrew
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.events import EventsDropped
from firmware_bridge.keys.text_events import TextTyped
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status
from tests.helpers.companion import Desk, suggestions

CANARY = "canarybird"


@pytest.fixture
def log_text() -> Iterator[io.StringIO]:
    """All that our loggers say at DEBUG, formatted as for a person, with their arguments."""
    stream = io.StringIO()
    set_up_logging(logging.DEBUG, stream)
    yield stream
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)
    root = logging.getLogger()
    for handler in [h for h in root.handlers if h.get_name() == "thock"]:
        root.removeHandler(handler)


def live_through(desk: Desk, mode: ModeName) -> None:
    """A session in which every kind of message carries the canary."""
    desk.post(SetMode(mode))
    desk.type(CANARY, gap_s=0.05)
    desk.type("\n" + CANARY + "\b\b", gap_s=0.05)
    desk.advance(2)
    for command in list(desk.engine.commands):
        number = getattr(command, "request", 0)
        desk.post(suggestions(number, (CANARY, 0.5)))
        desk.post(ReplyGrew(request=number, text=f"{CANARY} says {CANARY}"))
        desk.post(
            ReplyFinished(request=number, reason="stop", tokens=1, first_token_ms=1, milliseconds=1)
        )
        desk.post(LabelChosen(request=number, label="calm", probability=1, milliseconds=1))
    desk.press_macro(1)
    desk.post(EventsDropped(1))
    desk.post(Ask(f"{CANARY}?"))
    desk.advance(400)


def everything_said(desk: Desk) -> str:
    """What repr shows of all that a debugger, a traceback or a log could get hold of."""
    machine = desk.companion._machine
    objects = [
        desk.companion,
        machine,
        machine._desk,
        machine._desk.context,
        machine._keys._held,
        *machine._modes,
        *desk.states,
        *desk.engine.commands,
        desk.keyboard.frame,
    ]
    return "\n".join(repr(thing) for thing in objects)


@pytest.mark.parametrize("mode", list(ModeName))
def test_no_log_record_and_no_repr_shows_what_was_typed(
    mode: ModeName, log_text: io.StringIO
) -> None:
    desk = Desk()
    live_through(desk, mode)
    shown = "\n".join(desk.take())
    assert CANARY in shown, "the canary was not typed at all"
    assert CANARY not in log_text.getvalue()
    assert CANARY not in everything_said(desk)


FAULTS: dict[str, tuple[type, str]] = {
    "applying an edit": (TypingContext, "apply"),
    "a view": (app.companion.modes.suggest.SuggestMode, "view"),
    "a question": (app.companion.modes.chat.ChatMode, "ask"),
    "an answer": (app.companion.modes.chat.ChatMode, "answered"),
    "a prompt": (app.companion.modes.react.ReactMode, "_turns"),
}


@pytest.mark.expected_log("unexpected ValueError at test_privacy.py")
@pytest.mark.parametrize("fault", list(FAULTS))
def test_an_exception_with_content_in_its_text_is_named_without_it(
    fault: str, log_text: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = FAULTS[fault]
    monkeypatch.setattr(owner, name, raising)
    desk = Desk()
    for mode in ModeName:
        live_through(desk, mode)
    assert "unexpected ValueError at test_privacy.py" in log_text.getvalue()
    assert "raising" in log_text.getvalue()
    assert CANARY not in log_text.getvalue()
    assert CANARY not in everything_said(desk)
    assert any("ValueError at test_privacy.py" in state.error for state in desk.states)


def raising(*_args: object, **_options: object) -> None:
    raise ValueError(f"could not do it with {CANARY}")


@pytest.mark.expected_log("unexpected ValueError")
def test_the_companion_works_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    with monkeypatch.context() as patch:
        patch.setattr(TypingContext, "apply", raising)
        desk.type("a")
    desk.type("b")
    desk.suggest(("ee", 0.5))
    assert "|bee" in desk.picture
    assert desk.state.error == ""


@pytest.mark.expected_log("unexpected ValueError")
def test_an_error_that_comes_back_with_time_does_not_spin(
    monkeypatch: pytest.MonkeyPatch, log_text: io.StringIO
) -> None:
    desk = Desk()
    monkeypatch.setattr(app.companion.modes.suggest.SuggestMode, "view", raising)
    desk.type("a")
    desk.advance(10)
    assert 5 <= log_text.getvalue().count("unexpected ValueError") <= 15


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextTyped(CANARY),
        lambda: TextFrame((CANARY,)),
        lambda: View((CANARY,), Status.IDLE, LightOverlay()),
        lambda: Ask(CANARY),
        lambda: suggestions(1, (CANARY, 0.5)),
    ],
)
def test_what_holds_content_hides_it_in_repr(make: Callable[[], object]) -> None:
    assert CANARY not in repr(make())


def test_an_error_is_named_by_type_and_place() -> None:
    with pytest.raises(ValueError, match=CANARY) as caught:
        raising()
    line = raising.__code__.co_firstlineno + 1
    assert name_of_error(caught.value) == f"ValueError at test_privacy.py:{line} in raising"
    assert name_of_error(KeyError(CANARY)) == "KeyError"


def test_a_wipe_leaves_no_content_in_any_object_of_the_companion() -> None:
    """Every object that the companion reaches is searched for the canary after the idle wipe."""
    desk = Desk(Settings(mode=ModeName.CHAT))
    desk.post(EngineChanged(EngineState.READY))
    for mode in ModeName:
        live_through(desk, mode)
    desk.advance(301)
    assert found(CANARY, desk.companion._machine) == []
    desk.post(SetMode(ModeName.SUGGEST))
    desk.type(CANARY)
    assert found(CANARY, desk.companion._machine), "the search would find nothing"


def found(text: str, root: object) -> list[str]:
    """Where `text` occurs in the objects of this program that `root` reaches, as attribute paths."""
    hits: list[str] = []
    seen: set[int] = set()
    pending: list[tuple[str, object]] = [("", root)]
    while pending:
        path, thing = pending.pop()
        if id(thing) in seen or isinstance(thing, type(found) | type | logging.Logger):
            continue
        seen.add(id(thing))
        if isinstance(thing, str):
            if text in thing:
                hits.append(path)
            continue
        if isinstance(thing, dict):
            pending += [(f"{path}[{key!r}]", value) for key, value in thing.items()]
        elif isinstance(thing, list | tuple | set | frozenset) or hasattr(thing, "popleft"):
            pending += [(f"{path}[{i}]", value) for i, value in enumerate(thing)]
        if type(thing).__module__.startswith(("app.", "engine.", "firmware_bridge.")):
            names = [*getattr(thing, "__dict__", {}), *_slots(type(thing))]
            pending += [(f"{path}.{n}", getattr(thing, n)) for n in names if hasattr(thing, n)]
    return hits


def _slots(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
