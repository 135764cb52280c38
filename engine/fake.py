# SPDX-License-Identifier: Apache-2.0
"""A scripted stand-in for a model: same commands, same events, same cancellation, no weights.

For tests, and to try a keyboard without a model. It gives the same answers every time and never
pretends to be a model: its name says what it is.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.errors import ModelFileError
from engine.messages import Candidate, Turn
from engine.serving import CancelCheck, Choice, ModelInfo, Reply, Suggestions

_WORDS = "the to and you that it is of in for on are with this have be not what can will they there"
# A "token" of the fake: a word with the white space in front of it.
_TOKEN = re.compile(r"\s*\S+|\s+")
_OPEN_WORD = re.compile(r"\w+$")


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

    def __init__(self, script: FakeScript, max_context: int) -> None:
        self._script = script
        self._held: list[str] = []
        self._info = ModelInfo("scripted replies (no model)", 0, max_context, "fake")

    @classmethod
    def open(cls, path: str, max_context: int) -> FakeModel:
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
        return cls(script, max_context)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def suggest(self, text: str, count: int, cancelled: CancelCheck) -> Suggestions:
        """The script's words in order; inside a word those that complete it."""
        tokens = _TOKEN.findall(text)
        reused = sum(1 for _ in itertools.takewhile(_same, zip(self._held, tokens, strict=False)))
        self._held = tokens[:reused]
        for token in tokens[reused:]:
            if cancelled():
                return Suggestions((), reused, len(self._held) - reused, cancelled=True)
            self._pause()
            self._held.append(token)
        words = self._continuations(text)[:count]
        candidates = [
            Candidate(text=word, probability=0.5 ** (rank + 1)) for rank, word in enumerate(words)
        ]
        return Suggestions(candidates, reused, len(tokens) - reused)

    def chat(
        self,
        turns: Sequence[Turn],
        max_tokens: int,
        cancelled: CancelCheck,
        emit: Callable[[str], None],
    ) -> Reply:
        """The script's replies in turn: one for each question in `turns`, then from the start again."""
        start = time.perf_counter()
        asked = sum(turn.role == "user" for turn in turns)
        tokens = _TOKEN.findall(self._script.replies[(asked - 1) % len(self._script.replies)])
        first_token_ms = 0.0
        for done, token in enumerate(tokens):
            if cancelled():
                return Reply("cancelled", done, first_token_ms)
            if done == max_tokens:
                return Reply("length", done, first_token_ms)
            self._pause()
            if done == 0:
                first_token_ms = (time.perf_counter() - start) * 1000.0
            emit(token)
        return Reply("stop", len(tokens), first_token_ms)

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
        self._held.clear()

    def close(self) -> None:
        self.forget()

    def _continuations(self, text: str) -> list[str]:
        open_word = _OPEN_WORD.search(text)
        if open_word is not None:
            begun = open_word.group()
            words = self._script.words
            return [w[len(begun) :] for w in words if w.startswith(begun) and w != begun]
        space = "" if not text or text[-1].isspace() else " "
        return [space + word for word in self._script.words]

    def _pause(self) -> None:
        time.sleep(self._script.token_ms / 1000.0)


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]
