# SPDX-License-Identifier: Apache-2.0
"""A LoadedModel whose model runs on a server with the OpenAI API.

Nothing is computed ahead: that would send every half-typed question there. Token counts are those of the
pieces in which the server tells its answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from engine.errors import OperationCancelledError
from engine.ledger import RowLedger
from engine.messages import DEFAULT_WINDOW, Candidate, Chat, Complete, Device, RemoteServer, Turn
from engine.remote.answers import first_token_chances, model_names, piece_of
from engine.remote.connection import Connection
from engine.remote.errors import RemoteAnswerError, RemoteRefusedError, RemoteSettingsError
from engine.serving import Beginning, CancelCheck, Choice, ModelInfo, Reply, Suggestions
from engine.texts import Text
from engine.window import fit_turns

_CHARS_PER_TOKEN: Final = 3  # on the safe side, for a tokeniser that we do not know
_WINDOW_CHARS_PER_TOKEN: Final = 4  # about what English has
_MOST_CHARS_PER_TOKEN: Final = 64  # a server that tells more does not keep to `max_tokens`
_TOKENS_PER_WORD: Final = 6
# How many alternatives servers give: vLLM up to 20, OpenAI up to 5 for completions.
_ALTERNATIVES: Final = (20, 5)
_MAX_KEY_BYTES: Final = 4096
_WORD: Final = re.compile(r"\s*(?:\w+(?:['’\-]\w+)*|[^\w\s]+)")


def _never() -> bool:
    return False


class RemoteModel:
    """See LoadedModel. For one thread.

    Suggestions are made from the last `window` tokens of a text, estimated. `alternatives` is how many likely
    tokens the server tells; 0: none, then no words are suggested.
    """

    def __init__(
        self, connection: Connection, name: str, max_context: int, window: int, alternatives: int
    ) -> None:
        self._connection = connection
        self._name = name
        self._max_context = max_context
        self._window = min(window, max_context)
        self._alternatives = alternatives
        self._rows = RowLedger()

    @classmethod
    def open(
        cls, server: RemoteServer | None, max_context: int, window: int = DEFAULT_WINDOW
    ) -> RemoteModel:
        """Connect, find the model, and find out whether it tells log-probabilities.

        Raises:
            RemoteSettingsError: no address, no such model, or the key cannot be read.
            RemoteUnreachableError, RemoteRefusedError, RemoteAnswerError.
        """
        if server is None or not server.url:
            raise RemoteSettingsError("no server is named: set remote.url in the settings")
        connection = Connection(server.url, _read_key(server.key_file))
        names = model_names(connection.get("/models", _never))
        name = server.model or next(iter(names), "")
        if name not in names:
            raise RemoteSettingsError(_no_such_model(connection.origin, name, list(names)))
        length = min(max_context, names[name] or max_context)
        return cls(connection, name, length, window, _find_alternatives(connection, name))

    @property
    def info(self) -> ModelInfo:
        origin = self._connection.origin
        note = Text("what you type goes to {origin}", origin=origin)
        if not self._alternatives:
            note = Text(
                "what you type goes to {origin}, which tells no probabilities: no words are suggested",
                origin=origin,
            )
        name = f"{self._name} at {origin.partition('//')[2]}"
        return ModelInfo(name, 0, self._max_context, Device.REMOTE.value, self._window, note)

    @property
    def rows(self) -> RowLedger:
        """As LoadedModel.rows; always empty."""
        return self._rows

    def suggest(self, text: str, count: int, cancelled: CancelCheck, words: int = 1) -> Suggestions:
        """As LoadedModel.suggest: the likely first tokens, each gone on with to the end of its word.

        The probability of a candidate is that of its first token.
        """
        if not self._alternatives or not text.strip():
            return Suggestions((), 0, 0)
        text = text[-_WINDOW_CHARS_PER_TOKEN * self._window :]
        prompt = text.rstrip()
        has_space, is_open = prompt != text, bool(re.search(r"\w$", text))
        found: dict[str, float] = {}
        try:
            for token, chance in self._first_tokens(prompt, cancelled).items():
                if not token.strip() or (token[0].isspace() and is_open):
                    continue
                if has_space and not token[0].isspace():
                    continue  # it would go on with the word before the space
                word = self._to_word_end(prompt, token, words, cancelled)
                word = word.lstrip() if has_space else word
                if word:
                    found[word] = found.get(word, 0.0) + chance
                if len(found) == count:
                    break
        except OperationCancelledError:
            return Suggestions((), 0, 0, cancelled=True)
        ranked = sorted(found.items(), key=lambda pair: -pair[1])
        return Suggestions([Candidate(text=t, probability=min(p, 1.0)) for t, p in ranked], 0, 0)

    def answer(
        self, ask: Chat | Complete, cancelled: CancelCheck, emit: Callable[[str], None]
    ) -> Reply:
        """As LoadedModel.answer."""
        start = time.perf_counter()
        pieces, chars, first_ms = 0, 0, 0.0
        most_chars = ask.max_tokens * _MOST_CHARS_PER_TOKEN
        path, body = self._body_of(ask)
        try:
            for event in self._connection.stream(path, body, cancelled):
                text, reason = piece_of(event)
                if text:
                    pieces += 1
                    chars += len(text)
                    first_ms = first_ms or (time.perf_counter() - start) * 1000.0
                    emit(text)
                if reason or chars > most_chars:
                    ended = "stop" if reason == "stop" else "length"
                    return Reply(ended, pieces, first_ms)  # type: ignore[arg-type]
        except OperationCancelledError:
            return Reply("cancelled", pieces, first_ms)
        return Reply("stop", pieces, first_ms)

    def prepare(self, ask: Chat | Complete, cancelled: CancelCheck) -> Iterator[Beginning]:
        """As LoadedModel.prepare: nothing, so that only what is asked goes to the server."""
        return iter(())

    def choose(
        self, turns: Sequence[Turn], labels: Sequence[str], cancelled: CancelCheck
    ) -> Choice:
        """As LoadedModel.choose: by the first token where the server tells probabilities, else by the
        text of its answer, whose probability then counts as 1.
        """
        body = self._chat_body(turns, 8)
        if self._alternatives:
            body |= {"logprobs": True, "top_logprobs": self._alternatives}
        try:
            answer = self._connection.post("/chat/completions", body, cancelled)
        except OperationCancelledError:
            return Choice("", 0.0, cancelled=True)
        chances = dict.fromkeys(labels, 0.0)
        for token, chance in first_token_chances(answer).items():
            start = token.strip().lower()
            for label in labels if start else ():
                if label.lower().startswith(start):
                    chances[label] += chance
        said = piece_of(answer)[0].strip().lower()
        if not any(chances.values()):
            chances = {label: float(said.startswith(label.lower())) for label in labels}
        best = max(labels, key=lambda label: chances[label])
        if not chances[best]:
            raise RemoteAnswerError(
                Text("{origin} chose none of the labels", origin=self._connection.origin)
            )
        return Choice(best, chances[best] / sum(chances.values()))

    def forget(self) -> None:
        """As LoadedModel.forget: nothing is held here. What the server keeps is up to the server."""

    def close(self) -> None:
        """As LoadedModel.close."""

    def _first_tokens(self, prompt: str, cancelled: CancelCheck) -> dict[str, float]:
        body = self._completion_body(prompt, 1) | {"logprobs": self._alternatives}
        return first_token_chances(self._connection.post("/completions", body, cancelled))

    def _to_word_end(self, prompt: str, token: str, words: int, cancelled: CancelCheck) -> str:
        """`token` and what follows it, up to the end of the `words`-th word."""
        body = self._completion_body(prompt + token, words * _TOKENS_PER_WORD)
        text = token + piece_of(self._connection.post("/completions", body, cancelled))[0]
        end = 0
        for _ in range(words):
            match = _WORD.match(text, end)
            if match is None or "\n" in match[0]:
                break
            end = match.end()
        return text[:end]

    def _body_of(self, ask: Chat | Complete) -> tuple[str, dict[str, Any]]:
        match ask:
            case Chat(turns=turns):
                return "/chat/completions", self._chat_body(turns, ask.max_tokens)
            case Complete(text=text):
                kept = text[-_CHARS_PER_TOKEN * self._max_context // 2 :]
                return "/completions", self._completion_body(kept, ask.max_tokens)

    def _chat_body(self, turns: Sequence[Turn], max_tokens: int) -> dict[str, Any]:
        def size(kept: Sequence[Turn]) -> int:
            return sum(len(turn.content) for turn in kept) // _CHARS_PER_TOKEN

        limit = self._max_context - min(max_tokens, self._max_context // 2)
        kept = fit_turns(turns, size, limit)
        messages = [{"role": turn.role, "content": turn.content} for turn in kept]
        return self._common(max_tokens) | {"messages": messages}

    def _completion_body(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        return self._common(max_tokens) | {"prompt": prompt}

    def _common(self, max_tokens: int) -> dict[str, Any]:
        return {"model": self._name, "max_tokens": max_tokens, "temperature": 0}


def _find_alternatives(connection: Connection, name: str) -> int:
    """As many likely tokens as the server tells for a word that nobody typed."""
    for count in _ALTERNATIVES:
        body = {"model": name, "prompt": "The", "max_tokens": 1, "temperature": 0}
        try:
            answer = connection.post("/completions", body | {"logprobs": count}, _never)
        except (RemoteRefusedError, RemoteAnswerError):
            continue  # it wants fewer, or has no completions at all
        if first_token_chances(answer):
            return count
    return 0


def _no_such_model(origin: str, name: str, offered: Sequence[str]) -> Text:
    if not offered:
        return Text("{origin} has no model at all", origin=origin)
    return Text(
        "{origin} has no model {name}; it offers: {offered}",
        origin=origin,
        name=name,
        offered=", ".join(offered[:5]),
    )


def _read_key(file: str | None) -> str:
    if file is None:
        return ""
    try:
        with Path(file).open("rb") as stream:
            key = stream.read(_MAX_KEY_BYTES + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RemoteSettingsError(
            Text("the key file {file}: {error}", file=file, error=type(error).__name__)
        ) from error
    if not key or not key.isprintable() or " " in key or len(key) > _MAX_KEY_BYTES:
        raise RemoteSettingsError(
            Text("the key file {file} must hold the key and nothing else", file=file)
        )
    return key
