# SPDX-License-Identifier: Apache-2.0
"""The line above a picture in pixels: what becomes of the keys, the engine, the mode, a title."""

from __future__ import annotations

import enum
import tomllib
from dataclasses import dataclass
from importlib import resources

from app.settings import ModeName
from engine.client import EngineState
from firmware_bridge.display.canvas import Canvas, parse_art
from firmware_bridge.display.pixel_font import PixelFont
from firmware_bridge.display.spelling import spelled

BAR_HEIGHT = 8
_GAP = 3  # pixels between two signs
_LEAST_TITLE = 32  # pixels; in less room a title says nothing
_CELL = (
    6  # the firmware's characters; the last two of the row are its own signs for capture and status
)


class Privacy(enum.Enum):
    """What becomes of the keys; the values are signs of assets/symbols.toml."""

    READING = "reading"
    PAUSED = "paused"
    DEAF = "deaf"  # the keyboard tells no keys


_ENGINE_SIGNS = {
    EngineState.STOPPED: "stopped",
    EngineState.STARTING: "loading",
    EngineState.LOADING: "loading",
    EngineState.RESTARTING: "restarting",
    EngineState.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """What the bar tells by signs, whatever the view is."""

    privacy: Privacy
    mode: ModeName
    engine: EngineState

    @property
    def signs(self) -> tuple[str, ...]:
        """From the left, the most important first."""
        engine = _ENGINE_SIGNS.get(self.engine)
        return (self.privacy.value, *((engine,) if engine else ()), self.mode.value)


class StatusBar:
    """Draws with the signs of assets/symbols.toml, and titles in `font`, which is as high as the bar."""

    def __init__(self, font: PixelFont) -> None:
        text = resources.files("assets").joinpath("symbols.toml").read_text(encoding="utf-8")
        self._symbols = {name: parse_art(art) for name, art in tomllib.loads(text).items()}
        self._font = font

    def draw(
        self, canvas: Canvas, at: tuple[int, int], situation: Situation, title: str, *, has_more: bool
    ) -> None:  # fmt: skip
        """Draw the bar from `at` on; signs that have no room are left out, the title is cut.

        The signs are a pixel less high than the bar, so `at` may be one down; the title does not move.
        """
        left, top = at
        right = (canvas.width // _CELL - 2) * _CELL
        if has_more:
            more = self._symbols["more"]
            right -= more.width
            canvas.art(right, top, more)
            right -= _GAP
        for sign in situation.signs:
            art = self._symbols[sign]
            if left + art.width <= right:
                canvas.art(left, top, art)
                left += art.width + _GAP
        if right - left >= _LEAST_TITLE:
            canvas.text(left, 0, self._fitting(title, right - left), self._font)

    def _fitting(self, title: str, room: int) -> str:
        """The beginning of `title` that fits `room` pixels, with an ellipsis if that is not all."""
        font = self._font
        title = spelled(title, font.covers).replace("\n", " ")
        if font.width(title) <= room:
            return title
        while title and font.width(title + "…") > room:
            title = title[:-1]
        return title and title.rstrip() + "…"
