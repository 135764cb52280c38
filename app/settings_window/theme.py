# SPDX-License-Identifier: Apache-2.0
"""Colours and measures: the system's palette, or one of two of our own where the system cannot be asked.

Every colour of the window comes from here: roles of the palette, and mixtures of them. Text on its
background has a contrast of 4.5:1 at least (WCAG 2.2, criterion 1.4.3).
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app.settings import Appearance

# Distances in device-independent pixels.
GAP = 8
ROW_GAP = 12
PAGE_MARGIN = 28
CARD_RADIUS = 8
PAGE_WIDTH = 720  # a line of text longer than this is hard to read

_SCHEMES = {
    Appearance.LIGHT: Qt.ColorScheme.Light,
    Appearance.DARK: Qt.ColorScheme.Dark,
    Appearance.SYSTEM: Qt.ColorScheme.Unknown,
}

_LIGHT = {
    QPalette.ColorRole.Window: "#f4f4f6",
    QPalette.ColorRole.WindowText: "#1d1d21",
    QPalette.ColorRole.Base: "#ffffff",
    QPalette.ColorRole.AlternateBase: "#ececf0",
    QPalette.ColorRole.Text: "#1d1d21",
    QPalette.ColorRole.Button: "#fbfbfc",
    QPalette.ColorRole.ButtonText: "#1d1d21",
    QPalette.ColorRole.BrightText: "#ffffff",
    QPalette.ColorRole.ToolTipBase: "#ffffff",
    QPalette.ColorRole.ToolTipText: "#1d1d21",
    QPalette.ColorRole.Highlight: "#0f6cbd",
    QPalette.ColorRole.HighlightedText: "#ffffff",
    QPalette.ColorRole.Accent: "#0f6cbd",
    QPalette.ColorRole.Link: "#0b5a9d",
    QPalette.ColorRole.PlaceholderText: "#6a6a72",
}
_DARK = {
    QPalette.ColorRole.Window: "#202024",
    QPalette.ColorRole.WindowText: "#f0f0f3",
    QPalette.ColorRole.Base: "#19191c",
    QPalette.ColorRole.AlternateBase: "#323238",
    QPalette.ColorRole.Text: "#f0f0f3",
    QPalette.ColorRole.Button: "#36363c",
    QPalette.ColorRole.ButtonText: "#f0f0f3",
    QPalette.ColorRole.BrightText: "#ffffff",
    QPalette.ColorRole.ToolTipBase: "#36363c",
    QPalette.ColorRole.ToolTipText: "#f0f0f3",
    QPalette.ColorRole.Highlight: "#2070c0",
    QPalette.ColorRole.HighlightedText: "#ffffff",
    QPalette.ColorRole.Accent: "#62abf0",
    QPalette.ColorRole.Link: "#7ab8f5",
    QPalette.ColorRole.PlaceholderText: "#a5a5ae",
}


def dress(app: QApplication, appearance: Appearance) -> None:
    """Give the whole window these colours."""
    hints = QGuiApplication.styleHints()
    wanted = _SCHEMES[appearance]
    hints.setColorScheme(wanted)
    app.setPalette(QPalette())
    if wanted is not Qt.ColorScheme.Unknown and hints.colorScheme() is not wanted:
        # No platform theme here that knows dark from light (bare X11, offscreen).
        app.setPalette(_palette(_DARK if appearance is Appearance.DARK else _LIGHT))
    app.setStyleSheet(style_sheet(app.palette()))


def _palette(colours: dict[QPalette.ColorRole, str]) -> QPalette:
    window, button = (
        QColor(colours[r]) for r in (QPalette.ColorRole.Window, QPalette.ColorRole.Button)
    )
    palette = QPalette(button, window)  # fills in the shades that a style draws edges with
    for role, name in colours.items():
        palette.setColor(role, QColor(name))
    faint = mixed(palette, QPalette.ColorRole.Text, QPalette.ColorRole.Window, 0.5)
    for role in (
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
        QPalette.ColorRole.WindowText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, role, faint)
    grey = mixed(palette, QPalette.ColorRole.Text, QPalette.ColorRole.Window, 0.3)
    palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Highlight, grey)
    return palette


def is_dark(palette: QPalette) -> bool:
    """Light text on a dark window."""
    return palette.windowText().color().lightness() > palette.window().color().lightness()


def mixed(
    palette: QPalette, role: QPalette.ColorRole, other: QPalette.ColorRole, share: float
) -> QColor:
    """`share` (0..1) of one role's colour, the rest of another's."""
    one, two = palette.color(role), palette.color(other)
    return QColor(
        round(one.red() * share + two.red() * (1 - share)),
        round(one.green() * share + two.green() * (1 - share)),
        round(one.blue() * share + two.blue() * (1 - share)),
    )


def trouble_colour(palette: QPalette) -> QColor:
    """For what is wrong; a sign beside it says the same."""
    return QColor("#ff9c8f" if is_dark(palette) else "#a4262c")


def style_sheet(palette: QPalette) -> str:
    """The few things that a style does not draw by itself, in the palette's colours."""
    role = QPalette.ColorRole
    hint = mixed(palette, role.WindowText, role.Window, 0.72).name()
    # Fields are wells in a dark card, and white in a white one.
    is_night = is_dark(palette)
    card = (
        mixed(palette, role.WindowText, role.Window, 0.05) if is_night else palette.base().color()
    ).name()
    edge = mixed(palette, role.WindowText, role.Window, 0.14).name()
    hover = mixed(palette, role.WindowText, role.Window, 0.07).name()
    chosen = mixed(palette, role.Highlight, role.Window, 0.22).name()
    trouble = trouble_colour(palette).name()
    return f"""
        QLabel[part="hint"] {{ color: {hint}; }}
        QLabel[part="problem"] {{ color: {trouble}; }}
        QFrame[part="card"] {{
            background: {card}; border: 1px solid {edge}; border-radius: {CARD_RADIUS}px;
        }}
        QFrame[part="found"] {{ background: {chosen}; border-radius: {CARD_RADIUS}px; }}
        QFrame[part="line"] {{ background: {edge}; border: none; }}
        QLabel[part="banner"] {{
            background: {chosen}; padding: 8px 12px; border-bottom: 1px solid {edge};
        }}
        QFrame[part="bar"] {{ background: palette(alternate-base); border-top: 1px solid {edge}; }}
        QWidget[part="side"] {{ background: palette(alternate-base); }}
        QListWidget[part="places"] {{
            background: palette(alternate-base); border: none; outline: none;
        }}
        QListWidget[part="places"]::item {{
            padding: 7px 10px; border-radius: 6px; color: palette(window-text);
        }}
        QListWidget[part="places"]::item:hover {{ background: {hover}; }}
        QListWidget[part="places"]::item:selected {{
            background: {chosen}; color: palette(window-text);
        }}
        QListWidget[part="places"]::item:selected:focus {{
            border: 2px solid palette(highlight); padding: 5px 8px;
        }}
        QLineEdit {{ padding: 3px 6px; }}
        QPushButton {{ padding: 4px 12px; }}
        QComboBox {{ padding: 3px 6px; }}
        QScrollArea {{ background: transparent; border: none; }}
        QScrollArea > QWidget > QWidget[part="page"] {{ background: transparent; }}
    """
