# SPDX-License-Identifier: Apache-2.0
"""What the engine child needs of a loaded model. ModelRunner is the real one, FakeModel the scripted one.

Every implementation passes tests/ipc/test_engine_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from engine.ledger import RowLedger
from engine.messages import Candidate, Chat, Complete, Turn

CancelCheck: TypeAlias = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`context_length` is what this run can hold: the smaller of the model's own and the one asked for.
    `window`, `note`: see messages.ModelLoaded.
    """

    name: str
    parameters: int
    context_length: int
    backend: str
    window: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Candidates in falling probability; tokens whose KV rows were reused and computed."""

    candidates: Sequence[Candidate] = field(repr=False)
    reused: int
    computed: int
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """How a reply ended. `tokens` counts new ones; `first_token_ms` is 0.0 if none came."""

    reason: Literal["stop", "length", "cancelled"]
    tokens: int
    first_token_ms: float


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a reply, see messages.ReplyReady."""

    text: str = field(repr=False)
    tokens: tuple[int, ...] = field(repr=False)
    is_whole: bool


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

    @property
    def rows(self) -> RowLedger:
        """What `prepare` computed, and what became of it."""
        ...

    def suggest(self, text: str, count: int, cancelled: CancelCheck, words: int = 1) -> Suggestions:
        """Up to `count` continuations of `text`, see messages.Suggest."""
        ...

    def answer(
        self, ask: Chat | Complete, cancelled: CancelCheck, emit: Callable[[str], None]
    ) -> Reply:
        """Reply to `ask` after the tokens it has begun with; `emit` gets each new, non-empty piece of
        text, never half a character. What `prepare` computed for the same ask is not computed again.
        """
        ...

    def prepare(self, ask: Chat | Complete, cancelled: CancelCheck) -> Iterator[Beginning]:
        """Compute the reply to `ask` ahead, one token for each beginning yielded; close it at any time."""
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
