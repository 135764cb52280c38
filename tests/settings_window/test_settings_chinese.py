# SPDX-License-Identifier: Apache-2.0
"""In Chinese nothing on any page is left in English, but names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QWidget,
)

from app.i18n import Language
from app.settings_window.pages.about import PARTS
from tests.helpers.settings_desk import ENTRY, FINDINGS, SettingsDesk, settle
from tests.helpers.settings_layout import is_own, shown

CHINESE = re.compile(r"[一-鿿]")
LATIN = re.compile(r"[A-Za-z]{2,}")
NAMES = {
    "English", "Python", "Qt", "Apache-2.0", "Colemak", "Dvorak", "OpenRGB", "Test board", ENTRY.title,
    "small-chat", "thock doctor --install-udev", "work", "code",
    *PARTS,
    *(finding.text for finding in FINDINGS),
    *(f"→ {finding.fix}" for finding in FINDINGS),
}  # fmt: skip
# Versions with licences, systems, shortcuts.
PATTERNS = re.compile(r"\d+\.\d+\S*(  .*)?|Linux .*|(Ctrl|Alt|Shift|\+|[A-Z0-9])+")


def texts(root: QWidget) -> Iterator[str]:
    for widget in shown(root):
        if not is_own(widget):
            continue
        yield widget.accessibleName()
        yield widget.accessibleDescription()
        yield widget.toolTip()
        if isinstance(widget, QLabel | QAbstractButton | QLineEdit):
            yield widget.text()
        if isinstance(widget, QLineEdit):
            yield widget.placeholderText()
        if isinstance(widget, QAbstractSpinBox):
            yield widget.text()
        if isinstance(widget, QComboBox):
            yield from (widget.itemText(i) for i in range(widget.count()))
        if isinstance(widget, QListWidget):
            yield from (widget.item(i).text() for i in range(widget.count()))


def english(root: QWidget) -> set[str]:
    return {
        text
        for text in texts(root)
        if LATIN.search(text)
        and not CHINESE.search(text)
        and text not in NAMES
        and not PATTERNS.fullmatch(text)
        and "\n" not in text  # the lines of the keyboard's display
    }


def test_every_page_speaks_chinese(desk: SettingsDesk) -> None:
    """Half of the pages were made in English, and change; the others are made in Chinese."""
    desk.edits.change(("profiles",), {"work": {"applications": ["code"]}})
    for page in desk.pages():
        if page.place.value == "display":
            break
    desk.edits.change(("language",), Language.ZH_CN)
    for page in desk.pages():
        settle(0.2)
        assert not english(desk.window), page.place


def test_the_first_steps_speak_chinese(desk: SettingsDesk) -> None:
    desk.computer.folder.joinpath("small-chat.gguf").unlink()
    desk.edits.change(("language",), Language.ZH_CN)
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert assistant is not None
    while True:
        settle(0.1)
        assert not english(assistant), assistant.step
        if assistant.steps[-1] is assistant.step:
            break
        assistant.go_on()
