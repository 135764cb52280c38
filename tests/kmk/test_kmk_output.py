# SPDX-License-Identifier: Apache-2.0
"""The KMK module on a stand-in board: text, status and lights reach the callbacks and KMK's own extensions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.light_messages import LightsFill, LightsOff, LightsRun
from firmware_bridge.protocol.messages import (
    Parts,
    Release,
    SetStatus,
    Status,
    TextRun,
)
from tests.helpers.kmk_board import (
    BOTH,
    KmkBoard,
    make_board,
)


def test_text_and_status_reach_the_callback_at_most_every_100_ms() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.loop(200)
    for number in range(50):
        board.show_rows(f"text {number}")
    board.loop(200)
    times = len(screen.shown)
    assert times <= 3
    assert screen.shown[-1] == (["text 49", ""], 0)
    board.do(SetStatus(Status.THINKING))
    board.loop(200)
    assert screen.shown[-1] == (["text 49", ""], 2)


def test_an_unchanged_picture_is_not_drawn_again() -> None:
    board, screen = make_board()
    board.do(BOTH)
    for _ in range(3):
        board.show_rows("same")
        board.loop(200)
    assert screen.shown == [(["same", ""], 0)]


def test_rows_are_built_of_runs() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(TextRun(0, 5, "right"), last=False)
    board.do(TextRun(1, 0, "second"), first=False)
    board.loop(200)
    assert screen.shown == [(["     right", "second"], 0)]
    board.do(TextRun(0, 0, "abcdef"), last=False)
    board.do(TextRun(0, 3, "X"), first=False)  # what stood right of it is cleared
    board.loop(200)
    assert screen.shown[1:] == [(["abcX", ""], 0)]


def test_lights_reach_the_callback_and_end() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(LightsRun(1, (Rgb(1, 2, 3),)))
    board.loop(60)
    assert screen.lights[-1] == [None, (1, 2, 3), None, None]
    board.do(LightsFill(LightEffect.SOLID, Rgb(9, 9, 9)))
    board.loop(60)
    assert screen.lights[-1] == [(9, 9, 9), (1, 2, 3), (9, 9, 9), (9, 9, 9)]
    count = len(screen.lights)
    for _ in range(10):
        board.loop(50)
    assert len(screen.lights) == count  # nothing moves, nothing is drawn
    board.do(LightsOff())
    board.loop(60)
    assert screen.lights[count:] == [None]


def test_moving_lights_are_drawn_20_times_a_second_at_most() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.do(LightsFill(LightEffect.BREATHE, Rgb(200, 0, 0)))
    for _ in range(1000):
        board.loop(1)
    assert 15 <= len(screen.lights) <= 21
    assert len({str(colours) for colours in screen.lights}) > 10


def test_release_gives_the_display_back() -> None:
    board, screen = make_board()
    board.do(BOTH)
    board.show_rows("text")
    board.loop(200)
    board.do(Release(Parts.DISPLAY))
    board.loop(200)
    assert screen.shown == [(["text", ""], 0), (None, 0)]


def test_text_takes_the_place_of_the_displays_entries() -> None:
    board = KmkBoard()
    own = [object()]
    drawn: list[tuple[object, list[object]]] = []
    display = SimpleNamespace(entries=own, prev_layer=3)
    display.render = lambda layer: drawn.append((layer, display.entries))
    with board.installed() as load:
        show = load("thock_kmk_output").DisplayText(display, lambda **entry: entry)
    show(["first", "second"], 0)
    assert display.entries == [
        {"text": "first", "x": 0, "y": 0},
        {"text": "second", "x": 0, "y": 14},
    ]
    show(["first line is cut here", ""], 2)
    assert display.entries[0]["text"] == "first line is cut he*"
    show(None, 1)
    assert display.entries[0]["text"] == " " * 20 + "o"
    show(None, 0)
    assert display.entries is own
    assert [layer for layer, _ in drawn] == [3] * 4
    show(None, 0)
    assert len(drawn) == 4


@pytest.mark.parametrize(("mode", "restored"), [(3, 3), (2, 1)])
def test_the_overlay_stops_the_animation_and_lets_it_go_on(mode: int, restored: int) -> None:
    board = KmkBoard()
    painted: list[tuple[tuple[int, int, int], int]] = []
    rgb = SimpleNamespace(
        animation_mode=mode, set_rgb=lambda colour, led: painted.append((colour, led)), show=list
    )
    with board.installed() as load:
        overlay = load("thock_kmk_output").RgbOverlay(rgb)
    overlay(None)
    assert rgb.animation_mode == mode
    overlay([None, (1, 2, 3)])
    overlay([(4, 5, 6), None])
    assert painted == [((1, 2, 3), 1), ((4, 5, 6), 0)]
    assert rgb.animation_mode == 2
    overlay(None)
    assert rgb.animation_mode == restored
