# SPDX-License-Identifier: Apache-2.0
"""The companion's state as messages, and screens back from them."""

from __future__ import annotations

import base64

from app.companion.away import Away
from app.companion.state import CompanionState
from app.i18n import adopted
from app.ipc.messages import (
    BitmapScreen,
    Board,
    Lights,
    ReplyChanged,
    Screen,
    ScreenChanged,
    StateReport,
    TextScreen,
)
from firmware_bridge.display.frame import BitmapFrame, DisplayFrame, TextFrame
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb


def state_report(
    state: CompanionState,
    keyboard: str,
    paused_s: float | None,
    profile: str = "",
    is_profile_chosen: bool = False,
    away: Away | None = None,
) -> StateReport:
    """Without content. `keyboard` is the product name; the rest as in StateReport."""
    latency = state.latency
    return StateReport(
        mode=state.chosen,
        status=state.status.name.lower(),
        is_paused=state.is_paused,
        paused_s=paused_s if state.is_paused else None,
        is_busy=state.is_busy,
        engine=state.engine.value,
        engine_detail=state.engine_detail,
        model=state.model,
        keyboard=board(state, keyboard),
        dropped=state.dropped,
        error=state.error,
        latency_ms=None if latency is None else latency.milliseconds,
        profile=profile,
        is_profile_chosen=is_profile_chosen,
        keyboard_away=adopted("" if away is None else away.reason),
        is_left_open=away is not None and away.until_resumed,
    )


def board(state: CompanionState, name: str) -> Board | None:
    """The connected keyboard."""
    caps = state.keyboard
    if caps is None:
        return None
    return Board(
        name=name or "keyboard",
        width=caps.width,
        height=caps.height,
        rotation=caps.rotation,
        columns=caps.columns,
        rows=caps.rows,
        led_count=caps.led_count,
        build=caps.build,
    )


def reply_changed(state: CompanionState) -> ReplyChanged:
    """The reply to the newest question, so far."""
    asked = state.asked
    return ReplyChanged(question=asked.number, text=asked.text, end=asked.end, reason=asked.reason)


def screen_changed(state: CompanionState, keyboard: str) -> ScreenChanged:
    """What the keyboard was told last, bit for bit."""
    lights = state.lights
    screen = Screen(
        display=_display(state.frame),
        status=int(state.status),
        lights=Lights(
            fill=None if lights.fill is None else _triple(lights.fill),
            effect=lights.effect.name.lower(),
            leds={number: _triple(colour) for number, colour in lights.leds.items()},
        ),
    )
    return ScreenChanged(keyboard=board(state, keyboard), screen=screen)


def frame_of(screen: Screen) -> DisplayFrame | None:
    """The frame of a screen; None while the keyboard shows its own.

    Raises:
        ValueError: it holds no frame.
    """
    display = screen.display
    if display is None:
        return None
    if isinstance(display, TextScreen):
        return TextFrame(display.rows)
    pages = base64.b64decode(display.pages, validate=True)
    return BitmapFrame(display.width, display.height, pages)


def overlay_of(screen: Screen) -> LightOverlay:
    """The lights of a screen.

    Raises:
        ValueError: a colour or effect that there is not.
    """
    lights = screen.lights
    if lights.effect.upper() not in LightEffect.__members__:
        raise ValueError("there is no such effect")
    return LightOverlay(
        None if lights.fill is None else Rgb(*lights.fill),
        LightEffect[lights.effect.upper()],
        {number: Rgb(*colour) for number, colour in lights.leds.items()},
    )


def _display(frame: DisplayFrame) -> TextScreen | BitmapScreen | None:
    if isinstance(frame, BitmapFrame):
        pages = base64.b64encode(frame.pages).decode()
        return BitmapScreen(width=frame.width, height=frame.height, pages=pages)
    return TextScreen(rows=frame.rows) if frame.rows else None


def _triple(colour: Rgb) -> tuple[int, int, int]:
    return colour.red, colour.green, colour.blue
