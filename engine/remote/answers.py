# SPDX-License-Identifier: Apache-2.0
"""What is read out of the answers of a server: names, texts, log-probabilities.

Formats: the completions, chat completions and models of the OpenAI API as vLLM and llama.cpp serve them.
Whatever has another shape counts as absent: the caller says what is missing.
"""

from __future__ import annotations

import math
from typing import Any

MAX_NAMES = 1000


def model_names(answer: Any) -> dict[str, int]:
    """Name and context length (0: not told) of each model in the answer to `/models`."""
    names: dict[str, int] = {}
    for entry in _list(_field(answer, "data"))[:MAX_NAMES]:
        name, length = _field(entry, "id"), _field(entry, "max_model_len")
        if isinstance(name, str) and name:
            names[name] = length if isinstance(length, int) and length > 0 else 0
    return names


def piece_of(event: Any) -> tuple[str, str]:
    """Text and finish reason ("" while there is none) of one event of a stream, or of a whole answer."""
    choice = _first(_field(event, "choices"))
    text = _field(choice, "text")
    for holder in ("delta", "message"):
        if not isinstance(text, str):
            text = _field(_field(choice, holder), "content")
    reason = _field(choice, "finish_reason")
    return text if isinstance(text, str) else "", reason if isinstance(reason, str) else ""


def first_token_chances(answer: Any) -> dict[str, float]:
    """Probability of each likely first token of the answer, by its text, the likeliest first.

    Completions have `logprobs.top_logprobs[0]`, an object; chats, and the completions of llama.cpp, have
    `logprobs.content[0].top_logprobs`, a list of objects.
    """
    logprobs = _field(_first(_field(answer, "choices")), "logprobs")
    told = _first(_field(logprobs, "top_logprobs"))
    pairs: list[tuple[Any, Any]]
    if isinstance(told, dict):
        pairs = list(told.items())
    else:
        listed = _list(_field(_first(_field(logprobs, "content")), "top_logprobs"))
        pairs = [(_field(entry, "token"), _field(entry, "logprob")) for entry in listed]
    chances: dict[str, float] = {}
    for token, logprob in pairs:
        if isinstance(token, str) and isinstance(logprob, int | float) and logprob <= 0:
            chances[token] = chances.get(token, 0.0) + math.exp(logprob)
    return dict(sorted(chances.items(), key=lambda pair: -pair[1]))


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
