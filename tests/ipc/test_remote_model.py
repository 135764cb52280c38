# SPDX-License-Identifier: Apache-2.0
"""A server process with the OpenAI API in place of the model, through the engine child and alone."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from engine.client import MODEL_ENGINE, EngineState
from engine.errors import OperationCancelledError
from engine.messages import (
    Cancel,
    Chat,
    Choose,
    Complete,
    Device,
    Failed,
    Forget,
    Forgotten,
    LabelChosen,
    ModelLoaded,
    Prepare,
    Prepared,
    RemoteServer,
    ReplyFinished,
    ReplyGrew,
    Suggest,
    SuggestionsReady,
    Turn,
)
from engine.remote.answers import first_token_chances, model_names, piece_of
from engine.remote.connection import Connection, _Exchange
from engine.remote.errors import (
    RemoteAnswerError,
    RemoteError,
    RemoteRefusedError,
    RemoteSettingsError,
    RemoteUnreachableError,
)
from engine.remote.model import RemoteModel
from tests.helpers.engines import Supervised, supervised
from tests.helpers.openai_server import KEY, REPLY, openai_server, stats
from tests.helpers.waiting import wait_until

SECRET = "xyzzy-plugh"
TURNS = [Turn(role="system", content="Be short."), Turn(role="user", content=f"Cats? {SECRET}")]


def never() -> bool:
    return False


def opened(port: int, **fields: str) -> RemoteModel:
    return RemoteModel.open(RemoteServer(url=f"http://127.0.0.1:{port}/v1", **fields), 2048)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=["vllm", "llama"])
def engine(request: pytest.FixtureRequest) -> Iterator[Supervised]:
    with openai_server(request.param) as port, supervised(MODEL_ENGINE) as talk:
        server = RemoteServer(url=f"http://127.0.0.1:{port}/v1")
        talk.client.start("nothing", 2048, Device.REMOTE, server)
        talk.until(EngineState.READY)
        loaded = talk.next()
        assert isinstance(loaded, ModelLoaded)
        assert loaded.backend == "remote"
        assert loaded.name == f"tiny at 127.0.0.1:{port}"
        assert loaded.note == f"what you type goes to http://127.0.0.1:{port}"
        assert loaded.context_length == 512
        yield talk


def test_a_chat_comes_in_pieces(engine: Supervised) -> None:
    chat = Chat(request=engine.number(), turns=TURNS)
    engine.send(chat)
    *pieces, last = engine.until_last(chat.request)
    assert [piece.text for piece in pieces if isinstance(piece, ReplyGrew)] == REPLY
    assert isinstance(last, ReplyFinished)
    assert (last.reason, last.tokens) == ("stop", len(REPLY))
    assert 0 < last.first_token_ms < last.milliseconds


def test_a_text_is_gone_on_with_and_ends_at_its_length(engine: Supervised) -> None:
    last = engine.ask(Complete(request=engine.number(), text="Cats", max_tokens=3))
    assert isinstance(last, ReplyFinished)
    assert (last.reason, last.tokens) == ("length", 3)


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Look at ", 1, ["the", "cat", "a"]),
        ("Look at", 1, ["s"]),
        ("Look!", 1, [" the", " cat", " a"]),
        ("I saw th", 1, ["e", "is", "at"]),
        ("Look at ", 3, ["the end of", "cat sat down", "a end of"]),
        ("  ", 1, []),
    ],
)
def test_words_are_suggested(
    engine: Supervised, text: str, words: int, expected: list[str]
) -> None:
    ready = engine.ask(Suggest(request=engine.number(), text=text, count=3, words=words))
    assert isinstance(ready, SuggestionsReady)
    assert [c.text for c in ready.candidates] == expected
    chances = [c.probability for c in ready.candidates]
    assert chances == sorted(chances, reverse=True)
    assert all(0 < chance <= 1 for chance in chances)


def test_a_label_is_chosen(engine: Supervised) -> None:
    chosen = engine.ask(
        Choose(request=engine.number(), turns=TURNS, labels=["happy", "calm", "angry"])
    )
    assert isinstance(chosen, LabelChosen)
    calm, angry = math.exp(-0.4), math.exp(-1.4)
    assert chosen.label == "calm"
    assert chosen.probability == pytest.approx(calm / (calm + angry))


def test_nothing_is_computed_ahead(engine: Supervised) -> None:
    ask = Chat(request=1, turns=TURNS)
    done = engine.ask(Prepare(request=engine.number(), context="c", ask=ask))
    assert isinstance(done, Prepared)
    assert (done.computed, done.wasted) == (0, 0)
    assert isinstance(engine.ask(Forget(request=engine.number())), Forgotten)


@pytest.mark.parametrize("kind", ["endless", "mute"])
def test_a_reply_is_left_at_once(kind: str) -> None:
    with openai_server(kind) as port, supervised(MODEL_ENGINE) as talk:
        talk.client.start("x", 2048, Device.REMOTE, RemoteServer(url=f"http://127.0.0.1:{port}/v1"))
        assert isinstance(talk.next(), ModelLoaded)
        chat = Chat(request=talk.number(), turns=TURNS, max_tokens=4096)
        talk.send(chat)
        assert isinstance(talk.next(), ReplyGrew)
        talk.send(Cancel(request=chat.request))
        last = talk.until_last(chat.request)[-1]  # the server would go on for ever
        assert isinstance(last, ReplyFinished)
        assert last.reason == "cancelled"
        wait_until(lambda: stats(port)["left"] == 1)


def test_an_answer_that_is_left_after_its_end_touches_no_other_file() -> None:
    with openai_server("vllm") as port:
        exchange = _Exchange(HTTPConnection("127.0.0.1", port, timeout=60), 60)
        exchange.start("GET", "/v1/models", None, {"Connection": "close"})
        while exchange.pieces.get(timeout=60) is not None:
            pass
        wait_until(lambda: exchange._twin is None)
        others = [socket.socketpair() for _ in range(4)]  # they get the numbers that became free
        exchange.leave()
        for one, two in others:
            with one, two:
                one.sendall(b"still here")
                assert two.recv(64) == b"still here"


def test_a_server_without_probabilities_says_so() -> None:
    with openai_server("bare") as port:
        model = opened(port)
        assert model.info.note.endswith("no words are suggested")
        before = stats(port)["asked"]
        assert model.suggest("Look at ", 3, never).candidates == ()
        assert stats(port)["asked"] == before
        assert model.choose(TURNS, ["happy", "calm"], never).label == "calm"
        with pytest.raises(RemoteAnswerError, match="none of the labels"):
            model.choose(TURNS, ["happy", "sad"], never)


def test_a_key_opens_a_locked_server(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with openai_server("locked") as port:
        with pytest.raises(RemoteRefusedError, match="401: it wants a key"):
            opened(port)
        file.write_text(f"{KEY}\n")
        assert opened(port, key_file=str(file)).info.backend == "remote"
    for content in (b"", b"two words", b"\xff\xfe", b"k" * 5000, b"a\nb"):
        file.write_bytes(content)
        with pytest.raises(RemoteSettingsError, match="key file") as caught:
            opened(port, key_file=str(file))
        assert content.decode("latin-1") not in str(caught.value) or not content
    with pytest.raises(RemoteSettingsError, match="FileNotFoundError"):
        opened(port, key_file=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("empty", RemoteSettingsError),
        ("garbage", RemoteAnswerError),
        ("elsewhere", RemoteRefusedError),  # redirects are not followed
    ],
)
def test_servers_that_cannot_be_used(kind: str, error: type[RemoteError]) -> None:
    with openai_server(kind) as port, pytest.raises(error):
        opened(port)


def test_models_are_found_by_name() -> None:
    with openai_server("vllm") as port:
        assert opened(port, model="other").info.context_length == 2048
        with pytest.raises(RemoteSettingsError, match="no model large; it offers: tiny, other"):
            opened(port, model="large")


@pytest.mark.expected_log("engine given up")
def test_a_server_that_is_not_there_is_told_and_not_tried_for_ever() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with supervised(MODEL_ENGINE) as talk:
            talk.client.start("x", 2048, Device.REMOTE, RemoteServer(url=url))
            while (told := talk.states.get(timeout=60))[0] is not EngineState.FAILED:
                pass
    assert url.removesuffix("/v1") in told[1]
    assert "does it run?" in told[1]


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:80", "ftp://a/v1", "http://", "http://a:b@c/v1", "http://a:99999/", "http://a/?k=v"],
)  # fmt: skip
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(RemoteSettingsError):
        RemoteModel.open(RemoteServer(url=url), 2048)


def test_nothing_that_was_typed_is_in_an_error() -> None:
    with openai_server("quotes") as port, supervised(MODEL_ENGINE) as talk:
        talk.client.start("x", 2048, Device.REMOTE, RemoteServer(url=f"http://127.0.0.1:{port}/v1"))
        assert isinstance(talk.next(), ModelLoaded)
        for command in (
            Chat(request=1, turns=TURNS),
            Suggest(request=2, text=SECRET),
            Complete(request=3, text=SECRET),
        ):
            failed = talk.ask(command)
            assert isinstance(failed, Failed)
            assert failed.code == "remote-refused"
            assert SECRET not in failed.message


def test_a_server_that_ends_in_the_middle() -> None:
    pieces: list[str] = []
    with openai_server("drops") as port:
        model = opened(port)
        with pytest.raises(RemoteUnreachableError):
            model.answer(Chat(request=1, turns=TURNS), never, pieces.append)
    assert pieces == REPLY[:2]


def test_a_silent_server_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connection = Connection(f"http://127.0.0.1:{deaf.getsockname()[1]}", silence_s=0.2)
        with pytest.raises(RemoteUnreachableError):
            connection.get("/models", never)
        with pytest.raises(OperationCancelledError):
            connection.get("/models", lambda: True)


@pytest.mark.parametrize(
    "answer",
    [
        None, 3, [], {}, {"choices": 1}, {"choices": [None]}, {"choices": [{"logprobs": 1}]},
        {"choices": [{"text": 5, "logprobs": {"top_logprobs": [[]], "content": {}}}]},
        {"choices": [{"delta": [], "logprobs": {"content": [{"top_logprobs": [1, {"token": 2}]}]}}]},
        {"choices": [{"logprobs": {"top_logprobs": [{"a": "b", "c": 5.0}]}}]},
        {"data": [1, {"id": 4}, {"id": ""}]}, {"data": {"id": "x"}},
    ],
)  # fmt: skip
def test_odd_answers_count_as_absent(answer: object) -> None:
    assert piece_of(answer) == ("", "")
    assert first_token_chances(answer) == {}
    assert model_names(answer) == {}
