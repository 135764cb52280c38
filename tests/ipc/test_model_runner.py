# SPDX-License-Identifier: Apache-2.0
"""ModelRunner on a tiny random model: what is computed, what is reused, and where it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from engine.backend import Logits
from engine.cpu.backend import CpuBackend
from engine.errors import ContextOverflowError, EngineError, ModelNotFoundError
from engine.messages import Chat, Turn
from engine.runner import ModelRunner
from engine.serving import Reply
from tests.helpers.gguf_writer import make_tiny_gguf

_LABELS = ["calm", "happy", "tired"]


def _never() -> bool:
    return False


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", context=512).path


@pytest.fixture(scope="module")
def long_model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gguf(tmp_path_factory.mktemp("model") / "long.gguf", context=1024).path


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Matrices this small are done before a second thread wakes up."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def open_runner(model_file: Path) -> Callable[..., ModelRunner]:
    return lambda max_context=512, window=128: ModelRunner.open(
        str(model_file), max_context, window
    )


@pytest.fixture
def prefilled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of tokens of each forward pass."""
    counts: list[int] = []
    forward = CpuBackend.forward

    def counting(backend: CpuBackend, tokens: Sequence[int], position: int) -> Logits:
        counts.append(len(tokens))
        return forward(backend, tokens, position)

    monkeypatch.setattr(CpuBackend, "forward", counting)
    return counts


def _turns(*contents: str) -> list[Turn]:
    roles = ["system", "user", "assistant", "user", "assistant", "user"]
    return [
        Turn.model_validate({"role": role, "content": content})
        for role, content in zip(roles, contents, strict=False)
    ]


def _chat(
    runner: ModelRunner, turns: Sequence[Turn], max_tokens: int = 8
) -> tuple[Reply, list[str]]:
    pieces: list[str] = []
    return runner.answer(_ask(turns, max_tokens), _never, pieces.append), pieces


def _ask(turns: Sequence[Turn], max_tokens: int = 8) -> Chat:
    return Chat(request=1, turns=list(turns), max_tokens=max_tokens)


def test_info_names_the_smaller_context(open_runner: Callable[..., ModelRunner]) -> None:
    assert open_runner(64).info.context_length == 64
    info = open_runner(4096).info
    assert info.context_length == 512
    assert info.backend == "cpu"
    assert info.parameters > 0
    assert info.name


def test_a_missing_file_is_told() -> None:
    with pytest.raises(ModelNotFoundError):
        ModelRunner.open("/nonexistent/model.gguf", 64)


def test_a_reply_has_its_length_and_no_half_characters(
    open_runner: Callable[..., ModelRunner],
) -> None:
    reply, pieces = _chat(open_runner(), _turns("Be brief.", "hello"), 40)
    assert reply.reason in ("stop", "length")
    assert reply.tokens == 40 or reply.reason == "stop"
    assert all(pieces)
    assert reply.first_token_ms > 0


def test_the_answer_does_not_depend_on_what_was_computed_before(
    open_runner: Callable[..., ModelRunner],
) -> None:
    used, fresh = open_runner(), open_runner()
    _chat(used, _turns("Be brief.", "hello world", "yes", "what"), 5)
    used.suggest("the world and", 3, _never)
    used.choose(_turns("Be brief.", "hello"), _LABELS, _never)
    turns = _turns("Be brief.", "hello you")
    assert _chat(used, turns)[1] == _chat(fresh, turns)[1]
    assert used.choose(turns, _LABELS, _never) == fresh.choose(turns, _LABELS, _never)


def test_the_instructions_are_computed_once(
    open_runner: Callable[..., ModelRunner], prefilled: list[int]
) -> None:
    runner = open_runner()
    instructions = "You are the voice of a keyboard. Answer in few words."
    runner.choose(_turns(instructions, "one"), _LABELS, _never)
    first = sum(prefilled)
    prefilled.clear()
    runner.choose(_turns(instructions, "two"), _LABELS, _never)
    assert sum(prefilled) < first - len(instructions) // 2


def test_the_oldest_turns_go_when_the_context_is_full(
    open_runner: Callable[..., ModelRunner], prefilled: list[int]
) -> None:
    runner = open_runner(128)
    reply, _ = _chat(runner, _turns("Be brief.", "x" * 300, "y" * 50, "hello"), 16)
    assert reply.tokens == 16 or reply.reason == "stop"
    assert max(prefilled) <= 64  # chunks
    assert len(runner._session.tokens) < 128


def test_a_message_that_cannot_fit_is_refused(open_runner: Callable[..., ModelRunner]) -> None:
    with pytest.raises(ContextOverflowError, match="shorten the message"):
        _chat(open_runner(64), _turns("Be brief.", "x" * 100))


def test_a_long_reply_ends_where_the_context_does(
    open_runner: Callable[..., ModelRunner],
) -> None:
    reply, _ = _chat(open_runner(64), _turns("a", "b"), 500)
    assert reply.reason in ("length", "stop")
    assert reply.tokens < 64


@pytest.mark.parametrize("labels", [["a", "a"], ["a", ""]])
def test_labels_must_differ(open_runner: Callable[..., ModelRunner], labels: list[str]) -> None:
    with pytest.raises(EngineError, match="labels"):
        open_runner().choose(_turns("a", "b"), labels, _never)


def test_what_is_cancelled_computes_nothing(
    open_runner: Callable[..., ModelRunner], prefilled: list[int]
) -> None:
    runner = open_runner()
    turns = _turns("Be brief.", "hello")
    assert runner.suggest("hello wor", 3, lambda: True).cancelled
    assert runner.choose(turns, _LABELS, lambda: True).cancelled
    assert runner.answer(_ask(turns), lambda: True, lambda text: None) == Reply("cancelled", 0, 0.0)
    assert prefilled == []


def test_cancel_between_two_tokens_keeps_what_came(
    open_runner: Callable[..., ModelRunner],
) -> None:
    answers = iter([False] * 4 + [True])
    ask = _ask(_turns("Be brief.", "hello"), 100)
    reply = open_runner().answer(ask, lambda: next(answers), lambda text: None)
    assert reply.reason == "cancelled"
    assert 1 <= reply.tokens <= 4


def test_suggestions_see_the_window_only(
    open_runner: Callable[..., ModelRunner], prefilled: list[int]
) -> None:
    runner = open_runner(512, 32)
    runner.suggest("hello " * 200, 3, _never)
    assert sum(prefilled) <= 32 + 1  # BOS
    assert len(runner._session.tokens) <= 32 + 1


def test_typing_on_computes_little(open_runner: Callable[..., ModelRunner]) -> None:
    runner = open_runner(512, 32)
    text = "hello world and you " * 20
    computed = []
    for end in range(len(text) // 2, len(text)):
        found = runner.suggest(text[:end], 3, _never)
        computed.append(found.computed)
    settled = sorted(computed)[: len(computed) * 3 // 4]
    assert max(settled) < 32  # only a slide of the window prefills it anew


@pytest.mark.parametrize("text", ["", "h", "hello wor", "hello " * 50, "\n", "日本", "<|im_end|>"])
def test_the_smallest_context_still_suggests(
    open_runner: Callable[..., ModelRunner], text: str
) -> None:
    found = open_runner(16).suggest(text, 3, _never)
    assert len(found.candidates) <= 3


_WINDOWS = [128, 512]


def _typed(runner: ModelRunner, text: str, keys: int) -> Iterator[tuple[str, int, bool]]:
    """The text after each of its last `keys` keys, how many tokens that key had prefilled, and whether it
    moved the window."""
    tokens = runner._session.tokens
    for end in range(len(text) - keys, len(text) + 1):
        found = runner.suggest(text[:end], 3, _never)
        before, tokens = tokens, runner._session.tokens
        yield text[:end], len(tokens) - found.reused, before[1:17] != tokens[1:17]


def _long_text(tokens: int) -> str:
    """More than so many tokens, of which no piece comes twice."""
    return "".join(f"{n * n} and {n} you " for n in range(tokens // 6))


@pytest.mark.parametrize("window", _WINDOWS)
def test_a_key_prefills_a_few_tokens_whatever_the_window_and_a_chunk_moves_it(
    long_model_file: Path, window: int
) -> None:
    runner = ModelRunner.open(str(long_model_file), 1024, window)
    text, lengths, slides, few = _long_text(4 * window), [], 0, []
    for _, prefilled, has_moved in _typed(runner, text, keys=2 * window):
        lengths.append(len(runner._session.tokens))
        slides += has_moved
        if not has_moved:
            few.append(prefilled)
    assert max(few) <= 8
    assert window // 2 <= min(lengths)
    assert window * 3 // 4 < max(lengths) <= window + 1  # BOS
    assert 2 <= slides <= 1 + 2 * window // (window // 4)


@pytest.mark.parametrize("window", _WINDOWS)
def test_what_a_key_gets_is_what_the_whole_text_gets(long_model_file: Path, window: int) -> None:
    used, fresh = (ModelRunner.open(str(long_model_file), 1024, window) for _ in range(2))
    text = _long_text(4 * window)
    for number, (typed, _, has_moved) in enumerate(_typed(used, text, keys=window)):
        if has_moved or number % 37 == 0:
            fresh.forget()
            again, found = fresh.suggest(typed, 3, _never), used.suggest(typed, 3, _never)
            assert again.reused == 0
            assert [c.text for c in found.candidates] == [c.text for c in again.candidates]
            chances = [c.probability for c in again.candidates]
            assert [c.probability for c in found.candidates] == pytest.approx(chances, rel=1e-3)


@pytest.mark.parametrize(("asked", "context", "seen"), [(128, 512, 128), (512, 512, 504)])
def test_the_window_is_as_large_as_the_context_allows(
    open_runner: Callable[..., ModelRunner], asked: int, context: int, seen: int
) -> None:
    assert open_runner(context, asked).info.window == seen


def test_forget_keeps_no_token(open_runner: Callable[..., ModelRunner]) -> None:
    runner = open_runner()
    runner.suggest("hello " * 200, 3, _never)
    assert runner._session.tokens
    runner.forget()
    assert runner._session.tokens == ()
    assert runner.suggest("hello world", 3, _never).reused == 0


def test_close_twice_and_no_more(open_runner: Callable[..., ModelRunner]) -> None:
    runner = open_runner()
    runner.close()
    runner.close()
    with pytest.raises(EngineError):
        runner.suggest("hello", 3, _never)
