# SPDX-License-Identifier: Apache-2.0
"""Replies computed ahead, for every engine: what is ready is what would have been answered, and typing wins."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.client import MODEL_ENGINE
from engine.fake import FakeModel, FakeScript
from engine.messages import (
    Cancel,
    Chat,
    Choose,
    Complete,
    Event,
    Forget,
    Prepare,
    Prepared,
    ReplyFinished,
    ReplyGrew,
    ReplyReady,
    Suggest,
    SuggestionsReady,
    Turn,
)
from tests.helpers.engines import Talk, loaded_engine_in_thread, supervised

_SCRIPT = {"replies": ["A cat is a small animal that sleeps, eats and purrs. " * 5], "token_ms": 4}
LONG_MS = 50_000.0


@pytest.fixture(
    scope="module", params=["thread", "child", pytest.param("model", marks=pytest.mark.model)]
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    """The scripted model in a thread, the same in a child, and the real model in a child."""
    script = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps(_SCRIPT))
    if request.param == "thread":
        model = FakeModel(FakeScript.model_validate(_SCRIPT), 2048)
        with loaded_engine_in_thread(lambda command: model) as talk:
            yield talk
    elif request.param == "child":
        with supervised() as child:
            child.start(script)
            yield child
    else:
        path: Path = request.getfixturevalue("smollm2")
        with supervised(MODEL_ENGINE) as child:
            child.start(path)
            yield child


def _asks(question: str) -> list[Chat | Complete]:
    turns = [Turn(role="user", content=question)]
    return [
        Chat(request=0, turns=turns, max_tokens=24),
        Complete(request=0, text=question, max_tokens=12),
    ]


def _prepare(talk: Talk, ask: Chat | Complete, ahead: int = 4, rest_ms: float = 0.0) -> Prepare:
    number = talk.number()
    return Prepare(request=number, context=f"c{number}", ask=ask, ahead=ahead, rest_ms=rest_ms)


def _readies(events: list[Event]) -> list[ReplyReady]:
    assert isinstance(events[-1], Prepared)
    readies = [event for event in events if isinstance(event, ReplyReady)]
    assert len(readies) == len(events) - 1
    return readies


def _reply(talk: Talk, ask: Chat | Complete, begun: list[int]) -> tuple[str, ReplyFinished]:
    command = ask.model_copy(update={"request": talk.number(), "begun": begun})
    talk.send(command)
    events = talk.until_last(command.request)
    finished = events[-1]
    assert isinstance(finished, ReplyFinished)
    return "".join(event.text for event in events if isinstance(event, ReplyGrew)), finished


@pytest.mark.parametrize("kind", [0, 1], ids=["chat", "complete"])
def test_what_is_ready_and_what_follows_is_the_reply(engine: Talk, kind: int) -> None:
    ask = _asks("Tell me a story about a cat and")[kind]
    whole, finished = _reply(engine, ask, [])
    assert finished.tokens > 5
    command = _prepare(engine, ask)
    sent_at = time.perf_counter()
    engine.send(command)
    readies = _readies(engine.until_last(command.request))
    assert len(readies) <= 2 + (time.perf_counter() - sent_at) / 0.25
    lengths = [len(ready.tokens) for ready in readies]
    assert lengths == sorted(set(lengths))
    assert (lengths[0], lengths[-1]) == (1, 5)  # between them news is as rare as tokens are quick
    assert all(ready.context == command.context for ready in readies)
    for ready in readies:
        assert whole.startswith(ready.text)
        rest, _ = _reply(engine, ask, ready.tokens)
        assert ready.text + rest == whole
        engine.ask(Forget(request=engine.number()))  # another engine, as it were, goes on as well
        rest, _ = _reply(engine, ask, ready.tokens)
        assert ready.text + rest == whole


def test_what_is_prepared_is_not_computed_again(engine: Talk) -> None:
    engine.ask(Forget(request=engine.number()))
    ask = _asks("Why do cats purr so loudly?")[0]
    command = _prepare(engine, ask, ahead=3)
    engine.send(command)
    events = engine.until_last(command.request)
    first = events[-1]
    assert isinstance(first, Prepared)
    assert first.computed > 3
    _, finished = _reply(engine, ask, _readies(events)[0].tokens)
    assert finished.tokens >= 3
    second = engine.ask(_prepare(engine, _asks("A different one")[0], ahead=0))
    while not isinstance(second, Prepared):
        second = engine.next()
    assert second.wasted == 0, "all that was computed ahead became part of the reply"


def test_what_nobody_asked_for_is_counted_as_wasted(engine: Talk) -> None:
    engine.ask(Forget(request=engine.number()))
    counts = [_counted(engine, question) for question in ("Why", "Why do", "Why do cats", "How")]
    computed = sum(each.computed for each in counts)
    wasted = sum(each.wasted for each in counts[1:])  # the first one tells of the tests before
    assert 0 < wasted < computed
    engine.ask(Forget(request=engine.number()))
    wasted += _counted(engine, "And").wasted
    assert wasted == computed, "after a Forget nothing can be used any more"


def _counted(talk: Talk, question: str) -> Prepared:
    command = _prepare(talk, _asks(question)[0])
    talk.send(command)
    prepared = talk.until_last(command.request)[-1]
    assert isinstance(prepared, Prepared)
    return prepared


@pytest.mark.parametrize("kind", ["suggest", "choose", "chat", "forget", "prepare", "cancel"])
def test_anything_else_ends_the_rest_of_a_prepare_at_once(engine: Talk, kind: str) -> None:
    turns = [Turn(role="user", content="Is ice cold? Say cold or hot.")]
    ask = _asks("Tell me about dogs.")[0]
    command = _prepare(engine, ask, ahead=20, rest_ms=LONG_MS)
    engine.send(command)
    assert isinstance(engine.next(), ReplyReady)
    number = engine.number()
    commands = {
        "suggest": Suggest(request=number, text="Tell me ab"),
        "choose": Choose(request=number, turns=turns, labels=["hot", "cold"]),
        "chat": ask.model_copy(update={"request": number, "max_tokens": 2}),
        "forget": Forget(request=number),
        "prepare": Prepare(request=number, context="", ask=ask, ahead=0),
        "cancel": Cancel(request=command.request),
    }
    engine.send(commands[kind])
    prepared = engine.until_last(command.request)[-1]
    assert isinstance(prepared, Prepared)
    assert prepared.cancelled
    if kind != "cancel":
        engine.until_last(number)


def test_a_running_prepare_stops_before_its_next_token(engine: Talk) -> None:
    command = _prepare(engine, _asks("Tell me a long story about a cat.")[0], ahead=64)
    engine.send(command)
    assert isinstance(engine.next(), ReplyReady)
    suggest = Suggest(request=engine.number(), text="The cat sat on the ")
    engine.send(suggest)
    readies = _readies(engine.until_last(command.request))
    assert len(readies) < 20
    answer = engine.until_last(suggest.request)[-1]
    assert isinstance(answer, SuggestionsReady)
    assert not answer.cancelled


def test_a_prepare_waits_for_everything_else(engine: Talk) -> None:
    chat = _asks("Tell me a story about a cat.")[0].model_copy(update={"request": engine.number()})
    prepare = _prepare(engine, _asks("Why?")[0], ahead=0)
    suggest = Suggest(request=engine.number(), text="The cat sat on the ")
    for command in (chat, prepare, suggest):
        engine.send(command)
    order = []
    while len(order) < 3:
        event = engine.next()
        if not isinstance(event, ReplyGrew | ReplyReady):
            order.append(event.request)  # type: ignore[union-attr]
    assert order == [chat.request, suggest.request, prepare.request]


def test_the_newest_prepare_wins(engine: Talk) -> None:
    chat = _asks("Tell me a story about a cat.")[0].model_copy(update={"request": engine.number()})
    engine.send(chat)
    commands = [_prepare(engine, _asks("Why " * n)[0], ahead=1) for n in (1, 2, 3)]
    for command in commands:
        engine.send(command)
    engine.until_last(chat.request)
    counts = [len(_readies(engine.until_last(command.request))) for command in commands]
    assert counts == [0, 0, 2]


def test_a_person_who_types_faster_than_a_step_gets_the_newest_ready(engine: Talk) -> None:
    commands = []
    for end in range(5, 16):
        commands.append(_prepare(engine, _asks("Why do cats purr?"[:end])[0], ahead=0))
        engine.send(commands[-1])
        time.sleep(0.002)
    events = []
    while (
        not events
        or not isinstance(events[-1], Prepared)
        or events[-1].request != commands[-1].request
    ):
        events.append(engine.next())
    ready = [event.request for event in events if isinstance(event, ReplyReady)]
    assert ready[-1] == commands[-1].request
