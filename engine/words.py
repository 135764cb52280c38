# SPDX-License-Identifier: Apache-2.0
"""Word candidates for a text, also inside a word.

A model trained on whole-word tokens guesses badly after the first half of a word: "I like app" ends
in the token " app", and what follows " app" in the training text is rarely "les". So the search goes
back to where the word began and looks for token sequences whose bytes agree with what was typed
("token healing", https://github.com/guidance-ai/guidance). From there it is a beam search:

- a path is a sequence of tokens after the text before the word; its probability is their product;
- a path that has reached the end of a word is a candidate, with the probability that the word ends
  there (the sum over all tokens that begin with a break);
- paths that add the same text are one candidate, with the sum of their probabilities, as each is
  another way for the model to write that text;
- each candidate's probability is divided by that of the typed beginning, so that it answers "given
  what was typed, how likely is this word".

If the typed word may be whole already, candidates that go on with the next word (" and") compete
with those that complete it ("les"). Candidates hold exactly one word, never only punctuation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import OperationCancelledError
from engine.session import Session, largest, log_softmax, never
from engine.tokenizer import Tokenizer
from engine.vocabulary import Vocabulary
from engine.wordbreak import (
    Continuation,
    WordState,
    is_unspaced,
    open_word_start,
    read_continuation,
)

Window: TypeAlias = Callable[[Sequence[int]], Sequence[int]]

# Forwards of one search. One token is added in each; the typed beginning needs none of its own.
MAX_ROUNDS = 4
# Tokens of the typed beginning that are open to be spelled differently.
MAX_OPEN = 5
# Ways that a path inside a word may go on.
_MAX_EXTENSIONS = 2


@dataclass(frozen=True, slots=True)
class WordCandidate:
    """`text` is to be appended as it is: the rest of a word, or a word with the space before it."""

    text: str = field(repr=False)
    probability: float


@dataclass(frozen=True, slots=True)
class WordSuggestions:
    """Candidates in falling probability; tokens found in the cache and tokens computed."""

    candidates: list[WordCandidate]
    reused: int
    computed: int


def whole(tokens: Sequence[int]) -> Sequence[int]:
    """The window that cuts nothing."""
    return tokens


def suggest_words(
    session: Session,
    vocabulary: Vocabulary,
    text: str,
    count: int,
    cancelled: Callable[[], bool] = never,
    window: Window = whole,
) -> WordSuggestions:
    """Up to `count` continuations of `text` by one word each. At most MAX_ROUNDS + 1 forwards.

    `window` cuts the tokens in front of the open word to those that the model is to see. The session
    afterwards holds these tokens, so the next keystroke in the same word computes no prefill.
    Special tokens in `text` are ordinary characters. Fewer candidates come back where the model
    expects no word, or no known token agrees with what was typed.

    Raises:
        ContextOverflowError: the window's tokens do not fit the session's context.
        ValueError: the session chooses among other tokens than the vocabulary has.
        OperationCancelledError: `cancelled()` held between two forwards.
    """
    word = find_open_word(vocabulary, text)
    tokens = with_start(vocabulary.tokenizer, window(word.settled))
    if not tokens:
        return WordSuggestions([], 0, 0)
    report = session.update(tokens, cancelled)
    if session.logits.size != vocabulary.size:
        raise ValueError("the session needs the vocabulary's size as its vocab_limit")
    search = _Search(vocabulary, word, text[-1:], count)
    computed = search.run(session, cancelled)
    return WordSuggestions(search.candidates(), report.reused, report.computed + computed)


@dataclass(frozen=True, slots=True)
class OpenWord:
    """Where a text is settled, and the bytes after that, which may be spelled by any tokens.

    `spelling` are the tokens that the tokeniser itself takes for `typed`; empty if it would also
    take others before.
    """

    settled: list[int] = field(repr=False)
    typed: bytes = field(repr=False)
    spelling: tuple[int, ...] = field(repr=False)


def find_open_word(vocabulary: Vocabulary, text: str) -> OpenWord:
    """Cut the word at the end of `text` off, with the space in front of it.

    The space goes with the word, also where no word was begun, because most tokens carry the space
    in front of their word. Of a word that takes more than MAX_OPEN tokens only the last ones are
    open; in a script without spaces, only the last token is.
    """
    tokenizer = vocabulary.tokenizer
    everything = _encode(tokenizer, text)
    start = open_word_start(text)
    if start == len(text) and text and is_unspaced(text[-1]):
        last = tokenizer.token_bytes(everything[-1]) if everything else b""
        if _is_text(last):  # not a fragment of a character
            return OpenWord(everything[:-1], last, tuple(everything[-1:]))
    if start and (text[start - 1] == " " or _joins(vocabulary, text[start - 1 :])):
        start -= 1
    settled = _encode(tokenizer, text[:start])
    if everything[: len(settled)] != settled:  # only where a tokeniser looks beyond a space
        return OpenWord(settled, _utf8(text[start:]), ())
    cut = max(len(settled), len(everything) - MAX_OPEN)
    spelling = everything[cut:]
    typed = b"".join(map(tokenizer.token_bytes, spelling))
    if not text and tokenizer.drops_first_space:
        typed = b" "  # the tokeniser puts it in front of the first word
    return OpenWord(everything[:cut], typed, tuple(spelling))


def _joins(vocabulary: Vocabulary, sign_and_word: str) -> bool:
    """Whether some token joins a sign to the beginning of the word after it, such as `(ba`."""
    return len(sign_and_word) > 1 and bool(len(vocabulary.starting_with(_utf8(sign_and_word))))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special=False, parse_special=False) if text else []


def with_start(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[int]:
    """BOS where the model wants it. A model needs some token before the first word of all."""
    ids = tokenizer.with_bos(list(tokens))
    if ids:
        return ids
    # Models without BOS saw this between the texts that they were trained on (GPT-2, SmolLM, Qwen).
    candidates = (tokenizer.special_id("<|endoftext|>"), tokenizer.bos_id, *tokenizer.eos_ids)
    return [token for token in candidates if token is not None][:1]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return bool(data)


@dataclass(frozen=True, slots=True)
class _Path:
    tokens: tuple[int, ...] = field(default=(), repr=False)
    logprob: float = 0.0
    data: bytes = field(default=b"", repr=False)  # what the tokens spell


class _Search:
    """One beam search. `after` is the last character of the text, "" if it has none."""

    def __init__(self, vocabulary: Vocabulary, word: OpenWord, after: str, count: int) -> None:
        self._vocabulary = vocabulary
        self._typed = typed = word.typed
        # The tokeniser's own way to begin the word is tried out whole, in the first forward: it is
        # the likeliest of all ways that need several tokens, and its tokens are known beforehand.
        self._beginnings = [word.spelling[:n] for n in range(1, len(word.spelling))]
        self._after = after
        self._count = count
        self._width = 2 * count
        self._found: dict[str, float] = {}  # text to append -> probability of `typed` and it
        self._typed_probability = 0.0 if typed else 1.0

    def run(self, session: Session, cancelled: Callable[[], bool]) -> int:
        """Search; returns the number of tokens computed."""
        computed = 0
        room = session.max_context - len(session.tokens)
        last = _Path(), session.log_probabilities()
        beginnings = [tokens for tokens in self._beginnings if len(tokens) <= room]
        paths = self._best(self._go_on(*last))
        for _ in range(min(MAX_ROUNDS, room)):
            paths = [path for path in paths if len(path.tokens) <= room]
            batch = [*beginnings, *(path.tokens for path in paths)]
            if not batch:
                break
            if cancelled():
                raise OperationCancelledError("the search for words was not finished")
            rows = [log_softmax(row) for row in session.branches(batch)]
            computed += sum(map(len, batch))
            longer: list[_Path] = []
            for tokens in beginnings:
                last = self._follow(last[0], tokens[-1:], last[1])[0], rows.pop(0)
                longer += self._go_on(*last)
            for path, row in zip(paths, rows, strict=True):
                longer += self._go_on(path, row)
            paths = self._best(longer)
            beginnings = []
        return computed

    def candidates(self) -> list[WordCandidate]:
        """The likeliest words found so far."""
        ranked = sorted(self._found.items(), key=lambda item: (-item[1], item[0]))
        return [
            WordCandidate(text, min(1.0, found / self._typed_probability))
            for text, found in ranked[: self._count]
        ]

    def _go_on(self, path: _Path, logprobs: NDArray[np.float64]) -> list[_Path]:
        """What may follow `path`, given the next token's log probabilities; notes finished words."""
        missing = self._typed[len(path.data) :]
        added = self._added(path)
        if added.state is WordState.INSIDE:
            breaks = self._vocabulary.breaks
            self._note(added.text, path.logprob, float(np.exp(logprobs[breaks]).sum()))
            inside = np.where(breaks, -np.inf, logprobs)
            return self._follow(path, largest(inside, _MAX_EXTENSIONS), logprobs)
        agreeing = self._vocabulary.starting_with(missing)
        if missing:
            share = float(np.exp(logprobs[agreeing]).sum())
            self._typed_probability += math.exp(path.logprob) * share
        # More than the width, because some of them turn out to begin no word.
        best = agreeing[largest(logprobs[agreeing], 4 * self._width)]
        # Of the tokens that hold only a part of it, the longest: BPE takes few tokens for a word.
        partial = self._vocabulary.beginnings_of(missing)[:1]
        return self._follow(path, [*best.tolist(), *partial], logprobs)

    def _follow(
        self, path: _Path, tokens: Iterable[int], logprobs: NDArray[np.float64]
    ) -> list[_Path]:
        token_bytes = self._vocabulary.tokenizer.token_bytes
        return [
            _Path(
                (*path.tokens, int(token)),
                path.logprob + float(logprobs[token]),
                path.data + token_bytes(int(token)),
            )
            for token in tokens
        ]

    def _best(self, paths: Iterable[_Path]) -> list[_Path]:
        """The paths worth computing: they may still beat the candidates that were found."""
        going_on: list[_Path] = []
        for path in paths:
            added = self._added(path)
            if added.state is WordState.COMPLETE:
                self._note(added.text, path.logprob, 1.0)
            elif added.state is not WordState.NOT_A_WORD and path.tokens not in self._beginnings:
                going_on.append(path)
        found = sorted(self._found.values(), reverse=True)
        bar = found[self._count - 1] if len(found) >= self._count else 0.0
        going_on = [path for path in going_on if math.exp(path.logprob) > bar]
        return sorted(going_on, key=lambda path: -path.logprob)[: self._width]

    def _added(self, path: _Path) -> Continuation:
        """What `path` adds to the typed bytes; a path that has not spelled them all adds nothing."""
        return read_continuation(path.data[len(self._typed) :], self._after)

    def _note(self, text: str, logprob: float, share: float) -> None:
        probability = math.exp(logprob) * share
        if probability > 0:
            self._found[text] = self._found.get(text, 0.0) + probability
