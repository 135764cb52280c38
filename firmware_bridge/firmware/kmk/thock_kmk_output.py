# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
# mypy: ignore-errors
"""Ready-made callbacks of ThockCompanion for KMK's own Display and RGB extensions.

Not run on hardware yet: they were written after kmk_firmware 6949753 and run in tests with stand-ins.
"""

from kmk.extensions.rgb import AnimationModes

STATUS_MARKS = (" ", "o", "*", ">", "=", "!")  # idle, listening, thinking, streaming, paused, error
CAPTURE_MARK = "@"


class DisplayText:
    """`show` callback: text in the place of the display's entries.

    KMK draws with CircuitPython's terminal font, 6 pixels wide and 14 high with its gap: a 128x32 display
    holds 2 rows of 21 characters, 128x64 holds 4.
    """

    def __init__(self, display, make_entry, columns=21, row_height=14):
        """`make_entry` is KMK's TextEntry, or takes the same text, x and y."""
        self._display = display
        self._make_entry = make_entry
        self._columns = columns
        self._row_height = row_height
        self._own_entries = None

    def is_lit(self):
        """Whether the text can be read: KMK's Display sleeps after a while."""
        driver = self._display.display
        return getattr(getattr(driver, "display", driver), "is_awake", True)

    def __call__(self, rows, status, capturing=False):
        display = self._display
        if rows is None and not status and not capturing:
            if self._own_entries is not None:
                display.entries = self._own_entries
                self._own_entries = None
                display.render(display.prev_layer)
            return
        if self._own_entries is None:
            self._own_entries = display.entries
        lines = list(rows or [""])
        if status:
            lines[0] = _marked(lines[0][: self._columns], self._columns - 1, STATUS_MARKS[status])
        if capturing:
            lines[0] = _marked(lines[0], self._columns - 2, CAPTURE_MARK)
        display.entries = [
            self._make_entry(text=line, x=0, y=number * self._row_height)
            for number, line in enumerate(lines)
        ]
        display.render(display.prev_layer)


def _marked(line, column, mark):
    line = line + " " * (column + 1 - len(line))
    return line[:column] + mark + line[column + 1 :]


class RgbOverlay:
    """`set_lights` callback for KMK's RGB extension. The keyboard's own animation stands still meanwhile."""

    def __init__(self, rgb):
        self._rgb = rgb
        self._own_mode = None

    def __call__(self, colors):
        rgb = self._rgb
        if colors is None:
            if self._own_mode is not None:
                rgb.animation_mode = self._own_mode
                self._own_mode = None
            return
        if self._own_mode is None:
            # STATIC_STANDBY would not be drawn again by itself
            standby = rgb.animation_mode == AnimationModes.STATIC_STANDBY
            self._own_mode = AnimationModes.STATIC if standby else rgb.animation_mode
            rgb.animation_mode = AnimationModes.STATIC_STANDBY
        for led, color in enumerate(colors):
            if color is not None:
                rgb.set_rgb(color, led)
        rgb.show()
