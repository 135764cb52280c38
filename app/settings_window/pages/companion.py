# SPDX-License-Identifier: Apache-2.0
"""Companion: what it does with the keys, and how each mode behaves."""

from __future__ import annotations

from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView


class CompanionPage(PageView):
    """Generated as a whole."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.COMPANION, tools)
        self.add_intro(
            lambda tr: tr(
                "Suggest offers the next words while you type, Answer replies to what you ask, "
                "and Moods shows a face that goes with your typing."
            )
        )
        self.add_form(self.fields())
        self.finish()
