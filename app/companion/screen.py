# SPDX-License-Identifier: Apache-2.0
"""How views become frames: text where the firmware's own font can show it, else a picture in pixels."""

from __future__ import annotations

import logging
from collections import deque

from app.companion.modes.base import View
from app.companion.picture import Size, clipped, picture
from app.companion.status_bar import BAR_HEIGHT, Situation, StatusBar
from app.companion.typefaces import Typefaces
from app.settings import TextSize
from firmware_bridge.display.canvas import Canvas, PixelArt
from firmware_bridge.display.frame import DisplayFrame, TextFrame
from firmware_bridge.display.layout import wrap
from firmware_bridge.display.pixel_font import PixelFont
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.protocol.capabilities import Capabilities, Feature

_LARGE_FROM = 96  # pixels of width that are enough for large letters
_LEADING = 2  # most pixels between two lines
_BESIDE_COLUMNS = 8  # of lines that stand beside art
# Where a picture stands in each minute, against burn-in: pixels to the right and down from the corner.
_PLACES = ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1))
_log = logging.getLogger(__name__)

_UNKNOWN = Size(columns=21, rows=4)


class Screen:
    """The display of one board: what fits it, and the frames for it."""

    def __init__(self, text_size: TextSize) -> None:
        self._faces = Typefaces()
        self._bar = StatusBar(self._faces.small)
        self._text_size = text_size
        self._board: Capabilities | None = None
        self._fonts_work: bool | None = None
        # The last two pictures: of what is seen, and of what a key would bring.
        self._drawn: deque[tuple[tuple[object, ...], DisplayFrame]] = deque(maxlen=2)

    def configure(self, text_size: TextSize) -> None:
        """Use another size of letters from now on."""
        self._text_size = text_size

    def connect(self, board: Capabilities) -> None:
        """A board is there; one without a display changes nothing."""
        if board.has_display:
            self._board = board

    def size(self, needs_pixels: bool) -> Size:
        """What fits the display, in pixels if they are needed and there, else in the firmware's own font."""
        board = self._board
        if board is None:
            return _UNKNOWN
        needs_pixels = needs_pixels or Feature.TEXT not in board.features
        font = self._font(board.width)
        if needs_pixels and Feature.BITMAP in board.features and self._is_readable(font):
            rows = max((board.height - BAR_HEIGHT) // font.height, 1)
            return Size(board.width // font.column, rows, font)
        return Size(board.columns, board.rows)

    def frame(self, view: View, situation: Situation, size: Size, now: float) -> DisplayFrame:
        """The picture of `view`, made for `size`; `now` in seconds moves it a little every minute."""
        board = self._board
        if board is None and not all(map(is_plain, view.lines)):
            return TextFrame(())  # it waits for a board, which may have pixels
        if board is None or size.font is None:
            return picture(view.lines, size, has_more=view.has_more)
        place = _PLACES[int(now // 60) % len(_PLACES)]
        scene = (view, situation, size, place, board)
        for drawn, frame in self._drawn:
            if drawn == scene:
                return frame
        canvas = Canvas(board.width, board.height)
        self._draw(canvas, view, situation, size, place)
        frame = canvas.frame()
        self._drawn.append((scene, frame))
        return frame

    def forget(self) -> None:
        """Forget what was drawn."""
        self._drawn.clear()
        self._faces.forget()

    def _is_readable(self, font: PixelFont) -> bool:
        """Whether the fonts can be read; said once if not."""
        if self._fonts_work is None:
            try:
                self._fonts_work = font.covers("a")
            except OSError as error:  # a FreeType that was built without Brotli, say
                self._fonts_work = False
                _log.warning("no pixel fonts, so texts are shown in plain letters: %s", error)
        return self._fonts_work

    def _font(self, width: int) -> PixelFont:
        is_large = self._text_size is TextSize.LARGE or (
            self._text_size is TextSize.AUTO and width >= _LARGE_FROM
        )
        return self._faces.large if is_large else self._faces.medium

    def _draw(
        self, canvas: Canvas, view: View, situation: Situation, size: Size, place: tuple[int, int]
    ) -> None:
        assert size.font is not None
        left = min(place[0], canvas.width - size.columns * size.font.column)
        self._bar.draw(canvas, (left, place[1]), situation, view.title, has_more=view.has_more)
        if view.art is None:
            _draw_lines(canvas, (left, place[1]), view.lines, size, size.font)
        else:
            _draw_art(canvas, view.art, view.lines, size, size.font)


def _draw_lines(
    canvas: Canvas, place: tuple[int, int], lines: tuple[str, ...], size: Size, font: PixelFont
) -> None:
    """As far apart as there is room, and moved by `place` as far as there is."""
    room = canvas.height - BAR_HEIGHT
    pitch = min(room // size.rows, font.height + _LEADING)
    spare = room - (size.rows - 1) * pitch - font.height
    top = BAR_HEIGHT + min(place[1], spare)
    for row, line in enumerate(lines[: size.rows]):
        canvas.text(place[0], top + row * pitch, size.start(line, size.columns), font)


def _draw_art(
    canvas: Canvas, art: PixelArt, lines: tuple[str, ...], size: Size, font: PixelFont
) -> None:
    """As large as whole pixels allow; the lines beside the art, or below it where that leaves it larger."""
    width, room = canvas.width, canvas.height - BAR_HEIGHT
    beside = min((width - _BESIDE_COLUMNS * font.column) // art.width, room // art.height)
    if (room - len(lines) * font.height) // art.height < 1:
        lines = (" ".join(lines),)
    below = min(width // art.width, (room - len(lines) * font.height) // art.height)
    scale = max(beside, below, 1)
    across, down = art.width * scale, art.height * scale
    if beside >= scale:
        gap = (width - across - _BESIDE_COLUMNS * font.column) // 3
        canvas.art(gap, BAR_HEIGHT + (room - down) // 2, art, scale)
        left = 2 * gap + across
        columns = (width - left) // font.column
        shown = [part for line in lines for part in wrap(line, columns, font.columns)]
        top = BAR_HEIGHT + max((room - len(shown) * font.height) // 2, 0)
        for row, line in enumerate(shown):
            canvas.text(left, top + row * font.height, line, font)
        return
    gap = max((room - down - len(lines) * font.height) // 3, 0)
    canvas.art((width - across) // 2, BAR_HEIGHT + gap, art, scale)
    for row, line in enumerate(lines):
        text = clipped(line, size.columns, size)
        top = BAR_HEIGHT + 2 * gap + down + row * font.height
        canvas.text((width - font.width(text)) // 2, top, text, font)
