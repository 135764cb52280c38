# SPDX-License-Identifier: Apache-2.0
"""Profiles: other settings while a program is in front, or with a keyboard."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QComboBox, QInputDialog, QLineEdit, QWidget

from app.i18n import told
from app.settings_window.edits import Problem
from app.settings_window.fields import FieldSpec, fields_of
from app.settings_window.form import Form
from app.settings_window.labels import Place
from app.settings_window.offers import with_offers
from app.settings_window.pages.base import PageTools, PageView
from app.settings_window.theme import ROW_GAP
from app.settings_window.widgets import Card, button, label, side_by_side
from app.settings_window.wording import Wording

PROFILES = ("profiles",)


class ProfilesPage(PageView):
    """One profile at a time: a box to choose it, buttons, and its generated form."""

    def __init__(self, tools: PageTools) -> None:
        super().__init__(Place.PROFILES, tools)
        self.add_intro(
            lambda tr: tr(
                "A profile holds while one of its programs is in front, or with one of its keyboards. What "
                "it leaves open is as in the settings."
            )
        )
        self._spec: FieldSpec = tools.edits.field(PROFILES)
        self.name = ""
        self.box = QComboBox()
        self.words.say(self.box.setAccessibleName, lambda tr: tr("Profile"))
        tools.guard.guard(self.box)
        self.box.activated.connect(lambda index: self.choose(self.box.itemText(index)))
        self.new = button(self.words, lambda tr: tr("New…"))
        self.new.clicked.connect(self._ask_new)
        self.rename = button(self.words, lambda tr: tr("Rename…"))
        self.rename.clicked.connect(self._ask_rename)
        self.remove = button(self.words, lambda tr: tr("Remove"))
        self.remove.clicked.connect(self.remove_profile)
        card = Card()
        card.add(side_by_side(self.box, self.new, self.rename, self.remove))
        self.add(card)
        self.trouble = label(self.words, lambda _: "", "problem")
        self.trouble.hide()
        self.add(self.trouble)
        self.empty = label(self.words, lambda tr: tr("There is no profile yet."), "hint")
        self.empty.setContentsMargins(ROW_GAP, 0, 0, 0)
        self.add(self.empty)
        self._form_words: Wording | None = None
        self.form: Form | None = None
        self.finish()
        tools.edits.listen(self._changed)
        self._changed()

    @property
    def profiles(self) -> Mapping[str, object]:
        """The profiles by name, in the order of the file."""
        value = self.tools.edits.value(PROFILES)
        assert isinstance(value, Mapping)
        return value

    def choose(self, name: str) -> None:
        """Show this profile."""
        self.name = name
        self._changed()

    def add_profile(self, name: str) -> None:
        """A new one, which fits nothing yet."""
        assert self._spec.item is not None
        self._try(name, {**self.profiles, name: self._spec.item()})

    def rename_profile(self, name: str) -> None:
        """The one that is shown; it goes to the end of the list."""
        renamed = {name if key == self.name else key: p for key, p in self.profiles.items()}
        self._try(name, renamed)

    def remove_profile(self) -> None:
        """The one that is shown; Undo brings it back."""
        left = {key: p for key, p in self.profiles.items() if key != self.name}
        self._try(next(iter(left), ""), left)

    def _try(self, name: str, profiles: Mapping[str, object]) -> None:
        shown, self.name = self.name, name
        problem = self.tools.edits.change(PROFILES, profiles)
        if problem is not None:
            self.name = shown
        self._tell(problem)

    def _tell(self, problem: Problem | None) -> None:
        text = "" if problem is None else f"⚠ {told(self.words.tr, problem.text)}"
        self.trouble.setText(text)
        self.trouble.setVisible(problem is not None)

    def _changed(self) -> None:
        names = list(self.profiles)
        if self.name not in names:
            self.name = names[0] if names else ""
        self.box.clear()
        self.box.addItems(names)
        self.box.setCurrentText(self.name)
        for widget in (self.box, self.rename, self.remove):
            widget.setEnabled(bool(names))
        self.empty.setVisible(not names)
        self._show_form()

    def _show_form(self) -> None:
        """The form of the profile that is chosen; the same one stays, or the focus would be lost."""
        if self.form is not None and self.form.objectName() == self.name:
            return
        if self.form is not None and self._form_words is not None:
            self._form_words.close()
            self.form.close_rows()
            self.form.hide()
            self.form.deleteLater()
            self.form = None
        if self.name:
            self._form_words = self.words.branch()
            self.form = self._make_form(self._form_words)
            self.form.setObjectName(self.name)
            self.insert_last(self.form)

    def _make_form(self, words: Wording) -> Form:
        assert self._spec.item is not None
        fields = fields_of(self._spec.item, (*PROFILES, self.name), self._spec.page)
        return Form(
            [with_offers(field) for field in fields], self.tools.edits, words, self.tools.guard
        )

    def _ask_new(self) -> None:
        tr = self.words.tr
        name = self._ask(tr("New profile"), "")
        if name and name not in self.profiles:
            self.add_profile(name)
        elif name:
            self.choose(name)

    def _ask_rename(self) -> None:
        name = self._ask(self.words.tr("Rename the profile"), self.name)
        if name and name not in self.profiles:
            self.rename_profile(name)

    def _ask(self, title: str, name: str) -> str:
        parent: QWidget = self
        text, is_ok = QInputDialog.getText(
            parent, title, self.words.tr("Name"), QLineEdit.EchoMode.Normal, name
        )
        return text.strip() if is_ok else ""
