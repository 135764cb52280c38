# SPDX-License-Identifier: Apache-2.0
"""Companion: what it does with the keys, and how each mode behaves."""

from __future__ import annotations

from app.config.paths import personas_folder
from app.i18n import Translate
from app.settings_window.folder_row import FolderRow
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.widgets import Card


class CompanionPage(PageView):
    """Generated, but for the way to the person's own personas."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.COMPANION, tools)
        self.add_intro(
            lambda tr: tr(
                "Suggest offers the next words while you type, Answer replies to what you ask, "
                "and Moods shows a face that goes with your typing."
            )
        )
        self.add_form(self.fields())
        self.add_heading(lambda tr: tr("Of your own"))
        self.folder = FolderRow(_own_text, personas_folder(), tools.computer, self.words)
        card = Card()
        card.add(self.folder)
        self.add(card)
        self.finish()


def _own_text(tr: Translate) -> str:
    return tr("Personas of your own: a file each, such as those that come with Thock.")
