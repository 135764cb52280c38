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
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import ColorDepth

from app.companion.macros import MacroKey
from app.demo.blocks import centred, cut, draw, framed, smallest_frame, style_for
from app.demo.board import BOARD
from app.demo.station import GEOMETRIES, DemoStation, StationOptions
from app.i18n import Catalog, adopted, told, translation
from app.settings import ModeName
from engine.texts import Text
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.typist import KeyStroke, keys_for
from firmware_bridge.keys.usage import Usage
from firmware_bridge.lights.overlay import Rgb

_FRAMES_PER_S = 20  # breathing lights want this many; the display changes at most as often
_SEEN_DOWN_S = 0.15  # a key is drawn as pressed for this long
_SHOWN_LATENCIES = 4
_OTHER_ROWS = 2  # headline, help
_AUTOMATIC = (
    "128x64",
    "128x32",
)  # the displays that a terminal may get by itself, larger ones first
_SMALLEST = _AUTOMATIC[-1]

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
# They fit the smallest terminal: what cannot be seen there is how to get out.
_HELP = Text("F1 mode   F2 ask   F3 pause   F4 cancel   Ctrl-Q quits")
_HELP_IN_CHAT = Text("F1 mode  F2 ask  F3 pause  F4 cancel  Enter sends  Ctrl-Q quits")
_HINT = Text("Type something: the OLED shows how it goes on")


class TooSmallTerminalError(ValueError):
    """Not even the smallest display fits the terminal; the message says what would."""


class DemoTerminal:
    """The picture and the keys. Everything it shows comes from the station."""

    def __init__(self, station: DemoStation, *, follows_size: bool = False) -> None:
        """`follows_size`: the display becomes another one when the terminal's size changes."""
        self._station = station
        self._geometry = station.options.geometry
        self._follows_size = follows_size
        self._keys_before = 0  # typed before this display came
        self._tr = translation(station.options.settings.language, Catalog.MESSAGES)
        self._layout = load_layout(station.options.settings.layout)
        self._pressed: dict[int, float] = {}
        self._skipped = 0
        screen = FormattedTextControl(self.picture, focusable=True, show_cursor=False)
        self._app: Application[None] = Application(
            layout=Layout(HSplit([Window(screen, wrap_lines=Condition(lambda: not self._fits()))])),
            key_bindings=self._bindings(),
            full_screen=True,
            refresh_interval=1 / _FRAMES_PER_S,
            color_depth=ColorDepth.DEPTH_24_BIT,
            before_render=lambda _app: self.follow_size(),
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
                self.type(event.data)

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            for character in event.data.replace("\r\n", "\n").replace("\r", "\n"):
                self.type(character)

        return keys

    def type(self, character: str) -> None:
        """Press the keys for one character; one that this board has no key for is counted."""
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

    def picture(self) -> StyleAndTextTuples:
        """Headline, OLED and help always; keys and latency figures where there is room for them."""
        size = self._app.output.get_size()
        if not self._fits():
            return [("bold", told(self._tr, self._too_small()))]
        panel = self._station.keyboard.panel()
        oled = framed(draw(panel, style_for(size.columns, panel.width)), "OLED", self._hint())
        left = size.rows - len(oled) - _OTHER_ROWS
        headline = cut(f" {self._headline()}", size.columns - 8)
        parts: StyleAndTextTuples = [("bold", " Thock "), ("", f"{headline}\n")]
        for line in oled:
            parts += [("#e8f4ff bg:#000000", line), ("", "\n")]
        if left > len(BOARD):
            parts += self._keys_picture()
            left -= len(BOARD)
        figures = self._station.latency.rows(self._tr)[: min(left, _SHOWN_LATENCIES + 1)]
        if len(figures) > 1:  # the first row is the head
            parts += [("#808080", cut(row, size.columns) + "\n") for row in figures]
        is_chat = self._station.state.mode is ModeName.CHAT
        keys = told(self._tr, _HELP_IN_CHAT if is_chat else _HELP)
        parts.append(("reverse", cut(f" {keys} ", size.columns)))
        return parts

    def _fits(self) -> bool:
        size = self._app.output.get_size()
        return _fits(self._geometry, size.columns, size.rows)

    def follow_size(self) -> None:
        """Change to the largest display that fits, if that is wanted, any does and it is another one."""
        if not self._follows_size:
            return
        size = self._app.output.get_size()
        geometry = _largest(size.columns, size.rows)
        if geometry is not None and geometry != self._geometry:
            self._geometry = geometry
            self._keys_before = len(self._station.typed)
            self._station.change_display(geometry)

    def _too_small(self) -> Text:
        size = self._app.output.get_size()
        text = Text(
            "This terminal is {here}; the OLED needs {need}.",
            here=_size(size.columns, size.rows),
            need=_need(_SMALLEST if self._follows_size else self._geometry),
        )
        if not _fits(_SMALLEST, size.columns, size.rows):
            return text
        advice = Text(
            "One of 128x32 needs {need}: `thock demo --geometry 128x32`.", need=_need(_SMALLEST)
        )
        return Text("{reason} {advice}", reason=text, advice=advice)

    def _hint(self) -> str:
        """What to do with an OLED that shows a cursor only."""
        state = self._station.state
        is_empty = len(self._station.typed) == self._keys_before
        is_new = is_empty and state.mode is ModeName.SUGGEST and not state.is_paused
        return told(self._tr, _HINT) if is_new else ""

    def _headline(self) -> str:
        state = self._station.state
        if self._skipped:
            text = Text(
                "{count} characters are not on the {layout} keyboard",
                count=self._skipped,
                layout=self._station.options.settings.layout,
            )
            return told(self._tr, text)
        engine = Text("engine {state}", state=Text(state.engine.value))
        if state.engine_detail:
            engine = Text("{line} ({detail})", line=engine, detail=adopted(state.engine_detail))
        parts = (Text(state.mode.value), Text(state.status.name.lower()))
        model = state.model or told(self._tr, Text("no model yet"))
        return " · ".join([*(told(self._tr, p) for p in parts), model, told(self._tr, engine)])

    def _keys_picture(self) -> StyleAndTextTuples:
        """The board, one text line a row, one cell for each quarter of a key."""
        leds = self._station.keyboard.leds()
        now = time.monotonic()
        parts: StyleAndTextTuples = []
        for row in BOARD:
            parts.append(("", " "))
            for key in row:
                down = now - self._pressed.get(key.usage, 0.0) < _SEEN_DOWN_S and key.usage != 0
                cap = centred(told(self._tr, key.label), key.width - 1)
                parts.append((_key_style(leds[key.led], down), cap))
                parts.append(("", " "))
            parts.append(("", "\n"))
        return parts


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
        TooSmallTerminalError: not even the smaller one fits.
    """
    geometry = _largest(size.columns, size.lines)
    if geometry is None:
        raise TooSmallTerminalError(
            Text(
                "the demo needs a terminal of {need}, this one is {here}.",
                need=_need(_SMALLEST),
                here=_size(size.columns, size.lines),
            )
        )
    return geometry


def _largest(columns: int, rows: int) -> str | None:
    return next((each for each in _AUTOMATIC if _fits(each, columns, rows)), None)


def _fits(geometry: str, columns: int, rows: int) -> bool:
    wide, high = smallest_frame(*GEOMETRIES[geometry])
    return columns >= wide and rows >= high + _OTHER_ROWS


def _need(geometry: str) -> Text:
    wide, high = smallest_frame(*GEOMETRIES[geometry])
    return _size(wide, high + _OTHER_ROWS)


def _size(columns: int, rows: int) -> Text:
    return Text("{columns}x{rows}", columns=columns, rows=rows)


def run_terminal(options: StationOptions, *, follows_size: bool) -> None:
    """Start everything, draw until the person quits, stop everything. `follows_size`: see DemoTerminal."""
    with DemoStation(options) as station:
        DemoTerminal(station, follows_size=follows_size).run()
