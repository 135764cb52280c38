# SPDX-License-Identifier: Apache-2.0
"""About: versions, licences, and the way back to the first steps."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QHBoxLayout, QLabel

from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.widgets import Card, button, label, side_by_side
from app.settings_window.wording import Make

# What the window and the companion stand on; the licence is read from the installed package.
PARTS = ("PySide6-Essentials", "pydantic", "tokenizers", "torch", "hidapi", "pystray", "pillow")
_LONGEST_LICENSE = 60  # some packages give the whole text


class AboutPage(PageView):
    """`start_assistant` is called by the button."""

    def __init__(self, tools: PageTools, start_assistant: Callable[[], None]) -> None:
        super().__init__(Place.ABOUT, tools)
        self.add_intro(
            lambda tr: tr("A local AI companion that lives in a programmable keyboard. Offline.")
        )
        card = Card()
        facts: tuple[tuple[Make, str], ...] = (
            (lambda tr: tr("Version"), importlib.metadata.version("thock")),
            (lambda tr: tr("License"), "Apache-2.0"),
            (lambda _: "Python", platform.python_version()),
            (lambda _: "Qt", qVersion()),
            (lambda tr: tr("System"), f"{platform.system()} {platform.release()}"),
        )
        for make, value in facts:
            card.add(_fact(label(self.words, make), value))
        self.add(card)
        again = Card()
        self.assistant = button(self.words, lambda tr: tr("Start again"))
        self.assistant.clicked.connect(start_assistant)
        again.add(
            side_by_side(
                label(
                    self.words,
                    lambda tr: tr("The first steps: keyboard, model, one test sentence."),
                ),
                self.assistant,
            )
        )
        self.add(again)
        self.add_heading(lambda tr: tr("Built with"))
        parts = Card()
        for name in PARTS:
            parts.add(_fact(label(self.words, _named(name)), _version_of(name)))
        self.add(parts)
        self.finish()


def _named(name: str) -> Make:
    return lambda _: name


def _fact(name: QLabel, value: str) -> QHBoxLayout:
    """A name, and what it is on the right."""
    text = QLabel(value)
    text.setProperty("part", "hint")
    text.setWordWrap(True)
    text.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    row = side_by_side(name, text)
    row.setStretch(0, 2)
    row.setStretch(1, 3)
    return row


def _version_of(name: str) -> str:
    try:
        package = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return "–"
    values = package.json
    named = str(values.get("license_expression") or values.get("license") or "")
    short = named if len(named) < _LONGEST_LICENSE and "\n" not in named else ""
    return f"{package['Version']}  {short}".rstrip()
