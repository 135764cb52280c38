# SPDX-License-Identifier: Apache-2.0
"""What every engine answers, whichever model and process is behind it (docs in engine/messages.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.client import MODEL_ENGINE
from engine.fake import FakeModel, FakeScript
from engine.messages import (
    Cancel,
    Chat,
    Choose,
    Event,
    Forget,
    Forgotten,
    LabelChosen,
    ReplyFinished,
    ReplyGrew,
    Suggest,
    SuggestionsReady,
    Turn,
)
from tests.helpers.engines import Talk, loaded_engine_in_thread, supervised

_SCRIPT = {"replies": ["A cat is a small animal that sleeps, eats and purrs. " * 5], "token_ms": 4}


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


def _chat(talk: Talk, max_tokens: int) -> Chat:
    turns = [Turn(role="user", content="Tell me a long story about a cat.")]
    return Chat(request=talk.number(), turns=turns, max_tokens=max_tokens)


def _suggest(talk: Talk, text: str, count: int = 3, words: int = 1) -> SuggestionsReady:
    ready = talk.ask(Suggest(request=talk.number(), text=text, count=count, words=words))
    assert isinstance(ready, SuggestionsReady)
    return ready


def _finished(events: list[Event]) -> ReplyFinished:
    assert isinstance(events[-1], ReplyFinished)
    assert all(isinstance(event, ReplyGrew) for event in events[:-1])
    return events[-1]


@pytest.mark.parametrize(
    "text", ["", "The cat sat on the ", "I will see you th", "Hello!", "a\n\n"]
)
@pytest.mark.parametrize("count", [1, 3, 8])
def test_suggestions_are_few_and_in_order(engine: Talk, text: str, count: int) -> None:
    ready = _suggest(engine, text, count)
    assert not ready.cancelled
    assert len(ready.candidates) <= count
    assert all(candidate.text for candidate in ready.candidates)
    chances = [candidate.probability for candidate in ready.candidates]
    assert chances == sorted(chances, reverse=True)
    assert all(0 < chance <= 1 for chance in chances)
    assert sum(chances) <= 1.001
    assert ready.milliseconds >= 0


@pytest.mark.parametrize("text", ["The cat sat on the ", "I will see you th", "good"])
def test_phrases_begin_with_the_words(engine: Talk, text: str) -> None:
    words = [candidate.text for candidate in _suggest(engine, text).candidates]
    for most in (2, 3):
        ready = _suggest(engine, text, words=most)
        chances = [candidate.probability for candidate in ready.candidates]
        assert len(chances) <= 3
        assert chances == sorted(chances, reverse=True)
        assert all(0 < chance <= 1 for chance in chances)
        for candidate in ready.candidates:
            assert len(candidate.text.split()) <= most
            assert any(candidate.text == w or candidate.text.startswith(f"{w} ") for w in words)


def test_an_open_word_is_completed(engine: Talk) -> None:
    candidates = _suggest(engine, "I will see you th").candidates
    assert candidates
    assert not any(candidate.text[0].isspace() for candidate in candidates)


def test_a_word_more_reuses_what_came_before(engine: Talk) -> None:
    _suggest(engine, "The quick brown fox jumps over the lazy")
    ready = _suggest(engine, "The quick brown fox jumps over the lazy dog")
    assert ready.reused >= 5


def test_a_reply_comes_in_pieces_and_ends(engine: Talk) -> None:
    command = _chat(engine, 12)
    engine.send(command)
    events = engine.until_last(command.request)
    finished = _finished(events)
    assert finished.reason in ("stop", "length")
    assert 1 <= finished.tokens <= 12
    assert 0 < finished.first_token_ms <= finished.milliseconds
    pieces = [event.text for event in events if isinstance(event, ReplyGrew)]
    assert all(pieces)
    assert "".join(pieces).strip()
    assert len(pieces) > 1


def test_a_reply_stops_at_its_length(engine: Talk) -> None:
    finished = engine.ask(_chat(engine, 2))
    assert isinstance(finished, ReplyFinished)
    assert (finished.reason, finished.tokens) == ("length", 2)


def test_the_same_question_gets_the_same_answer(engine: Talk) -> None:
    texts = []
    for _ in range(2):
        command = _chat(engine, 6)
        engine.send(command)
        events = engine.until_last(command.request)
        texts.append([event.text for event in events if isinstance(event, ReplyGrew)])
    assert texts[0] == texts[1]


def test_one_label_is_chosen(engine: Talk) -> None:
    turns = [Turn(role="user", content="Is ice cold? Say cold or hot.")]
    labels = ["hot", "cold"]
    chosen = engine.ask(Choose(request=engine.number(), turns=turns, labels=labels))
    assert isinstance(chosen, LabelChosen)
    assert chosen.label in labels
    assert 0 < chosen.probability <= 1
    assert not chosen.cancelled


def test_a_running_reply_is_cancelled_soon(engine: Talk) -> None:
    command = _chat(engine, 500)
    engine.send(command)
    assert isinstance(engine.next(), ReplyGrew)
    engine.send(Cancel(request=command.request))
    finished = _finished(engine.until_last(command.request))
    assert finished.reason == "cancelled"
    assert finished.tokens < 50


def test_waiting_commands_are_cancelled_in_their_place(engine: Talk) -> None:
    running, waiting = _chat(engine, 500), _chat(engine, 500)
    choose = Choose(request=engine.number(), turns=waiting.turns, labels=["a", "b"])
    for command in (running, waiting, choose):
        engine.send(command)
    for command in (choose, waiting, running):
        engine.send(Cancel(request=command.request))
    assert _finished(engine.until_last(running.request)).reason == "cancelled"
    finished = _finished(engine.until_last(waiting.request))
    assert (finished.reason, finished.tokens) == ("cancelled", 0)
    chosen = engine.until_last(choose.request)[-1]
    assert isinstance(chosen, LabelChosen)
    assert (chosen.cancelled, chosen.label) == (True, "")


def test_the_newest_suggestion_wins(engine: Talk) -> None:
    chat = _chat(engine, 4)
    engine.send(chat)
    numbers = [engine.number() for _ in range(5)]
    for number in numbers:
        engine.send(Suggest(request=number, text="Good " + "very " * number))
    engine.until_last(chat.request)
    answers = [engine.until_last(number)[-1] for number in numbers]
    assert [isinstance(answer, SuggestionsReady) and answer.cancelled for answer in answers] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_cancelling_what_is_over_changes_nothing(engine: Talk) -> None:
    engine.ask(_chat(engine, 2))
    engine.send(Cancel(request=1))
    assert not _suggest(engine, "The cat sat on the ").cancelled


def test_nothing_is_reused_after_forget(engine: Talk) -> None:
    text = "The quick brown fox jumps over"
    _suggest(engine, text)
    assert isinstance(engine.ask(Forget(request=engine.number())), Forgotten)
    assert _suggest(engine, text).reused == 0
    assert _suggest(engine, text).reused > 0
