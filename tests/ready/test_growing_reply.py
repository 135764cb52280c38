# SPDX-License-Identifier: Apache-2.0
"""What a ModelRunner prepares is what it answers, whatever it did in between, and no row is computed twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backend import Logits
from engine.cpu.backend import CpuBackend
from engine.ledger import RowLedger
from engine.messages import Chat, Complete, Turn
from engine.runner import ModelRunner
from engine.serving import Beginning
from tests.helpers.gguf_writer import make_tiny_gguf

MOST = 12
ASKS: list[Chat | Complete] = [
    *(
        Chat(request=0, turns=[Turn(role="user", content=text)], max_tokens=MOST)
        for text in ("hello", "hello you", "the world and")
    ),
    *(Complete(request=0, text=text, max_tokens=MOST) for text in ("hello wor", "hello world ")),
]


def _never() -> bool:
    return False


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", context=256).path


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def runner(model_file: Path) -> ModelRunner:
    return ModelRunner.open(str(model_file), 256)


@pytest.fixture(scope="module")
def plain(model_file: Path) -> list[str]:
    """The replies of an engine that prepared nothing."""
    return [answer(ModelRunner.open(str(model_file), 256), ask) for ask in ASKS]


def answer(runner: ModelRunner, ask: Chat | Complete, begun: Sequence[int] = ()) -> str:
    pieces: list[str] = []
    runner.answer(ask.model_copy(update={"begun": list(begun)}), _never, pieces.append)
    return "".join(pieces)


def prepare(runner: ModelRunner, ask: Chat | Complete, count: int) -> list[Beginning]:
    return list(itertools.islice(runner.prepare(ask, _never), count))


which = st.integers(0, len(ASKS) - 1)
work = st.one_of(
    st.tuples(st.just("prepare"), which, st.integers(0, MOST + 2)),
    st.tuples(st.just("answer"), which, st.integers(0, MOST)),
    st.tuples(st.just("suggest"), which, st.just(0)),
    st.tuples(st.just("forget"), which, st.just(0)),
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(work, max_size=12))
def test_any_order_of_work_gives_the_replies_of_an_engine_that_prepared_nothing(
    runner: ModelRunner, plain: list[str], steps: list[tuple[str, int, int]]
) -> None:
    known: dict[int, list[Beginning]] = {}
    computed = wasted = 0
    runner.forget()
    runner.rows.take()
    for kind, index, count in steps:
        ask = ASKS[index]
        if kind == "prepare":
            beginnings = prepare(runner, ask, count)
            assert all(plain[index].startswith(b.text) for b in beginnings if not b.is_whole)
            assert all(plain[index] == b.text for b in beginnings if b.is_whole)
            known[index] = beginnings or known.get(index, [])
        elif kind == "answer":
            for beginning in known.get(index, [])[count : count + 1]:
                rest = answer(runner, ask, beginning.tokens)
                assert beginning.text + rest == plain[index]
            assert answer(runner, ask) == plain[index]
        elif kind == "suggest":
            runner.suggest("hello world", 3, _never)
        else:
            runner.forget()
        more, lost = runner.rows.take()
        computed, wasted = computed + more, wasted + lost
        assert wasted <= computed
        assert len(runner.rows) == len(runner._session.tokens)
    runner.forget()
    assert wasted + runner.rows.take()[1] <= computed


@pytest.mark.parametrize("index", range(len(ASKS)))
@pytest.mark.parametrize("prepared", [1, 4, MOST])
@pytest.mark.parametrize("shown", [1, 3])
def test_preparing_costs_no_row_more_when_the_question_is_asked(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, index: int, prepared: int, shown: int
) -> None:
    rows: list[int] = []
    forward = CpuBackend.forward

    def counting(backend: CpuBackend, tokens: Sequence[int], position: int) -> Logits:
        rows.append(len(tokens))
        return forward(backend, tokens, position)

    monkeypatch.setattr(CpuBackend, "forward", counting)
    fresh = ModelRunner.open(str(model_file), 256)
    answer(fresh, ASKS[index])
    expected, rows[:] = sum(rows), []
    runner = ModelRunner.open(str(model_file), 256)
    beginnings = prepare(runner, ASKS[index], prepared)
    answer(runner, ASKS[index], beginnings[min(shown, len(beginnings)) - 1].tokens)
    assert sum(rows) == expected
    runner.forget()
    assert runner.rows.take()[1] == 0, "every row became part of the reply"


@given(
    steps=st.lists(st.tuples(st.sampled_from(["add", "ahead", "cut", "use"]), st.integers(0, 9)))
)
def test_a_row_ends_as_used_or_as_wasted(steps: list[tuple[str, int]]) -> None:
    ledger = RowLedger()
    model: list[bool] = []
    computed = wasted = 0
    for kind, count in steps:
        if kind in ("add", "ahead"):
            ledger.add(count, ahead=kind == "ahead")
            model += [kind == "ahead"] * count
            computed += count * (kind == "ahead")
        elif kind == "cut":
            ledger.cut(count)
            wasted += sum(model[count:])
            model = model[:count]
        else:
            ledger.use(count)
            model = [False] * min(count, len(model)) + model[count:]
        assert len(ledger) == len(model)
    assert ledger.take() == (computed, wasted)
    assert ledger.take() == (0, 0)
