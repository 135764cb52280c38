# SPDX-License-Identifier: Apache-2.0
"""What is seen instead of a mode: pause, an engine that is not there; and short notices over any view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.companion.lights import DARK, Cue
from app.companion.modes.base import View
from app.companion.picture import Size, padded, tail, wrapped
from app.i18n import Translate, told
from engine.client import EngineState
from firmware_bridge.lights.overlay import LightOverlay
from firmware_bridge.protocol.messages import Status


def paused_view(size: Size, tr: Translate) -> View:
    """That nothing is read."""
    gap = [] if size.has_pixels else [""]
    lines = (tr("paused"), *gap, *wrapped(tr("No keys are read."), size))
    return View(lines, Status.PAUSED, DARK)


def engine_text(state: EngineState, detail: str, tr: Translate) -> str:
    """Why the engine cannot answer; empty if it can. `detail` is told where the person can do something."""
    match state:
        case EngineState.READY:
            return ""
        case EngineState.STOPPED:
            return tr("no engine")
        case EngineState.STARTING | EngineState.LOADING:
            return tr("loading model")
        case EngineState.RESTARTING:
            return tr("engine stopped, restarting")
        case EngineState.FAILED:
            return tr("engine failed: {reason}").format(reason=told(tr, detail))


def engine_view(
    state: EngineState, text: str, typed: str, size: Size, palette: Mapping[Cue, LightOverlay]
) -> View:
    """`text` of `engine_text`; the last line shows what is typed."""
    match state:
        case EngineState.STARTING | EngineState.LOADING:
            status, lights = Status.LISTENING, palette[Cue.LOADING]
        case EngineState.RESTARTING | EngineState.FAILED:
            status, lights = Status.ERROR, palette[Cue.TROUBLE]
        case _:
            status, lights = Status.LISTENING, DARK
    end = tail(typed, size, 1) if typed else []
    return View((*padded(wrapped(text, size), size.rows - len(end)), *end), status, lights)


def with_notice(view: View, notice: str, size: Size) -> View:
    """`view` with `notice` in its last lines, one if that is enough, or beside its art."""
    if view.art is not None:
        return replace(view, lines=(notice,))
    end = wrapped(notice, size)[: max(size.rows // 2, 1)]
    return replace(view, lines=(*padded(view.lines, size.rows - len(end)), *end), has_more=False)
