# SPDX-License-Identifier: Apache-2.0
"""Session: what is reused, and that reuse never changes an answer."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.backend import Logits
from engine.cpu.backend import CpuBackend
from engine.errors import ContextOverflowError, OperationCancelledError
from engine.session import (
    PREFILL_CHUNK,
    FinishReason,
    Session,
    UpdateReport,
    common_prefix,
    largest,
    log_softmax,
)
from tests.helpers.memory_source import tiny_source

CONTEXT = 160
VOCAB = 97
TOLERANCE = 1e-4


class WatchedBackend(CpuBackend):
    """Counts the tokens of every forward; the next one fails if `fail` is set."""

    def __init__(self) -> None:
        super().__init__(tiny_source(heads=(9, 3)), CONTEXT, threads=1)
        self.calls: list[int] = []
        self.leaves_room = False
        self.roomy: list[bool] = []  # of every forward
        self.fail = False

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        if self.fail:
            raise RuntimeError("out of luck")
        self.calls.append(len(tokens))
        self.roomy.append(self.leaves_room)
        return super().forward(tokens, position)

    def leave_room(self, *, wanted: bool) -> None:
        self.leaves_room = wanted


@pytest.fixture(scope="module")
def fresh() -> Callable[[Sequence[int]], Logits]:
    """Logits of a full prefill, by a backend of its own."""
    backend = CpuBackend(tiny_source(heads=(9, 3)), CONTEXT, threads=1)
    return lambda tokens: backend.forward(tokens, 0)


@pytest.fixture(scope="module")
def shared() -> WatchedBackend:
    return WatchedBackend()


@pytest.fixture
def backend() -> WatchedBackend:
    return WatchedBackend()


@pytest.fixture
def session(backend: WatchedBackend) -> Session:
    return Session(backend)


def assert_same(actual: Logits, expected: Logits) -> None:
    np.testing.assert_allclose(actual, expected, atol=TOLERANCE, rtol=0)
    assert np.argmax(actual) == np.argmax(expected)


def cancel_after(looks: int) -> Callable[[], bool]:
    """False for the first `looks` looks, then True."""
    counter = itertools.count()
    return lambda: next(counter) >= looks


# ------------------------------------------------------------------------------ update


def test_only_what_follows_the_common_prefix_is_computed(
    session: Session, backend: WatchedBackend
) -> None:
    assert session.update([1, 2, 3, 4]) == UpdateReport(0, 4)
    assert session.update([1, 2, 3, 4, 5, 6]) == UpdateReport(4, 2)  # typed on
    assert session.update([1, 2, 3, 9]) == UpdateReport(3, 1)  # edited
    assert session.update([1, 2]) == UpdateReport(1, 1)  # cut off: its last token once more
    assert session.update([7, 2]) == UpdateReport(0, 2)
    assert backend.calls == [4, 2, 1, 1, 2]
    assert session.tokens == (7, 2)


def test_nothing_is_computed_if_nothing_changed(session: Session, backend: WatchedBackend) -> None:
    session.update([1, 2, 3])
    before = session.logits
    assert session.update([1, 2, 3]) == UpdateReport(3, 0)
    assert session.logits is before
    assert backend.calls == [3]


def test_long_text_is_computed_in_chunks(
    session: Session, backend: WatchedBackend, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    text = [i % VOCAB for i in range(CONTEXT)]
    assert session.update(text) == UpdateReport(0, CONTEXT)
    assert backend.calls == [PREFILL_CHUNK, PREFILL_CHUNK, CONTEXT - 2 * PREFILL_CHUNK]
    assert_same(session.logits, fresh(text))


def test_cancelled_between_chunks_keeps_what_was_computed(
    session: Session, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    text = [i % VOCAB for i in range(CONTEXT)]
    with pytest.raises(OperationCancelledError):
        session.update(text, cancel_after(1))
    assert session.tokens == tuple(text[:PREFILL_CHUNK])
    assert session.update(text) == UpdateReport(PREFILL_CHUNK, CONTEXT - PREFILL_CHUNK)
    assert_same(session.logits, fresh(text))


def test_cancelled_at_once_leaves_no_logits_of_another_text(session: Session) -> None:
    session.update([1, 2, 3])
    with pytest.raises(OperationCancelledError):
        session.update([1, 5], cancel_after(0))
    assert session.tokens == (1,)
    with pytest.raises(ValueError, match="no logits"):
        _ = session.logits


def test_a_failed_forward_leaves_a_usable_session(
    session: Session, backend: WatchedBackend, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    session.update([1, 2, 3])
    backend.fail = True
    with pytest.raises(RuntimeError, match="out of luck"):
        session.update([1, 2, 4])
    backend.fail = False
    assert session.tokens == (1, 2)
    assert session.update([1, 2, 4]) == UpdateReport(2, 1)
    assert_same(session.logits, fresh([1, 2, 4]))


def test_too_long_a_text_changes_nothing(session: Session) -> None:
    session.update([1, 2, 3])
    with pytest.raises(ContextOverflowError, match=f"do not fit the context of {CONTEXT}"):
        session.update([1] * (CONTEXT + 1))
    assert session.update([1, 2, 3]) == UpdateReport(3, 0)


def test_no_token_is_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        session.update([])


def test_forget_drops_everything(session: Session) -> None:
    session.update([1, 2, 3])
    session.forget()
    assert session.tokens == ()
    with pytest.raises(ValueError, match="no logits"):
        session.top(1)
    assert session.update([1, 2, 3]) == UpdateReport(0, 3)


token = st.integers(0, VOCAB - 1)
edit = st.one_of(
    st.tuples(st.just("append"), st.lists(token, min_size=1, max_size=12)),
    st.tuples(st.just("backspace"), st.integers(1, 6)),
    st.tuples(st.just("replace"), st.tuples(st.integers(0, CONTEXT), token)),
    st.tuples(st.just("insert"), st.tuples(st.integers(0, CONTEXT), token)),
    st.tuples(st.just("slide"), st.integers(1, 40)),
    st.tuples(st.just("generate"), st.integers(1, 5)),
    st.tuples(st.just("branches"), st.lists(st.lists(token, min_size=1, max_size=3), min_size=1)),
    st.tuples(st.just("choose"), st.just([[1, 2], [1, 3], [4]])),
    st.tuples(st.just("cancel"), st.integers(0, 2)),
)


def edited(text: list[int], kind: str, value: object) -> list[int]:
    """`text` after one edit; never empty, never longer than the context."""
    text = list(text)
    match kind, value:
        case "append", list(more):
            text += more
        case "backspace", int(count):
            del text[max(1, len(text) - count) :]
        case "replace", (int(at), int(new)):
            text[at % len(text)] = new
        case "insert", (int(at), int(new)):
            text.insert(at % (len(text) + 1), new)
        case "slide", int(count):
            text = text[min(count, len(text) - 1) :]
    return text[-CONTEXT:]


@settings(max_examples=60, deadline=None)
@given(start=st.lists(token, min_size=1, max_size=80), edits=st.lists(edit, max_size=10))
def test_any_edits_equal_a_full_prefill(
    shared: WatchedBackend,
    fresh: Callable[[Sequence[int]], Logits],
    start: list[int],
    edits: list[tuple[str, object]],
) -> None:
    session = Session(shared)
    session.forget()
    text = start
    session.update(text)
    for kind, value in edits:
        if kind == "generate" and isinstance(value, int):
            text = [*text, *session.generate(value, stop_ids=())][:CONTEXT]
        elif kind == "branches" and isinstance(value, list) and len(text) <= CONTEXT - 3:
            session.branches(value)
        elif kind == "choose" and isinstance(value, list) and len(text) <= CONTEXT - 2:
            session.choose(value)
        elif kind == "cancel" and isinstance(value, int):
            other = [(t + 1) % VOCAB for t in text]
            with contextlib.suppress(OperationCancelledError):
                session.update([*text[:5], *other[5:]], cancel_after(value))
        text = edited(text, kind, value)
        held = session.tokens
        report = session.update(text)
        assert session.tokens == tuple(text)
        assert report.reused + report.computed == len(text)
        assert report.reused >= min(common_prefix(held, text), len(text) - 1)
        assert_same(session.logits, fresh(text))


# ----------------------------------------------------------------------------- reading


class FlatBackend(CpuBackend):
    """Every logit of every row is the same, except token 0's, which is the lowest."""

    def __init__(self) -> None:
        super().__init__(tiny_source(), CONTEXT, threads=1)

    def forward(self, tokens: Sequence[int], position: int) -> Logits:
        logits = np.zeros_like(super().forward(tokens, position))
        logits[0] = -1
        return logits


def test_ties_go_to_the_lowest_id() -> None:
    session = Session(FlatBackend())
    session.update([1])
    assert [token for token, _ in session.top(3)] == [1, 2, 3]
    assert list(session.generate(3, stop_ids=())) == [1, 1, 1]
    assert session.choose([[5], [4], [0]])[0] == 0  # the lowest index, for labels


def test_top_is_the_softmax(session: Session) -> None:
    session.update([1, 2, 3])
    logits = session.logits.astype(np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum()
    top = session.top(VOCAB + 5)
    assert len(top) == VOCAB
    assert [t for t, _ in top] == np.argsort(-probabilities, kind="stable").tolist()
    np.testing.assert_allclose([np.exp(p) for _, p in top], np.sort(probabilities)[::-1])
    assert session.top(0) == []


@given(st.lists(st.integers(-3, 3), min_size=1), st.integers(-1, 12))
def test_largest_is_a_stable_sort(values: list[int], k: int) -> None:
    array = np.array(values, dtype=np.float64)
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[: max(0, k)]
    assert largest(array, k).tolist() == expected


def test_logits_cannot_be_written_to(session: Session) -> None:
    session.update([1])
    with pytest.raises(ValueError, match="read-only"):
        session.logits[0] = 1.0


def test_rows_beyond_the_tokeniser_are_never_chosen() -> None:
    wide = Session(WatchedBackend())
    wide.update([1, 2, 3])
    winner = wide.top(1)[0][0]
    assert winner > 0
    narrow = Session(WatchedBackend(), vocab_limit=winner)
    narrow.update([1, 2, 3])
    assert narrow.logits.shape == (winner,)
    assert all(token < winner for token, _ in narrow.top(VOCAB))
    assert next(narrow.generate(1, stop_ids=())) < winner
    assert narrow.branches([[1]]).shape == (1, winner)


# ---------------------------------------------------------------------------- generate


def finish(session: Session, *args: object, **options: object) -> tuple[list[int], FinishReason]:
    """Exhaust a generation: its tokens and why it ended."""
    generation = session.generate(*args, **options)  # type: ignore[arg-type]
    tokens: list[int] = []
    while True:
        try:
            tokens.append(next(generation))
        except StopIteration as end:
            return tokens, end.value


def test_generation_is_greedy(session: Session, fresh: Callable[[Sequence[int]], Logits]) -> None:
    text = [3, 1, 4]
    session.update(text)
    tokens, reason = finish(session, 12, stop_ids=())
    assert reason is FinishReason.LENGTH
    for token in tokens:
        assert token == np.argmax(fresh(text))
        text.append(token)


def test_generated_tokens_are_reused(session: Session) -> None:
    session.update([3, 1, 4])
    tokens, _ = finish(session, 6, stop_ids=())
    assert session.tokens == (3, 1, 4, *tokens[:-1])
    assert session.update([3, 1, 4, *tokens, 50]) == UpdateReport(3 + 5, 2)


def test_stop_tokens_end_it_unseen(session: Session) -> None:
    session.update([3, 1, 4])
    tokens, _ = finish(session, 6, stop_ids=())
    stop = next(t for t in tokens if t != tokens[0])
    session.update([3, 1, 4])
    seen, reason = finish(session, 6, stop_ids={stop})
    assert reason is FinishReason.STOP
    assert seen == tokens[: tokens.index(stop)]


def test_generation_is_cancelled_between_tokens(session: Session, backend: WatchedBackend) -> None:
    session.update([3, 1, 4])
    tokens, reason = finish(session, 50, (), cancel_after(2))
    assert reason is FinishReason.CANCELLED
    assert len(tokens) == 2
    assert backend.calls == [3, 1, 1]


def test_generation_ends_with_the_context(session: Session) -> None:
    session.update([5] * (CONTEXT - 2))
    tokens, reason = finish(session, 50, ())
    assert (len(tokens), reason) == (3, FinishReason.LENGTH)
    assert len(session.tokens) == CONTEXT


@pytest.mark.parametrize("ahead", [False, True])
def test_tokens_ahead_of_a_question_leave_a_processor_free(
    session: Session, backend: WatchedBackend, ahead: bool
) -> None:
    """Of a reply that nobody asked for yet, but for its first token, which is what the key waits for."""
    session.update([3, 1, 4], ahead=ahead)
    generation = session.generate(4, stop_ids=(), ahead=ahead)
    for _ in generation:
        assert not backend.leaves_room, "between two tokens anybody may compute"
    assert backend.roomy == [False, ahead, ahead, ahead]


def test_a_failed_token_gives_the_processor_back(session: Session, backend: WatchedBackend) -> None:
    session.update([3, 1, 4])
    generation = session.generate(4, stop_ids=(), ahead=True)
    next(generation)
    backend.fail = True
    with pytest.raises(RuntimeError):
        next(generation)
    assert not backend.leaves_room


def test_no_token_is_computed_that_nobody_asked_for(
    session: Session, backend: WatchedBackend
) -> None:
    session.update([3])
    generation = session.generate(10, stop_ids=())
    next(generation)
    generation.close()
    assert backend.calls == [1]
    assert finish(session, 0, stop_ids=()) == ([], FinishReason.LENGTH)


def test_generation_needs_a_text(session: Session) -> None:
    with pytest.raises(ValueError, match="no logits"):
        next(session.generate(1, stop_ids=()))


# ------------------------------------------------------------------------------ choose


def probabilities(
    fresh: Callable[[Sequence[int]], Logits], text: Sequence[int]
) -> NDArray[np.float64]:
    return np.exp(log_softmax(fresh(text)))


def test_labels_are_compared_by_their_first_tokens(
    session: Session, backend: WatchedBackend, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    session.update([3, 1, 4])
    index, shares = session.choose([[10, 2], [20], [30, 5, 6]])
    p = probabilities(fresh, [3, 1, 4])[[10, 20, 30]]
    np.testing.assert_allclose(shares, p / p.sum(), rtol=1e-4)
    assert index == np.argmax(p)
    assert backend.calls == [3]  # nothing beyond the text


def test_labels_with_a_common_beginning_are_compared_to_their_ends(
    session: Session, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    session.update([3, 1, 4])
    _, shares = session.choose([[10, 2, 7], [10, 2, 8], [10, 9], [20]])
    first = probabilities(fresh, [3, 1, 4])
    second = probabilities(fresh, [3, 1, 4, 10])
    third = probabilities(fresh, [3, 1, 4, 10, 2])
    ten = first[10] / (first[10] + first[20])
    two = second[2] / (second[2] + second[9])
    seven = third[7] / (third[7] + third[8])
    expected = [ten * two * seven, ten * two * (1 - seven), ten * (1 - two), 1 - ten]
    np.testing.assert_allclose(shares, expected, rtol=1e-4)
    assert sum(shares) == pytest.approx(1)
    assert session.tokens == (3, 1, 4)


def test_a_label_that_begins_another_ends_where_the_other_does_not_go_on(
    session: Session, fresh: Callable[[Sequence[int]], Logits]
) -> None:
    session.update([3, 1, 4])
    _, shares = session.choose([[10], [10, 2]])
    two = probabilities(fresh, [3, 1, 4, 10])[2]
    np.testing.assert_allclose(shares, [1 - two, two], rtol=1e-4)


def test_choosing_is_cancelled(session: Session) -> None:
    session.update([3, 1, 4])
    with pytest.raises(OperationCancelledError):
        session.choose([[10, 2], [10, 3]], cancel_after(1))
    assert session.tokens == (3, 1, 4)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], "at least one token"),
        ([[1], []], "at least one token"),
        ([[1, 2], [1, 2]], "the same tokens"),
        ([[1], [VOCAB]], "outside the vocabulary"),
        ([[1], [-1]], "outside the vocabulary"),
    ],
)
def test_bad_labels_are_refused(session: Session, labels: list[list[int]], reason: str) -> None:
    session.update([1])
    with pytest.raises(ValueError, match=reason):
        session.choose(labels)
