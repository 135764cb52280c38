# SPDX-License-Identifier: Apache-2.0
"""The search for dead cycles passes over what lives, from the moment at which the model is loaded."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from app.bench import trigger
from app.companion import cycles, run
from app.companion.state import CompanionState
from app.demo import station
from app.lifecycle import program
from engine.client import EngineState


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(cycles.gc, "collect", lambda: made.append("collect"))
    monkeypatch.setattr(cycles.gc, "freeze", lambda: made.append("freeze"))
    return made


def _state(engine: EngineState) -> CompanionState:
    return cast(CompanionState, SimpleNamespace(engine=engine))


def test_once_when_the_model_is_loaded(calls: list[str]) -> None:
    observe = cycles.pass_over_what_lives()
    for engine in EngineState:
        if engine is not EngineState.READY:
            observe(_state(engine))
    assert calls == []
    for _ in range(3):
        observe(_state(EngineState.READY))
    assert calls == ["collect", "freeze"]


@pytest.mark.parametrize("module", [run, program, station, trigger])
def test_whatever_runs_a_companion_does_so(module: ModuleType) -> None:
    assert module.pass_over_what_lives is cycles.pass_over_what_lives
