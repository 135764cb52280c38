# SPDX-License-Identifier: Apache-2.0
"""From the events of `app.ipc.messages` to what the window works with."""

from __future__ import annotations

from app.ipc.messages import Board, KeySeen, ScreenChanged, StateReport
from app.ipc.reports import frame_of, overlay_of
from app.settings_window.ports import BoardShape, CompanionView, Presence, PressedKey, Preview
from firmware_bridge.protocol.messages import Status


def view_of(state: StateReport) -> CompanionView:
    """The state without what the window does not show."""
    board = state.keyboard
    return CompanionView(
        presence=Presence.HERE,
        mode=state.mode.value,
        status=Status[state.status.upper()],
        is_paused=state.is_paused,
        away=state.keyboard_away,
        is_left_open=state.is_left_open,
        engine=state.engine,
        trouble=state.error or state.engine_detail,
        model=state.model,
        keyboard="" if board is None else board.name,
        board=_shape_of(board),
        paused_s=state.paused_s,
        latency_ms=state.latency_ms,
    )


def preview_of(event: ScreenChanged) -> Preview:
    """What the keyboard was told last.

    Raises:
        ValueError: no frame, or no colour.
    """
    return Preview(
        board=_shape_of(event.keyboard),
        display=frame_of(event.screen),
        status=Status(event.screen.status),
        lights=overlay_of(event.screen),
    )


def key_of(event: KeySeen) -> PressedKey:
    """The key that was waited for."""
    return PressedKey(event.row, event.column, event.keycode, event.macro)


def _shape_of(board: Board | None) -> BoardShape | None:
    return None if board is None else BoardShape(board.width, board.height, board.led_count)
