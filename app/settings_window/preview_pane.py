# SPDX-License-Identifier: Apache-2.0
"""Display and lights as the keyboard has them, kept up to date while they can be seen.

What they show may hold what the person typed: it is asked for only while the pane is on the screen, lives
in memory only, and is dropped when the pane is hidden.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.settings_window.bridge import Bridge
from app.settings_window.lights_view import LightsView
from app.settings_window.oled_view import OledView
from app.settings_window.ports import Preview
from app.settings_window.preview_board import PreviewBoard
from app.settings_window.theme import GAP, ROW_GAP
from app.settings_window.widgets import Card, label
from app.settings_window.wording import Wording
from firmware_bridge.display.frame import BitmapFrame, TextFrame
from firmware_bridge.lights.overlay import LightEffect

_ANIMATION_MS = 50


class PreviewPane(QWidget):
    """`oled` and `lights` hold exactly what the firmware of the connected keyboard holds."""

    def __init__(self, bridge: Bridge, words: Wording, *, with_lights: bool = True) -> None:
        super().__init__()
        self._bridge = bridge
        self._words = words
        self._with_lights = with_lights
        self._board: PreviewBoard | None = None
        self._preview: Preview | None = None
        self.oled = OledView()
        self.lights = LightsView()
        self._nothing = label(
            words, lambda tr: tr("No keyboard with a display or lights is connected."), "hint"
        )
        self._timer = QTimer(self)
        self._timer.setInterval(_ANIMATION_MS)
        self._timer.timeout.connect(self._draw_lights)
        bridge.preview_came.connect(self._take)
        words.say(self.oled.setAccessibleName, lambda tr: tr("Display of the keyboard"))
        words.say(self.oled.setAccessibleDescription, lambda _: self._spoken())
        words.say(self.lights.setAccessibleName, lambda tr: tr("Lights of the keyboard"))
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._bridge.look(self)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._bridge.look_away(self)
        self._timer.stop()
        self._preview = self._board = None
        self._show_nothing()

    def _arrange(self) -> None:
        card = Card()
        inside = QVBoxLayout()
        inside.setSpacing(GAP)
        inside.addWidget(self.oled)
        inside.addWidget(self.lights)
        inside.addWidget(self._nothing)
        card.add(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(ROW_GAP)
        layout.addWidget(card)
        self._show_nothing()

    def _show_nothing(self) -> None:
        self.oled.hide()
        self.lights.hide()
        self._nothing.show()
        self.oled.show_frame(BitmapFrame(128, 32, bytes(512)))

    def _take(self, preview: Preview) -> None:
        if not self.isVisible():
            return  # it was on its way while the pane was hidden
        shape = preview.board
        if shape is None:
            self._preview = self._board = None
            self._timer.stop()
            self._show_nothing()
            return
        if self._board is None or self._board.shape != shape:
            self._board = PreviewBoard(shape)
        self._board.show(preview)
        self._preview = preview
        has_display = shape.width > 0
        if has_display:
            self.oled.show_frame(self._board.picture())
            self.oled.setAccessibleDescription(self._spoken())
        self._draw_lights()
        is_moving = (
            preview.lights.fill is not None and preview.lights.effect is not LightEffect.SOLID
        )
        if is_moving and self._with_lights:
            self._timer.start()
        else:
            self._timer.stop()
        self.oled.setVisible(has_display)
        self.lights.setVisible(self._with_lights and shape.led_count > 0)
        self._nothing.setVisible(not has_display and shape.led_count == 0)

    def _draw_lights(self) -> None:
        if self._board is not None:
            self.lights.show_colours(self._board.leds(int(time.monotonic() * 1000)))

    def _spoken(self) -> str:
        """What a screen reader reads: the lines of the display."""
        display = self._preview.display if self._preview is not None else None
        return "\n".join(display.rows) if isinstance(display, TextFrame) else ""
