# SPDX-License-Identifier: Apache-2.0
"""The window: the list of pages with its search on the left, the page on the right, undo below."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QLibraryInfo, QLocale, QTranslator
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.i18n import Catalog, Language, Translate, told, translation
from app.places import ASK
from app.settings import Appearance
from app.settings_window.fields import FieldPath
from app.settings_window.labels import Place
from app.settings_window.navigation import Navigation
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.ports import CompanionView, Presence
from app.settings_window.theme import GAP, ROW_GAP, dress
from app.settings_window.widgets import button, label
from app.settings_window.wording import Wording

MakePage = Callable[[Place], PageView]


def speech(language: Language) -> Translate:
    """The texts of this window in `language`."""
    return translation(language, Catalog.SETTINGS)


class SettingsWindow(QWidget):
    """Pages are made when they are looked at first. `make_page` makes them."""

    def __init__(self, tools: PageTools, make_page: MakePage) -> None:
        super().__init__()
        self._tools = tools
        self._words: Wording = tools.words
        self._make_page = make_page
        self._pages: dict[Place, PageView] = {}
        self._language = tools.edits.settings.language
        self._appearance: Appearance | None = None
        self._qt_texts = QTranslator(self)
        self.navigation = Navigation(tools.edits.fields, self._words)
        self.navigation.chosen.connect(self.go_to)
        self._stack = QStackedWidget()
        self.away = label(self._words, _away_text, "banner")
        self.problems = label(self._words, self._problems_text, "banner")
        self.problems.setVisible(bool(tools.edits.problems))
        self._done = label(self._words, self._done_text)
        self.undo_button = button(self._words, lambda tr: tr("Undo"))
        self.undo_button.clicked.connect(self.undo)
        self._bar = QFrame()
        self._arrange()
        self._add_shortcuts()
        self._words.say(self.setWindowTitle, lambda tr: tr("Thock settings"))
        tools.edits.listen(self._changed)
        tools.bridge.settings_changed.connect(tools.edits.others_changed)
        tools.bridge.companion_changed.connect(self._companion_changed)
        tools.bridge.asked_for.connect(self.open_place)
        self._load_qt_texts()
        self._changed()
        self._companion_changed(tools.bridge.view)
        self.go_to(Place.STATUS)

    @property
    def page(self) -> PageView:
        """The page that is seen."""
        page = self._stack.currentWidget()
        assert isinstance(page, PageView)
        return page

    def go_to(self, place: Place, path: FieldPath = ()) -> None:
        """Show a page, and mark a setting on it."""
        page = self._pages.get(place)
        if page is None:
            page = self._pages[place] = self._make_page(place)
            self._stack.addWidget(page)
        self._stack.setCurrentWidget(page)
        self.navigation.select(place)
        if path:
            page.reveal(path)

    def open_place(self, name: str) -> None:
        """Somebody else wants this page to be seen; unknown names leave the page as it is."""
        if name in list(Place):
            self.go_to(Place(name))
        elif name == ASK:
            self.go_to(Place.STATUS)
            self.page.begin()
        self.showNormal()
        self.raise_()
        self.activateWindow()

    def undo(self) -> None:
        """Take the last change back."""
        problem = self._tools.edits.undo()
        if problem is not None:
            self._done.setText(f"⚠ {told(self._words.tr, problem.text)}")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.ThemeChange and self._appearance is Appearance.SYSTEM:
            self._dress(Appearance.SYSTEM)

    def _arrange(self) -> None:
        self._bar.setProperty("part", "bar")
        below = QHBoxLayout(self._bar)
        below.setContentsMargins(ROW_GAP, GAP, ROW_GAP, GAP)
        below.addWidget(self._done, 1)
        below.addWidget(self.undo_button)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.away)
        right.addWidget(self.problems)
        right.addWidget(self._stack, 1)
        right.addWidget(self._bar)
        across = QHBoxLayout(self)
        across.setContentsMargins(0, 0, 0, 0)
        across.setSpacing(0)
        across.addWidget(self.navigation)
        across.addLayout(right, 1)
        self.setMinimumSize(640, 420)
        self.resize(980, 680)

    def _add_shortcuts(self) -> None:
        for keys, do in (
            (QKeySequence.StandardKey.Undo, self.undo),
            (QKeySequence.StandardKey.Find, self.navigation.begin_search),
            (QKeySequence.StandardKey.Close, self.close),
        ):
            QShortcut(QKeySequence(keys), self, do)
        for number, place in enumerate(Place, start=1):
            if number <= 10:
                digit = QKeySequence(f"Alt+{number % 10}")
                QShortcut(digit, self, lambda place=place: self.go_to(place))

    def _changed(self) -> None:
        settings = self._tools.edits.settings
        if settings.language is not self._language:
            self._language = settings.language
            self._load_qt_texts()
            self._words.speak(speech(settings.language))
        if settings.general.appearance is not self._appearance:
            self._dress(settings.general.appearance)
        self._done.setText(self._done_text(self._words.tr))
        self._bar.setVisible(self._tools.edits.last is not None)

    def _dress(self, appearance: Appearance) -> None:
        self._appearance = appearance
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        dress(app, appearance)

    def _load_qt_texts(self) -> None:
        """The words that Qt itself says: buttons of its dialogs, menus of its text fields."""
        QApplication.removeTranslator(self._qt_texts)
        folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if self._qt_texts.load(QLocale(self._language.value), "qtbase", "_", folder):
            QApplication.installTranslator(self._qt_texts)

    def _companion_changed(self, view: CompanionView) -> None:
        self.away.setVisible(view.presence is Presence.AWAY)

    def _problems_text(self, tr: Translate) -> str:
        lines = [f"⚠ {told(tr, problem.told)}" for problem in self._tools.edits.problems]
        return "\n".join([tr("Not all of the settings file could be used:"), *lines])

    def _done_text(self, tr: Translate) -> str:
        last = self._tools.edits.last
        if last is None:
            return ""
        if not last.path:
            return tr("Changed: several settings")
        title = tr(self._tools.edits.field(last.path).title)
        return tr("Changed: {title}").format(title=title)


def _away_text(tr: Translate) -> str:
    return tr("Thock does not run now. What you set here holds when it starts.")
