# SPDX-License-Identifier: Apache-2.0
"""Display & lights: what the keyboard shows now, and how it shows it."""

from __future__ import annotations

from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.preview_pane import PreviewPane


class DisplayPage(PageView):
    """The live preview above the settings."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.DISPLAY, tools)
        self.add_intro(
            lambda tr: tr(
                "This is what your keyboard shows now, pixel by pixel. It may hold what you type, so it is "
                "asked for only while you look at it, and nothing of it is stored."
            )
        )
        self.preview = PreviewPane(tools.bridge, tools.words)
        self.add(self.preview)
        self.add_form(self.fields())
        self.finish()
