# SPDX-License-Identifier: Apache-2.0
"""What is seen instead of a mode: pause, an engine that is not there; and short notices over any view."""

from __future__ import annotations

from collections.abc import Mapping

from app.companion.lights import DARK, Cue
from app.companion.modes.base import View
from app.companion.picture import Size, clipped, padded, tail, wrapped
from engine.client import EngineState
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status

PAUSED_VIEW = View(("paused", "", "No keys are read."), Status.PAUSED, DARK)


def engine_view(
    state: EngineState, detail: str, typed: str, size: Size, palette: Mapping[Cue, LightOverlay]
) -> View | None:
    """What to show while the engine cannot answer; None if it can. The last line shows what is typed."""
    match state:
        case EngineState.READY:
            return None
        case EngineState.STOPPED:
            text, status, lights = "no engine", Status.LISTENING, DARK
        case EngineState.STARTING | EngineState.LOADING:
            text, status, lights = "loading model", Status.LISTENING, palette[Cue.LOADING]
        case EngineState.RESTARTING:
            text, status, lights = (
                "engine stopped, restarting", Status.ERROR, palette[Cue.TROUBLE],
            )  # fmt: skip
        case EngineState.FAILED:
            text, status, lights = f"engine failed: {detail}", Status.ERROR, palette[Cue.TROUBLE]
    lines = padded(wrapped(text, size), size.rows - 1)
    return View((*lines, *(tail(typed, size, 1) if typed else [])), status, lights)


def with_notice(view: View, notice: str, size: Size) -> View:
    """`view` with `notice` in its last line."""
    lines = (*padded(view.lines, size.rows - 1), clipped(notice, size.columns))
    return View(lines, view.status, view.lights)
