# SPDX-License-Identifier: Apache-2.0
"""Word candidates: exact numbers with a scripted model, and sane behaviour for any text."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cpu.backend import CpuBackend
from engine.errors import ContextOverflowError, OperationCancelledError
from engine.formats.open import open_model
from engine.session import Session
from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary
from engine.wordbreak import WordState, read_continuation
from engine.words import MAX_OPEN, MAX_ROUNDS, find_open_word, suggest_words
from tests.helpers.gguf_writer import make_tiny_gguf
from tests.helpers.memory_source import MemorySource
from tests.helpers.scripted_backend import Script, ScriptedBackend


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("words")


@pytest.fixture(scope="module")
def vocabulary(folder: Path) -> Vocabulary:
    path = folder / "tiny.gguf"
    make_tiny_gguf(path)
    source = open_model(path)
    tokenizer = Tokenizer.from_spec(source.tokenizer)
    source.close()
    return Vocabulary(tokenizer)


@pytest.fixture(scope="module")
def sentencepiece(folder: Path) -> Vocabulary:
    path = folder / "sentencepiece.gguf"
    make_tiny_gguf(path, tokenizer_model="llama")
    source = open_model(path)
    tokenizer = Tokenizer.from_spec(source.tokenizer)
    source.close()
    return Vocabulary(tokenizer)


def suggest(vocabulary: Vocabulary, script: Script, text: str, count: int = 3) -> dict[str, float]:
    """Candidates of a scripted model, in falling order."""
    session = Session(ScriptedBackend(vocabulary.tokenizer, script), vocabulary.size)
    result = suggest_words(session, vocabulary, text, count)
    assert len(result.candidates) <= count
    return {candidate.text: candidate.probability for candidate in result.candidates}


def approximately(**values: float) -> object:
    return pytest.approx({name.replace("_", " "): value for name, value in values.items()})


# ------------------------------------------------------------------------- exact numbers


def test_after_a_space_the_space_belongs_to_the_word(vocabulary: Vocabulary) -> None:
    script = {
        b"hello": {b" the": 0.4, b" you": 0.2, b",": 0.3},
        b"hello the": {b" ": 0.5, b".": 0.1, b"n": 0.4},
        b"hello then": {b" ": 1.0},
        b"hello you": {b" ": 0.75, b"r": 0.25},
        b"hello your": {b" ": 0.5},  # the other half ends the turn, and so the word
    }
    expected = approximately(the=0.4 / 0.6 * 0.6, then=0.4 / 0.6 * 0.4, you=0.2 / 0.6 * 0.75)
    assert suggest(vocabulary, script, "hello ") == expected


def test_without_a_space_candidates_bring_their_own(vocabulary: Vocabulary) -> None:
    script = {
        b"hello": {b" the": 0.4, b",": 0.5},
        b"hello,": {b" you": 0.5, b"\n": 0.5},
        b"hello, you": {b".": 1.0},
    }
    assert suggest(vocabulary, script, "hello,") == approximately(_you=0.5)


def test_inside_a_word_the_search_goes_back_to_where_it_began(vocabulary: Vocabulary) -> None:
    # The tokens of " hel" are " ", "he", "l"; " hello" is one token.
    script = {
        b"you": {b" hello": 0.3, b" ": 0.2, b" the": 0.5},
        b"you hello": {b" ": 0.9, b"s": 0.1},
        b"you hellos": {b".": 1.0},
        b"you ": {b"he": 0.5, b"hello": 0.25, b"h": 0.25},
        b"you he": {b"l": 0.4, b"r": 0.6},
        b"you hel": {b"d": 1.0},
        b"you held": {b" ": 1.0},
    }
    typed = 0.3 + 0.2 * 0.25 + 0.2 * 0.5 * 0.4  # all that begins with " hel"
    hello = 0.3 + 0.2 * 0.25  # two ways to write it
    expected = approximately(
        lo=hello * 0.9 / typed, d=0.2 * 0.5 * 0.4 / typed, los=hello * 0.1 / typed
    )
    assert suggest(vocabulary, script, "you hel") == expected


def test_a_word_may_begin_otherwise_than_the_tokeniser_would(vocabulary: Vocabulary) -> None:
    # The tokeniser writes " an" as " ", "an"; the model here writes " ant" as " a", "n", "t".
    script = {
        b"you": {b" a": 0.4, b" ": 0.1},
        b"you a": {b"n": 0.5},
        b"you an": {b"t": 0.8},
        b"you ant": {b" ": 1.0},
    }
    assert find_open_word(vocabulary, "you an").spelling[0] == vocabulary.starting_with(b" ")[0]
    assert suggest(vocabulary, script, "you an") == {"t": pytest.approx(0.8)}


def test_a_whole_word_goes_on_or_is_followed(vocabulary: Vocabulary) -> None:
    script = {
        b"you": {b" the": 0.8, b" a": 0.2},
        b"you the": {b"r": 0.25, b" world": 0.5, b".": 0.25},
        b"you ther": {b"e": 1.0},
        b"you there": {b".": 1.0},
        b"you the world": {b" ": 1.0},
    }
    expected = approximately(_world=0.5, re=0.25)
    assert suggest(vocabulary, script, "you the") == expected


def test_characters_are_never_cut(vocabulary: Vocabulary) -> None:
    good = "好".encode()
    parts = [good[:1], good[1:2], good[2:]]
    script = {
        b"": {parts[0]: 0.5, b"the": 0.1},
        parts[0]: {parts[1]: 0.5, b"\xff": 0.5},
        good[:2]: {parts[2]: 1.0},
        b"the": {b" ": 1.0},
    }
    assert suggest(vocabulary, script, "") == approximately(好=0.25, the=0.1)


def test_fewer_candidates_where_no_word_follows(vocabulary: Vocabulary) -> None:
    assert suggest(vocabulary, {b"hello": {b"!": 0.9, b"\n": 0.1}}, "hello") == {}
    assert suggest(vocabulary, {}, "hello xyz") == {}


def test_apostrophes_go_on_with_a_word(vocabulary: Vocabulary) -> None:
    script = {
        b"": {b"y": 1.0},
        b"y": {b"'": 0.5, b" ": 0.5},
        b"y'": {b"a": 0.5, b" ": 0.5},
        b"y'a": {b"ll": 1.0},
        b"y'all": {b" ": 1.0},
    }
    assert suggest(vocabulary, script, "y'") == {"all": pytest.approx(0.5)}


def test_special_tokens_are_no_words(vocabulary: Vocabulary) -> None:
    script = {b"hello,": {b"<|im_start|>": 0.9, b" a": 0.1}, b"hello, a": {b" ": 1.0}}
    assert suggest(vocabulary, script, "hello,") == approximately(_a=0.1)


# ------------------------------------------------------------------------------- the seam


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("", b""),
        ("hello", b"hello"),
        ("hello ", b" "),
        ("hello  ", b" "),
        ("hello\n", b""),
        ("hello the", b" the"),
        ("hello,the", b"the"),
        ("hello,", b""),
        ("   the", b" the"),
    ],
)
def test_open_part(vocabulary: Vocabulary, text: str, typed: bytes) -> None:
    word = find_open_word(vocabulary, text)
    assert word.typed == typed
    assert vocabulary.tokenizer.decode(word.settled).encode() + typed == text.encode()


@given(st.text(max_size=40))
def test_settled_and_open_make_the_text(vocabulary: Vocabulary, text: str) -> None:
    tokenizer = vocabulary.tokenizer
    word = find_open_word(vocabulary, text)
    assert b"".join(map(tokenizer.token_bytes, word.settled)) + word.typed == text.encode()
    whole = tokenizer.encode(text, add_special=False, parse_special=False)
    if word.spelling:
        assert [*word.settled, *word.spelling] == whole
    assert len(word.spelling) <= MAX_OPEN


@pytest.mark.parametrize("text", ["", "hello", "hello wor", "hello ", " hello", "日"])
def test_a_space_in_front_of_the_text_is_allowed_for(sentencepiece: Vocabulary, text: str) -> None:
    tokenizer = sentencepiece.tokenizer
    assert tokenizer.drops_first_space
    word = find_open_word(sentencepiece, text)
    spelled = b"".join(map(tokenizer.token_bytes, word.settled)) + word.typed
    assert spelled == b" " + text.encode()


def test_a_word_of_many_tokens_is_opened_at_its_end_only(vocabulary: Vocabulary) -> None:
    word = find_open_word(vocabulary, "xqzvxqzvxqzv")
    assert (len(word.settled), word.typed) == (7, b"vxqzv")


# ------------------------------------------------------------------------- any text at all


@pytest.fixture(scope="module")
def random_session(folder: Path, vocabulary: Vocabulary) -> Session:
    tiny = make_tiny_gguf(folder / "random.gguf", seed=3)
    return Session(
        CpuBackend(MemorySource(tiny.config, tiny.weights), 64, threads=1), vocabulary.size
    )


typed_text = st.one_of(
    st.text(max_size=20),
    st.text(alphabet="the hello wor'_12,.\n\t", max_size=30),
    st.text(alphabet="你好世界中国 ，。", max_size=10),
)


@settings(max_examples=60, deadline=None)
@given(text=typed_text, count=st.integers(1, 4))
def test_any_text(random_session: Session, vocabulary: Vocabulary, text: str, count: int) -> None:
    result = suggest_words(random_session, vocabulary, text, count)
    candidates = result.candidates
    assert len(candidates) <= count
    assert len({candidate.text for candidate in candidates}) == len(candidates)
    probabilities = [candidate.probability for candidate in candidates]
    assert probabilities == sorted(probabilities, reverse=True)
    assert all(0 < probability <= 1 for probability in probabilities)
    assert sum(probabilities) < 1 + 1e-6
    for candidate in candidates:
        judged = read_continuation(candidate.text.encode(), text[-1:])
        assert judged.text == candidate.text  # one whole word
        assert judged.state in (WordState.INSIDE, WordState.COMPLETE)
    widest = 2 * count * (MAX_ROUNDS + MAX_OPEN) + sum(range(MAX_OPEN))
    most = len(random_session.tokens) + MAX_ROUNDS * widest
    assert result.reused + result.computed <= most
    again = suggest_words(random_session, vocabulary, text, count)
    assert again.candidates == candidates
    assert again.reused == len(random_session.tokens)


def test_the_next_key_in_a_word_needs_no_prefill(
    random_session: Session, vocabulary: Vocabulary
) -> None:
    suggest_words(random_session, vocabulary, "hello you and the w", 3)
    held = random_session.tokens
    result = suggest_words(random_session, vocabulary, "hello you and the wo", 3)
    assert random_session.tokens == held
    assert result.reused == len(held)


def test_the_window_cuts_the_text_in_front(random_session: Session, vocabulary: Vocabulary) -> None:
    text = "hello " * 100 + "wor"
    with pytest.raises(ContextOverflowError):
        suggest_words(random_session, vocabulary, text, 3)
    suggest_words(random_session, vocabulary, text, 3, window=lambda tokens: tokens[-20:])
    hello = vocabulary.tokenizer.encode(" hello", add_special=False, parse_special=False)
    assert random_session.tokens == tuple(hello * 20)


def test_a_full_context_gives_what_it_can(vocabulary: Vocabulary) -> None:
    script = {b"hello": {b" the": 1.0}, b"hello the": {b" ": 1.0}}
    for room, expected in ((0, []), (1, [" the"])):
        backend = ScriptedBackend(vocabulary.tokenizer, script, max_context=1 + room)
        session = Session(backend, vocabulary.size)
        result = suggest_words(session, vocabulary, "hello,", 3, window=lambda _: [HELLO])
        assert [candidate.text for candidate in result.candidates] == expected


HELLO = 3 + 256 + 12  # the id of "hello" in the tiny tokeniser: special tokens, bytes, merges


def test_a_word_of_several_tokens_at_the_end_of_the_context(vocabulary: Vocabulary) -> None:
    script = {b"": {b"x": 1.0}, b"x": {b"q": 1.0}, b"xq": {b"z": 1.0}, b"xqz": {b"a": 1.0}}
    backend = ScriptedBackend(vocabulary.tokenizer, script, max_context=3)
    result = suggest_words(Session(backend, vocabulary.size), vocabulary, "xqz", 3)
    assert result.candidates == []  # the word's end lies beyond the context


def test_no_forward_is_spent_on_words_that_cannot_win(vocabulary: Vocabulary) -> None:
    script = {
        b"hello": {b" the": 0.6, b" you": 0.2},
        b"hello the": {b" ": 0.9, b"n": 0.1},
        b"hello then": {b" ": 1.0},
        b"hello you": {b" ": 0.5, b"r": 0.5},
        b"hello your": {b" ": 1.0},
    }
    backend = ScriptedBackend(vocabulary.tokenizer, script)
    result = suggest_words(Session(backend, vocabulary.size), vocabulary, "hello ", 1)
    assert [candidate.text for candidate in result.candidates] == ["the"]
    assert backend.forwards == 2  # "hello", and " the" beside " you"; 0.54 beats all that may come


def test_cancelled_between_forwards(vocabulary: Vocabulary) -> None:
    script = {b"hello": {b" the": 1.0}, b"hello the": {b"r": 1.0}}
    for looks in range(3):
        backend = ScriptedBackend(vocabulary.tokenizer, script)
        counter = itertools.count()
        with pytest.raises(OperationCancelledError):
            suggest_words(
                Session(backend, vocabulary.size),
                vocabulary,
                "hello ",
                3,
                lambda c=counter, n=looks: next(c) >= n,  # type: ignore[misc]
            )
        assert backend.forwards == looks


def test_a_session_of_another_vocabulary_is_refused(vocabulary: Vocabulary) -> None:
    session = Session(ScriptedBackend(vocabulary.tokenizer, {}), vocab_limit=100)
    with pytest.raises(ValueError, match="vocab_limit"):
        suggest_words(session, vocabulary, "hello", 3)


def test_texts_do_not_show_in_repr(vocabulary: Vocabulary) -> None:
    script = {b"hello": {b" world": 1.0}, b"hello world": {b" ": 1.0}}
    session = Session(ScriptedBackend(vocabulary.tokenizer, script), vocabulary.size)
    result = suggest_words(session, vocabulary, "hello w", 3)
    assert [candidate.text for candidate in result.candidates] == ["orld"]
    assert "orld" not in repr(result)


# ---------------------------------------------------------------------------- vocabulary


@given(st.one_of(st.binary(max_size=3), st.sampled_from([b"", b" ", b" w", b" wor", b"he"])))
def test_index_agrees_with_a_plain_search(vocabulary: Vocabulary, data: bytes) -> None:
    tokenizer = vocabulary.tokenizer
    spoken = {
        token: tokenizer.token_bytes(token)
        for token in range(tokenizer.vocab_size)
        if not tokenizer.is_special(token)
    }
    starting = {token for token, spelled in spoken.items() if spelled.startswith(data)}
    assert set(vocabulary.starting_with(data).tolist()) == starting
    beginnings = {
        token for token, spelled in spoken.items() if data.startswith(spelled) and spelled != data
    }
    found = vocabulary.beginnings_of(data)
    assert set(found) == beginnings
    lengths = [len(spoken[token]) for token in found]
    assert lengths == sorted(lengths, reverse=True)
