# SPDX-License-Identifier: Apache-2.0
"""What the engine child needs of a loaded model. ModelRunner is the real one, FakeModel the scripted one.

Every implementation passes tests/ipc/test_engine_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from engine.messages import Candidate, Turn

CancelCheck: TypeAlias = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`context_length` is what this run can hold: the smaller of the model's own and the one asked for."""

    name: str
    parameters: int
    context_length: int
    backend: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Candidates in falling probability; tokens whose KV rows were reused and computed."""

    candidates: Sequence[Candidate] = field(repr=False)
    reused: int
    computed: int
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """How a chat reply ended. `first_token_ms` is 0.0 if no token came."""

    reason: Literal["stop", "length", "cancelled"]
    tokens: int
    first_token_ms: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen label and its share among the labels; `label` is empty when cancelled."""

    label: str
    probability: float
    cancelled: bool = False


class LoadedModel(Protocol):
    """One model in memory. Used by one thread; `cancelled` is asked before every token.

    Every method may raise EngineError.
    """

    @property
    def info(self) -> ModelInfo: ...

    def suggest(self, text: str, count: int, cancelled: CancelCheck) -> Suggestions:
        """Up to `count` continuations of `text`, see messages.Suggest."""
        ...

    def chat(
        self,
        turns: Sequence[Turn],
        max_tokens: int,
        cancelled: CancelCheck,
        emit: Callable[[str], None],
    ) -> Reply:
        """Answer `turns`; `emit` gets each new, non-empty piece of text, never half a character."""
        ...

    def choose(
        self, turns: Sequence[Turn], labels: Sequence[str], cancelled: CancelCheck
    ) -> Choice:
        """The label that the model finds likeliest as the answer to `turns`."""
        ...

    def forget(self) -> None:
        """Drop every token and KV row that was derived from a person's text."""
        ...

    def close(self) -> None:
        """Free the weights. Safe to call twice."""
        ...
