# SPDX-License-Identifier: Apache-2.0
"""A scripted stand-in for a model: same commands, same events, same cancellation, no weights.

For tests, to try a keyboard without a model, and to see how the companion does with an engine of another
speed: every forward takes `token_ms`, spent asleep as if another device computed it, and cannot be stopped
in its middle. It gives the same answers every time and never pretends to be a model: its name says what
it is.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.errors import ModelFileError
from engine.ledger import RowLedger
from engine.messages import DEFAULT_WINDOW, Candidate, Chat, Complete, Turn
from engine.serving import Beginning, CancelCheck, Choice, ModelInfo, Reply, Suggestions

_WORDS = "the to and you that it is of in for on are with this have be not what can will they there"
# A "token" of the fake: a word with the white space in front of it.
_TOKEN = re.compile(r"\s*\S+|\s+")
_OPEN_WORD = re.compile(r"\w+$")
_PREFILL_CHUNK = 64  # tokens that one forward takes
_COMPLETION_WORDS = 16


class FakeScript(BaseModel):
    """What a FakeModel says. A JSON file of this shape takes the place of a model file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replies: list[str] = Field(
        default=["This is a scripted reply: no model is loaded."], min_length=1
    )
    words: list[str] = Field(default=_WORDS.split(), min_length=1)
    token_ms: float = Field(default=20.0, ge=0)
    load_ms: float = Field(default=0.0, ge=0)


class FakeModel:
    """A LoadedModel that follows a FakeScript."""

    def __init__(self, script: FakeScript, max_context: int, window: int = DEFAULT_WINDOW) -> None:
        self._script = script
        self._held: list[str] = []
        self._rows = RowLedger()
        self._prepared: list[str] = []  # the prompt whose reply may be held
        name = "scripted replies (no model)"
        self._info = ModelInfo(name, 0, max_context, "fake", min(window, max_context))

    @classmethod
    def open(cls, path: str, max_context: int, window: int = DEFAULT_WINDOW) -> FakeModel:
        """Read the script at `path` if it is a .json file; any other path gives the default script.

        Raises:
            ModelFileError: no valid script.
        """
        script = FakeScript()
        if path.endswith(".json"):
            try:
                script = FakeScript.model_validate_json(Path(path).read_bytes())
            except OSError as error:
                raise ModelFileError(path, "script", str(error.strerror)) from error
            except ValidationError as error:
                field = ".".join(str(part) for part in error.errors()[0]["loc"])
                raise ModelFileError(path, field, error.errors()[0]["msg"]) from error
        time.sleep(script.load_ms / 1000.0)
        return cls(script, max_context, window)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def rows(self) -> RowLedger:
        return self._rows

    def suggest(self, text: str, count: int, cancelled: CancelCheck, words: int = 1) -> Suggestions:
        """The script's words in order; inside a word those that complete it. Phrases go on in that order."""
        tokens = _TOKEN.findall(text)
        reused = self._cut(tokens)
        self._rows.use(reused)
        for end in range(reused, len(tokens)):
            if cancelled():
                return Suggestions((), reused, len(self._held) - reused, cancelled=True)
            self._reach(tokens[: end + 1])
        found = self._continuations(text, words)[:count]
        candidates = [
            Candidate(text=phrase, probability=0.5 ** (rank + 1))
            for rank, phrase in enumerate(found)
        ]
        return Suggestions(candidates, reused, len(tokens) - reused)

    def answer(
        self, ask: Chat | Complete, cancelled: CancelCheck, emit: Callable[[str], None]
    ) -> Reply:
        """The script's replies in turn: one for each question in a chat, then from the start again."""
        start = time.perf_counter()
        first_token_ms = 0.0
        prompt, tokens = self._prompt(ask), self._reply_to(ask)
        begun = len(ask.begun)
        if prompt != self._prepared:
            self._cut(prompt[:-1])
        self._prepared = []
        for done in range(begun, len(tokens)):
            if cancelled():
                return Reply("cancelled", done - begun, first_token_ms)
            if done == ask.max_tokens:
                return Reply("length", done - begun, first_token_ms)
            self._reach([*prompt, *tokens[:done]])
            if done == begun:
                first_token_ms = (time.perf_counter() - start) * 1000.0
            emit(tokens[done])
        return Reply("stop", len(tokens) - begun, first_token_ms)

    def prepare(self, ask: Chat | Complete, cancelled: CancelCheck) -> Iterator[Beginning]:
        """The beginning of what `answer` says."""
        prompt, tokens = self._prompt(ask), self._reply_to(ask)
        self._prepared = prompt
        for count in range(1, min(len(tokens), ask.max_tokens) + 1):
            if cancelled():
                return
            self._reach([*prompt, *tokens[: count - 1]], ahead=True)
            yield Beginning("".join(tokens[:count]), tuple(range(count)), is_whole=False)
        yield Beginning("".join(tokens), tuple(range(len(tokens))), is_whole=True)

    def choose(
        self, turns: Sequence[Turn], labels: Sequence[str], cancelled: CancelCheck
    ) -> Choice:
        """The first label that the last turn mentions, else the first label."""
        if cancelled():
            return Choice("", 0.0, cancelled=True)
        self._pause()
        said = turns[-1].content if turns else ""
        label = next((label for label in labels if label in said), labels[0])
        return Choice(label, 2.0 / (len(labels) + 1))

    def forget(self) -> None:
        self._cut([])
        self._prepared = []

    def close(self) -> None:
        self.forget()

    def _continuations(self, text: str, count: int) -> list[str]:
        """Phrases of `count` words, fewer at the end of the script."""
        words = self._script.words
        phrases = [" ".join(words[first : first + count]) for first in range(len(words))]
        open_word = _OPEN_WORD.search(text)
        if open_word is not None:
            begun = open_word.group()
            pairs = zip(words, phrases, strict=True)
            return [p[len(begun) :] for w, p in pairs if w.startswith(begun) and w != begun]
        space = "" if not text or text[-1].isspace() else " "
        return [space + phrase for phrase in phrases]

    def _prompt(self, ask: Chat | Complete) -> list[str]:
        if isinstance(ask, Complete):
            return _TOKEN.findall(ask.text)
        turns = [f"<{turn.role}> {turn.content}" for turn in ask.turns]
        return _TOKEN.findall("\n".join([*turns, "<assistant>"]))

    def _reply_to(self, ask: Chat | Complete) -> list[str]:
        """All tokens of the reply; a text goes on with some of the script's words, by its length."""
        if isinstance(ask, Chat):
            asked = sum(turn.role == "user" for turn in ask.turns)
            replies = self._script.replies
            return _TOKEN.findall(replies[(asked - 1) % len(replies)])
        words, first = self._script.words, len(ask.text.split())
        chosen = [words[(first + n) % len(words)] for n in range(_COMPLETION_WORDS)]
        space = "" if not ask.text or ask.text[-1].isspace() else " "
        return _TOKEN.findall(space + " ".join(chosen))

    def _cut(self, tokens: Sequence[str]) -> int:
        """Drop what does not begin `tokens`; how many of them are held."""
        same = sum(1 for _ in itertools.takewhile(_same, zip(self._held, tokens, strict=False)))
        del self._held[same:]
        self._rows.cut(same)
        return same

    def _reach(self, tokens: Sequence[str], *, ahead: bool = False) -> None:
        """Hold `tokens` at least, computing in as few forwards as it takes what is missing."""
        if self._held[: len(tokens)] != list(tokens):
            missing = tokens[self._cut(tokens) :]
            for start in range(0, len(missing), _PREFILL_CHUNK):
                self._pause()
                chunk = missing[start : start + _PREFILL_CHUNK]
                self._held += chunk
                self._rows.add(len(chunk), ahead=ahead)
        if not ahead:
            self._rows.use(len(tokens))

    def _pause(self) -> None:
        time.sleep(self._script.token_ms / 1000.0)


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]
