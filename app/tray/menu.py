# SPDX-License-Identifier: Apache-2.0
"""The menu and the icon as pure functions of the host's state. Nothing here draws or does anything."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from app.i18n import Translate, told
from app.lifecycle.host import HostState
from app.settings import ModeName
from app.tray.limits import shortened
from engine.client import EngineState

_ROW_CHARS = 60


class Shape(enum.Enum):
    """The states of the icon; each has an outline of its own, so none is told by colour alone."""

    IDLE = "idle"
    BUSY = "busy"
    PAUSED = "paused"
    LOADING = "loading"
    NO_KEYBOARD = "no-keyboard"
    TROUBLE = "trouble"


class Action(enum.Enum):
    """What a row does. Those of modes and pauses are in pairs with their values below."""

    OPEN = "open"
    ASK = "ask"
    CANCEL = "cancel"
    COPY_REPLY = "copy-reply"
    SUGGEST = "suggest"
    CHAT = "chat"
    REACT = "react"
    PAUSE_15 = "pause-15"
    PAUSE_60 = "pause-60"
    PAUSE = "pause"
    RESUME = "resume"
    LOAD_MODEL = "load-model"
    UNLOAD_MODEL = "unload-model"
    SETTINGS = "settings"
    DIAGNOSTICS = "diagnostics"
    LOG_FOLDER = "log-folder"
    QUIT = "quit"


MODE_OF = {
    Action.SUGGEST: ModeName.SUGGEST,
    Action.CHAT: ModeName.CHAT,
    Action.REACT: ModeName.REACT,
}
MINUTES_OF = {Action.PAUSE_15: 15, Action.PAUSE_60: 60, Action.PAUSE: None}


@dataclass(frozen=True, slots=True)
class ChooseProfile:
    """Work by this profile; None: by the one that fits."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row. Without an action and rows it only tells something; without text it is a line."""

    text: str = ""
    action: Action | ChooseProfile | None = None
    rows: tuple[Row, ...] = ()
    checked: bool | None = None
    is_default: bool = False


LINE = Row()


def menu(state: HostState, tr: Translate) -> tuple[Row, ...]:
    """The whole menu, from top to bottom."""
    companion = state.companion
    can_cancel = companion.is_busy
    return (
        Row(keyboard_text(state, tr)),
        Row(engine_text(state, tr)),
        *((Row(profile_text(state, tr)),) if state.profile else ()),
        LINE,
        *((Row(tr("Cancel"), Action.CANCEL),) if can_cancel else ()),
        Row(tr("Open Thock"), Action.OPEN, is_default=True),
        *(() if can_cancel else (Row(tr("Ask…"), Action.ASK),)),
        *((Row(tr("Copy last reply"), Action.COPY_REPLY),) if companion.reply else ()),
        Row(tr("Mode"), rows=_modes(companion.chosen, tr)),
        *((Row(tr("Profile"), rows=_profiles(state, tr)),) if state.settings.profiles else ()),
        _pause(state, tr),
        _model(companion.engine, tr),
        LINE,
        Row(tr("Settings…"), Action.SETTINGS),
        Row(
            tr("Diagnostics"),
            rows=(
                Row(tr("Check this computer…"), Action.DIAGNOSTICS),
                Row(tr("Open log folder"), Action.LOG_FOLDER),
            ),
        ),
        Row(tr("Quit"), Action.QUIT),
    )


def shape(state: HostState) -> Shape:
    """What the icon says: what needs the person comes first."""
    companion = state.companion
    if state.waits_for_person:
        return Shape.PAUSED
    if companion.engine is EngineState.FAILED or companion.error:
        return Shape.TROUBLE
    if companion.keyboard is None:
        return Shape.NO_KEYBOARD
    match companion.engine:
        case EngineState.STARTING | EngineState.LOADING | EngineState.RESTARTING:
            return Shape.LOADING
        case _:
            return Shape.BUSY if companion.is_busy else Shape.IDLE


def tooltip(state: HostState, tr: Translate) -> str:
    """Two lines: the keyboard, the model."""
    return f"{keyboard_text(state, tr)}\n{engine_text(state, tr)}"


def keyboard_text(state: HostState, tr: Translate) -> str:
    """Name and display of the keyboard."""
    board = state.companion.keyboard
    if state.away is not None:
        return shortened(told(tr, state.away.reason), _ROW_CHARS)
    if board is None:
        return tr("No keyboard")
    name = shortened(told(tr, state.keyboard) or tr("Keyboard"), _ROW_CHARS)
    if state.companion.is_paused:
        return tr("{name} · paused").format(name=name)
    if not board.has_display:
        return tr("{name} · no display").format(name=name)
    return f"{name} · {board.width}×{board.height}"


def engine_text(state: HostState, tr: Translate) -> str:
    """The model and what it does."""
    companion = state.companion
    model = companion.model or tr("Model")
    match companion.engine:
        case EngineState.STOPPED:
            text = tr("No model loaded")
        case EngineState.STARTING | EngineState.LOADING:
            text = tr("Loading the model")
        case EngineState.RESTARTING:
            text = tr("The model is started again")
        case EngineState.FAILED:
            text = tr("No model: {reason}").format(reason=told(tr, companion.engine_detail))
        case EngineState.READY if companion.is_busy:
            text = tr("{model} · answers").format(model=model)
        case EngineState.READY:
            text = tr("{model} · ready").format(model=model)
    return shortened(text, _ROW_CHARS)


def profile_text(state: HostState, tr: Translate) -> str:
    """The profile that holds over the settings now."""
    return shortened(tr("Profile: {name}").format(name=state.profile), _ROW_CHARS)


def mode_texts(tr: Translate) -> dict[ModeName, str]:
    """The modes in words."""
    return {
        ModeName.SUGGEST: tr("Suggestions"),
        ModeName.CHAT: tr("Chat"),
        ModeName.REACT: tr("Moods"),
    }


def _modes(mode: ModeName, tr: Translate) -> tuple[Row, ...]:
    texts = mode_texts(tr)
    return tuple(Row(texts[name], action, checked=name is mode) for action, name in MODE_OF.items())


def _profiles(state: HostState, tr: Translate) -> tuple[Row, ...]:
    chosen = state.profile if state.is_profile_chosen else None
    automatic = Row(tr("Automatic"), ChooseProfile(None), checked=chosen is None)
    named = (
        Row(shortened(name, _ROW_CHARS), ChooseProfile(name), checked=name == chosen)
        for name in state.settings.profiles
    )
    return (automatic, *named)


def _pause(state: HostState, tr: Translate) -> Row:
    if state.waits_for_person:
        return Row(tr("Resume"), Action.RESUME)
    return Row(
        tr("Pause"),
        rows=(
            Row(tr("15 minutes"), Action.PAUSE_15),
            Row(tr("1 hour"), Action.PAUSE_60),
            Row(tr("Until I resume"), Action.PAUSE),
        ),
    )


def _model(engine: EngineState, tr: Translate) -> Row:
    if engine in (EngineState.STOPPED, EngineState.FAILED):
        return Row(tr("Load model"), Action.LOAD_MODEL)
    return Row(tr("Unload model"), Action.UNLOAD_MODEL)
