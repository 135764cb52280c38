# SPDX-License-Identifier: Apache-2.0
"""Hostile chat templates end in a typed error, soon and without much memory."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from engine.chat_template import ChatTemplate
from engine.errors import TemplateError
from engine.messages import Turn
from engine.template_budget import BUDGET, Budget, TooExpensive
from engine.tokenizer import Tokenizer
from tests.helpers.chat_templates import FAMILIES, HOSTILE
from tests.helpers.vocabularies import bpe_spec

TOKENIZER = Tokenizer.from_spec(bpe_spec("qwen2"))
TURNS = [Turn(role="user", content="my secret words " * 60)]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_templates_are_refused(name: str) -> None:
    started = time.thread_time()
    with pytest.raises(TemplateError) as caught:
        ChatTemplate(HOSTILE[name]).encode(TURNS, TOKENIZER)
    # About 0.5 s at most when measured; the margin is for slow machines, not for hangs.
    assert time.thread_time() - started < 5
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["a doubled string", "joining", "splitting", "long straight code"])
def test_memory_stays_bounded(name: str) -> None:
    template = ChatTemplate(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError):
            template.encode(TURNS, TOKENIZER)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20


@pytest.mark.parametrize("family", FAMILIES)
def test_the_longest_chats_fit_into_the_budget(family: str) -> None:
    """As much as fits into the largest context that published models have, 128k tokens."""
    turns = [
        Turn(role="assistant" if index % 2 else "user", content="word " * 1_000)
        for index in range(41)
    ]
    ids = ChatTemplate(FAMILIES[family]).encode(turns, TOKENIZER)
    assert len(ids) > 1_000


def test_what_a_budget_counts() -> None:
    budget = Budget(1_000)
    budget.spend(1_000)
    with pytest.raises(TooExpensive):
        budget.spend(1)
    shared = ["x"] * 10
    for value in ("a" * 2_000, [[shared] * 10] * 10, {"k": "a" * 2_000}, range(2_000)):
        with pytest.raises(TooExpensive):
            Budget(1_000).charge(value)
    assert Budget(1_000).charge(shared) is shared
    with pytest.raises(TooExpensive):
        Budget(1_000).join(["a" * 100] * 11)
    with pytest.raises(TooExpensive):
        Budget(1_000).replace("a" * 50, "a", "b" * 50)
    with pytest.raises(TooExpensive):
        Budget(1_000).repeat("ab", 10**18)
    assert Budget(1_000).replace("abc", "b", "xx") == "axxc"
    assert Budget().join([1, "a", None], "-") == "1-a-None"
    assert BUDGET >= 1 << 20
