# SPDX-License-Identifier: Apache-2.0
"""Texts that are said anew when the language changes, without building the window again."""

from __future__ import annotations

from collections.abc import Callable

from app.i18n import Translate

Say = Callable[[str], object]
Make = Callable[[Translate], str]


class Wording:
    """Where the texts of one part of the window come from.

    `say(label.setText, lambda tr: tr("Text"))` sets the text now and at each change of language. A part
    whose widgets come and go has a branch, and closes it before the widgets go.
    """

    def __init__(self, tr: Translate, root: Wording | None = None) -> None:
        self.tr = tr
        self._root = root
        self._says: list[tuple[Say, Make]] = []
        self._branches: list[Wording] = []

    def say(self, put: Say, make: Make) -> None:
        """Put what `make` makes of the present language, now and after each change."""
        self._says.append((put, make))
        put(make(self.tr))

    def again(self) -> None:
        """Say everything once more: what the texts are made of has changed."""
        self.speak(self.tr)

    def speak(self, tr: Translate) -> None:
        """Another language from now on."""
        self.tr = tr
        for put, make in self._says:
            put(make(tr))
        for branch in tuple(self._branches):
            branch.speak(tr)

    def branch(self) -> Wording:
        """For widgets that live shorter than this."""
        branch = Wording(self.tr, self)
        self._branches.append(branch)
        return branch

    def close(self) -> None:
        """Say nothing any more."""
        self._says.clear()
        self._branches.clear()
        if self._root is not None:
            self._root._branches.remove(self)
            self._root = None


def translated(tr: Translate, text: str) -> str:
    """`tr` of a text that may be empty: gettext gives the catalog's head for that."""
    return tr(text) if text else ""
