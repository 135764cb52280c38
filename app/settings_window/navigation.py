# SPDX-License-Identifier: Apache-2.0
"""The list of pages, and the search that takes its place while there are words in it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QRect, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.i18n import Translate
from app.settings_window.fields import FieldSpec
from app.settings_window.icons import place_icon
from app.settings_window.labels import Place, place_title
from app.settings_window.search import Hit, find
from app.settings_window.theme import GAP, ROW_GAP
from app.settings_window.widgets import label
from app.settings_window.wording import Wording

_HIT = Qt.ItemDataRole.UserRole
_WIDTH_CHARS = 27
_BESIDE_TEXT = 76  # icon, padding and scroll bar of an item


class Navigation(QWidget):
    """`chosen` tells a place, and the path of a setting on it (empty: only the page)."""

    chosen = Signal(object, object)

    def __init__(self, fields: Sequence[FieldSpec], words: Wording) -> None:
        super().__init__()
        self._fields = fields
        self._words = words
        self._place = Place.STATUS
        self.setProperty("part", "side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.search = QLineEdit()
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._fill)
        self.search.returnPressed.connect(self._take_first)
        self.search.installEventFilter(self)
        self.places = QListWidget()
        self.places.setProperty("part", "places")
        self.places.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.places.setWordWrap(True)
        self.places.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.places.currentRowChanged.connect(self._moved)
        self.places.itemClicked.connect(self._choose)
        self.places.itemActivated.connect(self._choose)
        self._nothing: QLabel = label(words, lambda tr: tr("Nothing found."), "hint")
        words.say(self.search.setPlaceholderText, lambda tr: tr("Search settings"))
        words.say(self.search.setAccessibleName, lambda tr: tr("Search settings"))
        words.say(self.places.setAccessibleName, self._list_name)
        words.say(lambda _: self._fill(), lambda _: "")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(ROW_GAP, ROW_GAP, ROW_GAP, ROW_GAP)
        layout.setSpacing(GAP)
        layout.addWidget(self.search)
        layout.addWidget(self._nothing)
        layout.addWidget(self.places, 1)
        self.setFixedWidth(self.fontMetrics().averageCharWidth() * _WIDTH_CHARS + 4 * ROW_GAP)

    def begin_search(self) -> None:
        """Put the cursor into the search."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def select(self, place: Place) -> None:
        """Show which page is seen."""
        self._place = place
        if not self.search.text():
            with QSignalBlocker(self.places):
                self.places.setCurrentRow(list(Place).index(place))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down goes from the search to what it found, Escape ends it."""
        if watched is self.search and isinstance(event, QKeyEvent):
            if event.type() is QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Down:
                self.places.setFocus()
                self.places.setCurrentRow(max(self.places.currentRow(), 0))
                return True
            if event.type() is QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape:
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange):
            self._fill()
        return super().event(event)

    def _fill(self) -> None:
        tr = self._words.tr
        text = self.search.text()
        with QSignalBlocker(self.places):
            self.places.clear()
            hits = find(text, self._fields, tr) if text.strip() else _all_places(tr)
            for hit in hits:
                self.places.addItem(self._item(hit, tr))
            if not text.strip():
                self.places.setCurrentRow(list(Place).index(self._place))
        self._nothing.setVisible(not hits)
        self.places.setVisible(bool(hits))

    def _item(self, hit: Hit, tr: Translate) -> QListWidgetItem:
        where = f"\n{place_title(tr, hit.place)}" if hit.path else ""
        item = QListWidgetItem(f"{hit.title}{where}")
        item.setIcon(place_icon(hit.place, self.palette()))
        item.setData(_HIT, hit)
        if hit.path:
            item.setSizeHint(self._room_for(item.text()))
        return item

    def _room_for(self, text: str) -> QSize:
        """With a style sheet, Qt forgets the padding when it breaks the lines."""
        width = self.width() - 2 * ROW_GAP - _BESIDE_TEXT
        wrapped = int(Qt.TextFlag.TextWordWrap)
        height = self.fontMetrics().boundingRect(QRect(0, 0, width, 0), wrapped, text).height()
        return QSize(width, height + 2 * GAP)

    def _list_name(self, tr: Translate) -> str:
        return tr("Pages")

    def _moved(self, _row: int) -> None:
        """The arrow keys turn the pages; what a search found is opened by Enter or a click."""
        if not self.search.text().strip():
            self._choose(self.places.currentItem())

    def _take_first(self) -> None:
        if self.places.count():
            self._choose(self.places.item(0))

    def _choose(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            hit = item.data(_HIT)
            self.chosen.emit(hit.place, hit.path)


def _all_places(tr: Translate) -> list[Hit]:
    return [Hit(place, (), place_title(tr, place)) for place in Place]
