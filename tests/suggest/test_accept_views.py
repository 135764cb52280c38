# SPDX-License-Identifier: Apache-2.0
"""What suggest mode looks like with the accept key on, as the firmware core draws it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.i18n import Language
from app.settings import Settings, SuggestSettings
from firmware_bridge.display.frame import BitmapFrame
from firmware_bridge.firmware.virtual_core import BoardConfig
from firmware_bridge.keys.usage import Usage
from tests.helpers.board_desk import BoardDesk
from tests.helpers.golden import assert_sheet

BOARDS = {
    "128x32": BoardConfig(panel_width=128, panel_height=32),
    "128x64": BoardConfig(panel_width=128, panel_height=64),
    "64x48": BoardConfig(panel_width=64, panel_height=48),
}
ACCEPT = 4


def typed(desk: BoardDesk, text: str) -> None:
    desk.type(text, gap_s=0.005)
    desk.advance(0.1)


def rest_of_a_word(desk: BoardDesk) -> None:
    typed(desk, "Please bring the hel")
    desk.suggest(("p", 0.61), ("met", 0.2), ("icopter", 0.05))


def next_word(desk: BoardDesk) -> None:
    typed(desk, "good")
    desk.suggest((" morning", 0.5), ("ness", 0.25), (" evening", 0.1))


def phrases(desk: BoardDesk) -> None:
    typed(desk, "In ")
    desk.suggest(("New York", 0.31), ("the meantime", 0.2), ("fact", 0.05))


def refused(desk: BoardDesk) -> None:
    typed(desk, "a ")
    desk.suggest(("café", 0.61), ("caf", 0.2))
    desk.lab.core.macro_event(ACCEPT, True, desk.lab.ms)
    desk.advance(0.05)


def cursor_inside(desk: BoardDesk) -> None:
    typed(desk, "hello wrold")
    for _ in range(3):
        for pressed in (True, False):
            desk.lab.key(Usage.LEFT, 9, 9, pressed=pressed)
            desk.advance(0.02)


SCENES: tuple[Callable[[BoardDesk], None], ...] = (
    rest_of_a_word, next_word, phrases, refused, cursor_inside,
)  # fmt: skip


def seen(scene: Callable[[BoardDesk], None], board: BoardConfig, language: Language) -> BitmapFrame:
    settings = Settings(language=language, suggest=SuggestSettings(accept=True, words=1))
    desk = BoardDesk(settings, board)
    scene(desk)
    desk.advance(0.1)
    return desk.panel


@pytest.mark.parametrize("display", BOARDS)
def test_views_look_as_they_did_when_they_were_looked_at(display: str) -> None:
    pictures = {
        f"{scene.__name__} {language}": seen(scene, BOARDS[display], language)
        for language in Language
        for scene in SCENES
    }
    assert_sheet(pictures, f"views/accept-{display}", across=len(SCENES))
