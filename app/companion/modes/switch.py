# SPDX-License-Identifier: Apache-2.0
"""Which mode is on, and chat as a guest: it comes with a question of another mode and goes by itself."""

from __future__ import annotations

from collections.abc import Iterator

from app.companion.context import Edit
from app.companion.modes.base import Desk, Mode
from app.companion.modes.chat import ChatMode
from app.companion.modes.react import ReactMode
from app.companion.modes.suggest import SuggestMode
from app.settings import ModeName


class Modes:
    """The three modes of one desk; `now` is the one that is on.

    While the keyboard holds keys back, they are a question; commands and the window ask some too. If chat is
    not on, it is a guest for so long: until there is neither a capture nor a reply, or the person types on
    after the answer.
    """

    def __init__(self, desk: Desk, first: ModeName) -> None:
        self._desk = desk
        self._is_capturing = False
        self.furnish(first)
        self.now.enter()

    def furnish(self, name: ModeName) -> None:
        """Make all of them anew from the desk's settings, empty. `name` is on, and not entered yet."""
        self.chat = ChatMode(self._desk)
        self.suggest = SuggestMode(self._desk)
        self._all: dict[ModeName, Mode] = {
            ModeName.SUGGEST: self.suggest,
            ModeName.CHAT: self.chat,
            ModeName.REACT: ReactMode(self._desk),
        }
        self.now: Mode = self._all[name]
        self._host: ModeName | None = None  # whose place chat has for a while

    def __iter__(self) -> Iterator[Mode]:
        return iter(self._all.values())

    @property
    def chosen(self) -> ModeName:
        """The mode that the person chose."""
        return self._host or self.now.name

    @property
    def next_name(self) -> ModeName:
        """The mode after the chosen one."""
        names = list(ModeName)
        return names[(names.index(self.chosen) + 1) % len(names)]

    def choose(self, name: ModeName, *, enter: bool = True) -> bool:
        """The person wants mode `name`; False if it was on already."""
        is_other = name is not self.now.name
        self._host = None
        if is_other:
            self._turn_to(name, enter=enter)
        return is_other

    @property
    def is_typed_into(self) -> bool:
        """Whether a key goes to the mode that is on, and not to the one in whose place it is."""
        return self._host is None or self._is_capturing

    def capture_began(self) -> None:
        """The keys from now on are a question."""
        self._is_capturing = True
        self.invite_chat()

    def invite_chat(self) -> None:
        """Chat is to answer something, in whatever mode the person is."""
        if self.now is not self.chat:
            host = self.now.name
            # Not entered: what stands in the person's window does not change.
            self._turn_to(ModeName.CHAT, enter=False)
            self._host = host

    def capture_ended(self) -> None:
        """Keys go to the computer again."""
        self._is_capturing = False
        self.settle()

    def settle(self, *, enter: bool = True) -> None:
        """A guest with nothing to show leaves: its reply was cancelled, failed, or was wiped."""
        if self._host is not None and not (self._is_capturing or self.chat.is_showing_reply):
            self._go_back(enter=enter)

    def edited(self, edit: Edit, at: float, *, captured: bool) -> None:
        """A key changed the text, of the question or of the person's window."""
        if self._host is not None and not captured and not self._is_capturing:
            if self.chat.is_answering:
                self._desk.context.apply(edit)
                return
            self._go_back()
        self.now.edited(edit, at)

    def _go_back(self, *, enter: bool = True) -> None:
        host, self._host = self._host, None
        if host is not None:
            self._turn_to(host, enter=enter)

    def _turn_to(self, name: ModeName, *, enter: bool) -> None:
        self.now.leave()
        self._desk.ready.wipe()
        self.now = self._all[name]
        if enter:
            self.now.enter()
