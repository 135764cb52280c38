# SPDX-License-Identifier: Apache-2.0
"""The child's server loop when commands fail: every one is answered, and nothing of its text leaks."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable

import pytest

from engine.errors import ModelNotFoundError
from engine.fake import FakeModel, FakeScript
from engine.messages import (
    Chat,
    Complete,
    Failed,
    Forget,
    Forgotten,
    LoadModel,
    ModelLoaded,
    ReplyGrew,
    Suggest,
    SuggestionsReady,
    Turn,
)
from engine.serving import CancelCheck, LoadedModel, Reply, Suggestions
from tests.helpers.engines import engine_in_thread, loaded_engine_in_thread

_CANARY = "zyzzyva"
_QUICK = FakeScript(token_ms=0)


class _PanicError(BaseException):
    """As pyo3's PanicException: no Exception."""


class _FailingModel(FakeModel):
    """Fails with `error`, after a piece of a reply in a chat."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(_QUICK, 2048)
        self._error = error
        self.closed = False

    def suggest(self, text: str, count: int, cancelled: CancelCheck, words: int = 1) -> Suggestions:
        raise self._error

    def answer(
        self, ask: Chat | Complete, cancelled: CancelCheck, emit: Callable[[str], None]
    ) -> Reply:
        emit("a piece")
        raise self._error

    def close(self) -> None:
        self.closed = True


def _fail(error: BaseException) -> list[Failed]:
    """What a Suggest and a Chat are answered when the model raises `error`."""
    failures = []
    with loaded_engine_in_thread(lambda command: _FailingModel(error)) as talk:
        failures.append(talk.ask(Suggest(request=talk.number(), text=_CANARY)))
        chat = Chat(request=talk.number(), turns=[Turn(role="user", content=_CANARY)])
        talk.send(chat)
        piece, last = talk.until_last(chat.request)
        assert isinstance(piece, ReplyGrew)
        failures.append(last)
        assert isinstance(talk.ask(Forget(request=talk.number())), Forgotten)  # it lives on
    assert all(isinstance(failure, Failed) for failure in failures)
    return [failure for failure in failures if isinstance(failure, Failed)]


def test_an_engine_error_is_passed_on_with_its_words() -> None:
    for failed in _fail(ModelNotFoundError("no such model")):
        assert (failed.code, failed.message) == ("model-missing", "no such model")


def test_too_little_memory_has_its_own_code() -> None:
    assert [failed.code for failed in _fail(MemoryError())] == ["out-of-memory"] * 2


@pytest.mark.expected_log("a suggest command failed")
@pytest.mark.expected_log("a chat command failed")
@pytest.mark.parametrize("kind", [ValueError, _PanicError])
def test_any_other_error_is_named_by_its_type_only(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    for failed in _fail(kind(f"cannot do {_CANARY}")):
        assert failed.code == "internal"
        assert kind.__name__ in failed.message
        assert _CANARY not in failed.message
    assert "test_engine_server.py:" in caplog.text
    assert kind.__name__ in caplog.text
    assert _CANARY not in caplog.text


def test_no_model_no_answers() -> None:
    with engine_in_thread(lambda command: FakeModel(_QUICK, 2048)) as talk:
        failed = talk.ask(Suggest(request=1, text=""))
        assert isinstance(failed, Failed)
        assert failed.code == "engine-unavailable"
        assert isinstance(talk.ask(Forget(request=2)), Forgotten)


def test_a_model_that_cannot_be_loaded_leaves_none() -> None:
    models: list[LoadedModel] = [_FailingModel(ValueError())]

    def load(command: LoadModel) -> LoadedModel:
        if not models:
            raise ModelNotFoundError(command.path)
        return models.pop()

    first = models[0]
    with loaded_engine_in_thread(load) as talk:
        failed = talk.ask(LoadModel(request=8, path="gone"))
        assert isinstance(failed, Failed)
        assert (failed.code, failed.message) == ("model-missing", "gone")
        assert isinstance(first, _FailingModel)
        assert first.closed
        failed = talk.ask(Suggest(request=9, text=""))
        assert isinstance(failed, Failed)
        assert failed.code == "engine-unavailable"


def test_loading_again_takes_the_new_model() -> None:
    with loaded_engine_in_thread(lambda command: FakeModel(_QUICK, command.max_context)) as talk:
        loaded = talk.ask(LoadModel(request=8, path="other", max_context=64))
        assert isinstance(loaded, ModelLoaded)
        assert loaded.context_length == 64
        assert isinstance(talk.ask(Suggest(request=9, text="")), SuggestionsReady)


def test_messages_hide_content_from_logs(caplog: pytest.LogCaptureFixture) -> None:
    command = Chat(request=1, turns=[Turn(role="user", content=_CANARY)])
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("engine").info("%r %s", command, command)
    assert "chat" in caplog.text
    assert _CANARY not in caplog.text


@pytest.mark.parametrize("key", [b"", b"short", b"k" * 32])
def test_the_program_ends_by_itself_without_a_parent(key: bytes) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "engine.server", "--address", "/nonexistent/socket"],
        input=key,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 3
    assert b"thock-engine ERROR" in ended.stderr
    assert b"Traceback" not in ended.stderr
