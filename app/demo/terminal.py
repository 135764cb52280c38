# SPDX-License-Identifier: Apache-2.0
"""`thock demo` in a terminal: the OLED, the lights on the keys, what the engine does, latency.

A terminal tells characters, not keys, so each character becomes the strokes that type it on the
virtual board. Nothing that is typed here reaches another program.
"""

from __future__ import annotations

import asyncio
import colorsys
import os
import signal
import sys
import time

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth

from app.companion.macros import MacroKey
from app.demo.blocks import draw, framed, style_for
from app.demo.board import BOARD, BoardKey
from app.demo.station import DemoStation, StationOptions
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import KeyStroke, keys_for
from firmware_bridge.keys.usage import Usage
from firmware_bridge.lights.overlay import Rgb

_FRAMES_PER_S = 20  # breathing lights want this many; the display changes at most as often
_SEEN_DOWN_S = 0.15  # a key is drawn as pressed for this long
_SHOWN_LATENCIES = 4
_NARROWEST = 68  # a display of 128 pixels in quadrant blocks, with its frame
_LOWEST = 20  # headline, a display of 32 pixels with its frame, help
_LOWEST_FOR_64 = 37  # the same with 64 pixels, and one latency figure

_MACROS = {
    Keys.F1: MacroKey.NEXT_MODE,
    Keys.F2: MacroKey.ASK,
    Keys.F3: MacroKey.PAUSE,
    Keys.F4: MacroKey.CANCEL,
}
_NAMED = {
    Keys.ControlM: Usage.ENTER,
    Keys.ControlH: Usage.BACKSPACE,
    Keys.ControlI: Usage.TAB,
    Keys.Escape: Usage.ESCAPE,
    Keys.Left: Usage.LEFT,
    Keys.Right: Usage.RIGHT,
    Keys.Up: Usage.UP,
    Keys.Down: Usage.DOWN,
    Keys.Home: Usage.HOME,
    Keys.End: Usage.END,
    Keys.Delete: Usage.DELETE,
    Keys.PageUp: Usage.PAGE_UP,
    Keys.PageDown: Usage.PAGE_DOWN,
}
_HELP = "F1 mode   F2 ask   F3 pause   F4 cancel   Enter sends in chat   Ctrl-Q quits"


class DemoTerminal:
    """The picture and the keys. Everything it shows comes from the station."""

    def __init__(self, station: DemoStation) -> None:
        self._station = station
        self._layout = load_layout(station.options.settings.layout)
        self._pressed: dict[int, float] = {}
        self._skipped = 0
        screen = FormattedTextControl(self._picture, focusable=True, show_cursor=False)
        self._app: Application[None] = Application(
            layout=Layout(HSplit([Window(screen, wrap_lines=False)])),
            key_bindings=self._bindings(),
            full_screen=True,
            refresh_interval=1 / _FRAMES_PER_S,
            color_depth=ColorDepth.DEPTH_24_BIT,
        )
        self._app.ttimeoutlen = 0.05  # a lone Esc counts as a key after this many seconds

    def run(self) -> None:
        """Until the person quits, or the system asks us to."""
        self._app.run(pre_run=self._leave_on_signals)

    def _leave_on_signals(self) -> None:
        """The terminal must come back as it was: prompt_toolkit restores it when the application exits."""
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._app.exit)

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add(Keys.ControlQ)
        @keys.add(Keys.ControlC)
        def _quit(event: KeyPressEvent) -> None:
            event.app.exit()

        for key, number in _MACROS.items():
            keys.add(key)(lambda _event, n=number: self._macro(n))
        for key, usage in _NAMED.items():
            keys.add(key)(lambda _event, u=usage: self._stroke(KeyStroke(u)))

        @keys.add(Keys.Any)
        def _text(event: KeyPressEvent) -> None:
            # A key with a name that is not bound above (F5, Ctrl-Left) carries its escape sequence.
            if not isinstance(event.key_sequence[-1].key, Keys):
                self._character(event.data)

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            for character in event.data.replace("\r\n", "\n").replace("\r", "\n"):
                self._character(character)

        return keys

    def _character(self, character: str) -> None:
        try:
            strokes = keys_for(character, self._layout)
        except ValueError:
            self._skipped += 1  # not a key of this board: a real one could not type it either
            return
        for stroke in strokes:
            self._stroke(stroke)

    def _stroke(self, stroke: KeyStroke) -> None:
        self._pressed[stroke.usage] = time.monotonic()
        self._station.stroke(stroke)

    def _macro(self, number: int) -> None:
        self._station.keyboard.macro(number)

    def _picture(self) -> StyleAndTextTuples:
        """Headline, OLED and help always; keys and latency figures where there is room for them."""
        size = self._app.output.get_size()
        panel = self._station.keyboard.panel()
        oled = framed(draw(panel, style_for(size.columns, panel.width)), "OLED")
        if size.columns < len(oled[0]) or size.rows < len(oled) + 2:
            need = f"{max(_NARROWEST, len(oled[0]))}x{len(oled) + 2}"
            return [
                ("bold", f" This terminal is {size.columns}x{size.rows}; the OLED needs {need}. ")
            ]
        left = size.rows - len(oled) - 2
        parts: StyleAndTextTuples = [("bold", " Thock "), ("", self._headline(size.columns - 8))]
        parts.append(("", "\n"))
        for line in oled:
            parts += [("#e8f4ff bg:#000000", line), ("", "\n")]
        if left > len(BOARD):
            parts += self._keys_picture()
            left -= len(BOARD)
        figures = self._station.latency.rows()[: min(left, _SHOWN_LATENCIES + 1)]
        parts += [("#808080", row[: size.columns] + "\n") for row in figures]
        parts.append(("reverse", f" {_HELP} "[: size.columns]))
        return parts

    def _headline(self, room: int) -> str:
        state = self._station.state
        if self._skipped:
            layout = self._station.options.settings.layout
            return f" {self._skipped} characters are not on the {layout} keyboard"[:room]
        engine = f"engine {state.engine.value}"
        if state.engine_detail:
            engine += f" ({state.engine_detail})"
        model = state.model or "no model yet"
        return f" {state.mode} · {state.status.name.lower()} · {model} · {engine}"[:room]

    def _keys_picture(self) -> StyleAndTextTuples:
        """The board, one text line a row, one cell for each quarter of a key."""
        leds = self._station.keyboard.leds()
        now = time.monotonic()
        parts: StyleAndTextTuples = []
        for row in BOARD:
            parts.append(("", " "))
            for key in row:
                down = now - self._pressed.get(key.usage, 0.0) < _SEEN_DOWN_S and key.usage != 0
                parts.append((_key_style(leds[key.led], down), _cap(key)))
                parts.append(("", " "))
            parts.append(("", "\n"))
        return parts


def _cap(key: BoardKey) -> str:
    return f"{key.label:^{key.width - 1}}"[: key.width - 1]


def _key_style(color: Rgb | None, down: bool) -> str:
    if down:
        return "reverse bold"
    if color is None:
        return "#c0c0c0 bg:#303030"
    # A dark colour on a terminal needs light text, a bright one dark text.
    light = colorsys.rgb_to_hls(color.red / 255, color.green / 255, color.blue / 255)[1]
    text = "#000000" if light > 0.45 else "#ffffff"
    return f"{text} bg:#{color.red:02x}{color.green:02x}{color.blue:02x}"


def geometry_for(size: os.terminal_size) -> str:
    """The larger display where the terminal has room for it.

    Raises:
        ValueError: not even the smaller one fits.
    """
    if size.columns < _NARROWEST or size.lines < _LOWEST:
        raise ValueError(
            f"the demo needs a terminal of {_NARROWEST}x{_LOWEST}, this one is "
            f"{size.columns}x{size.lines}."
        )
    return "128x64" if size.lines >= _LOWEST_FOR_64 else "128x32"


def run_terminal(options: StationOptions) -> None:
    """Start everything, draw until the person quits, stop everything."""
    with DemoStation(options) as station:
        DemoTerminal(station).run()
