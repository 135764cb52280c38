# SPDX-License-Identifier: Apache-2.0
"""The window with everything behind it, wired once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.first_run import FirstRun
from app.places import FIRST_STEPS
from app.settings_window.bridge import Bridge
from app.settings_window.computer import Computer
from app.settings_window.edits import Edits
from app.settings_window.labels import Place
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionPort, SettingsPort
from app.settings_window.widgets import WheelGuard
from app.settings_window.window import SettingsWindow, speech
from app.settings_window.wording import Wording

if TYPE_CHECKING:
    from app.settings_window.assistant import Assistant


class SettingsApp:
    """Needs a QApplication, as every widget does. Closing `window` ends everything but the ports.

    Raises (by the constructor):
        SettingsRefusedError: the settings cannot be read.
    """

    def __init__(
        self,
        settings: SettingsPort,
        companion: CompanionPort,
        computer: Computer | None = None,
        first_run: FirstRun | None = None,
    ) -> None:
        """`first_run` is told when somebody went through the first steps, or closed them."""
        edits = Edits(settings)
        self.tools = PageTools(
            edits=edits,
            companion=companion,
            computer=computer or Computer(),
            bridge=Bridge(companion, settings),
            words=Wording(speech(edits.settings.language)),
            guard=WheelGuard(),
        )
        self._first_run = first_run
        self.assistant: Assistant | None = None
        self.tools.bridge.asked_for.connect(self._asked_for)
        self.window = SettingsWindow(self.tools, self._make_page)

    def start_assistant(self) -> None:
        """The first steps, over the window."""
        from app.settings_window.assistant import Assistant

        if self.assistant is not None:
            self.assistant.close()
        self.assistant = Assistant(self.tools, self.window)
        if self._first_run is not None:
            self.assistant.finished.connect(self._first_run.note)
        self.assistant.open()

    def _asked_for(self, page: str) -> None:
        if page == FIRST_STEPS:
            self.start_assistant()

    def _make_page(self, place: Place) -> PageView:
        """Pages are imported when they are looked at first: the window opens sooner."""
        match place:
            case Place.STATUS:
                from app.settings_window.pages.status import StatusPage

                return StatusPage(self.tools)
            case Place.KEYBOARD:
                from app.settings_window.pages.keyboard import KeyboardPage

                return KeyboardPage(self.tools)
            case Place.COMPANION:
                from app.settings_window.pages.companion import CompanionPage

                return CompanionPage(self.tools)
            case Place.ENGINE:
                from app.settings_window.pages.engine import EnginePage

                return EnginePage(self.tools)
            case Place.DISPLAY:
                from app.settings_window.pages.display import DisplayPage

                return DisplayPage(self.tools)
            case Place.PRIVACY:
                from app.settings_window.pages.privacy import PrivacyPage

                return PrivacyPage(self.tools)
            case Place.PROFILES:
                from app.settings_window.pages.profiles import ProfilesPage

                return ProfilesPage(self.tools)
            case Place.HOTKEYS:
                from app.settings_window.pages.hotkeys import HotkeysPage

                return HotkeysPage(self.tools)
            case Place.GENERAL:
                from app.settings_window.pages.general import GeneralPage

                return GeneralPage(self.tools)
            case Place.DIAGNOSTICS:
                from app.settings_window.pages.diagnostics import DiagnosticsPage

                return DiagnosticsPage(self.tools)
            case Place.ABOUT:
                from app.settings_window.pages.about import AboutPage

                return AboutPage(self.tools, self.start_assistant)
