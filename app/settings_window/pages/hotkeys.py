# SPDX-License-Identifier: Apache-2.0
"""Hotkeys: the companion keys of the keyboard first, shortcuts of the operating system second."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from app.i18n import Translate
from app.settings_window.editors import Editor, make_editor
from app.settings_window.fields import FieldKind, FieldSpec
from app.settings_window.hotkey_editor import HotkeyEditor
from app.settings_window.key_capture import KeyCapture
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.widgets import Card, WheelGuard, label
from app.settings_window.wording import Wording


class HotkeysPage(PageView):
    """Texts on this page are shortcuts."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.HOTKEYS, tools)
        self.add_intro(
            lambda tr: tr(
                "The keyboard has companion keys of its own, which work in every program and on every "
                "desktop. Shortcuts of the operating system are only for keyboards without them."
            )
        )
        self.capture = KeyCapture(tools.companion, tools.bridge, self.words)
        card = Card()
        card.add(self.capture)
        self.add(card)
        self.add_form(self.fields(), make_hotkey_editor)
        self.conflicts = label(self.words, self._conflicts_text, "problem")
        self.add(self.conflicts)
        self.finish()
        tools.edits.listen(self._look)
        self._look()

    def _look(self) -> None:
        text = self._conflicts_text(self.words.tr)
        self.conflicts.setText(text)
        self.conflicts.setVisible(bool(text))

    def _conflicts_text(self, tr: Translate) -> str:
        """A line for each two settings with the same shortcut."""
        shortcuts = [
            (field.title, self.tools.edits.value(field.path))
            for field in self.fields()
            if field.kind is FieldKind.TEXT
        ]
        return "\n".join(
            "⚠ "
            + tr("“{one}” and “{other}” have the same shortcut.").format(
                one=tr(one), other=tr(other)
            )
            for (one, keys), (other, others) in combinations(shortcuts, 2)
            if keys and keys == others
        )


def make_hotkey_editor(
    field: FieldSpec, words: Wording, guard: WheelGuard, commit: Callable[[object], None]
) -> Editor:
    """A shortcut for each text, the usual control for everything else."""
    if field.kind is FieldKind.TEXT:
        return HotkeyEditor(field, words, commit)
    return make_editor(field, words, guard, commit)
