# SPDX-License-Identifier: Apache-2.0
"""The commands of the running companion, for the tray, the visitors and the hotkeys alike."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from app.companion.away import Away
from app.companion.messages import (
    Ask,
    CancelReply,
    Configure,
    FocusChanged,
    Forget,
    Message,
    SetMode,
)
from app.companion.state import CompanionState
from app.config.problems import Problem
from app.config.store import Changes, SettingsStore, merged
from app.lifecycle.engine_switch import EngineSwitch
from app.lifecycle.pauses import PauseReason, Pauses
from app.profiles import Surroundings, effective, fitting
from app.settings import ModeName, Settings
from engine.failures import name_of_error

_log = logging.getLogger(__name__)

# Settings that another model, another size of it or another place for it follows from.
_OF_THE_ENGINE = attrgetter(
    "model", "max_context", "engine", "remote", "residency", "suggest.context_tokens"
)


@dataclass(frozen=True, slots=True)
class HostState:
    """One moment: the companion, and what it does not know itself. `keyboard` is the product name.

    `settings` are those of the file, `profile` names the one that holds over them ("": none); the person chose
    it (`is_profile_chosen`), or it fits.
    """

    companion: CompanionState
    settings: Settings
    keyboard: str = ""
    paused_s: float | None = None
    profile: str = ""
    is_profile_chosen: bool = False
    away: Away | None = None

    @property
    def waits_for_person(self) -> bool:
        """Whether `CompanionHost.resume` does something."""
        return self.companion.is_paused or (self.away is not None and self.away.until_resumed)


Listener = Callable[[HostState], None]


class CompanionHost:
    """Any thread may call any method; none of them waits for the companion, the engine or a device."""

    def __init__(
        self,
        post: Callable[[Message], None],
        engine: EngineSwitch,
        store: SettingsStore,
        overrides: Changes,
        *,
        keyboard_name: Callable[[], str],
        show_page: Callable[[str], None],
        quit_: Callable[[], None],
        keyboard_away: Callable[[], Away | None] = lambda: None,
        keyboard_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`overrides` hold over the stored settings, until somebody changes the same ones. `keyboard_away` and
        `keyboard_back` are `away` and `come_back` of the keyboard.
        """
        self._post = post
        self._engine = engine
        self._store = store
        self._overrides = dict(overrides)
        self._keyboard_name = keyboard_name
        self._keyboard_away = keyboard_away
        self._keyboard_back = keyboard_back
        self._listeners: tuple[Listener, ...] = ()
        self._told_away: Away | None = None
        self._is_closed = False
        self._lock = threading.Lock()  # held while the file is written
        self._place_lock = threading.Lock()  # never held for long
        loaded = store.load()
        self.problems: tuple[Problem, ...] = loaded.problems
        self.settings = self._with_overrides(loaded.settings)
        self.pauses = Pauses(post)
        self.show_page = show_page
        self.quit = quit_
        self._companion: CompanionState | None = None
        self._questions = itertools.count(1)
        self._surroundings = Surroundings()
        self._profile: str | None = None
        self._chosen_profile: str | None = None

    @property
    def state(self) -> HostState | None:
        """This moment; None before the companion published anything."""
        companion = self._companion
        if companion is None:
            return None
        return HostState(
            companion, self.settings, self._keyboard_name(), self.pauses.left_s, self._profile or "",
            self._chosen_profile is not None and self._chosen_profile == self._profile,
            self._keyboard_away(),
        )  # fmt: skip

    def listen(self, listener: Listener) -> None:
        """Call `listener` with each new state, on the thread that it came on. It must return soon."""
        self._listeners = (*self._listeners, listener)

    def observe(self, companion: CompanionState) -> None:
        """A subscriber of the companion."""
        self._companion = companion
        self.pauses.observe(companion)
        name = self._keyboard_name() if companion.keyboard is not None else ""
        self._move(lambda place: replace(place, keyboard=(name,) if name else ()))
        self._tell()

    def keyboard_moved(self) -> None:
        """A watcher of the keyboard: another program may have come to it, or left it. The companion knows only
        keyboards that were ready, and publishes nothing while there is none.
        """
        if not self._is_closed and self._keyboard_away() != self._told_away:
            self._tell()

    # ---------------------------------------------------------------- commands

    def ask(self, text: str) -> int:
        """Ask the model; the number of the question in `CompanionState.asked`.

        Raises:
            ValueError: blank, or too long.
        """
        number = next(self._questions)
        self._post(Ask(text, number))
        return number

    def cancel(self) -> None:
        self._post(CancelReply())

    def set_mode(self, mode: ModeName) -> None:
        """Until the next start; the setting stays as it is."""
        self._post(SetMode(mode))

    def next_mode(self) -> None:
        state = self._companion
        if state is not None:
            names = list(ModeName)
            self.set_mode(names[(names.index(state.chosen) + 1) % len(names)])

    def choose_profile(self, name: str | None) -> None:
        """Work by the profile `name` until the next start; None: by the one that fits."""
        with self._place_lock:
            self._chosen_profile = name
            self._follow_profile()
        self._tell()

    def resume(self) -> None:
        """The person wants to go on: after a pause, and after another program had the keyboard."""
        self.pauses.resume()
        self._keyboard_back()

    def toggle_pause(self) -> None:
        state = self.state
        if state is not None and state.waits_for_person:
            self.resume()
        else:
            self.pauses.pause()

    def forget(self) -> None:
        self._post(Forget())

    def load_model(self) -> None:
        self._engine.load(self.settings)

    def unload_model(self) -> None:
        self._engine.unload()

    def reply(self) -> str:
        """The last answer in full."""
        return "" if self._companion is None else self._companion.reply

    def change_settings(self, changes: Changes) -> Settings:
        """Store part of the settings and work by it at once.

        Raises:
            SettingsError: nothing was changed.
        """
        with self._lock:
            stored = self._store.change(changes)
            self._overrides = {k: v for k, v in self._overrides.items() if k not in changes}
            old, self.settings = self.settings, self._with_overrides(stored)
            self.problems = self._store.load().problems
            with self._place_lock:
                self._follow_profile()
            if _OF_THE_ENGINE(old) != _OF_THE_ENGINE(self.settings):
                self._engine.load(self.settings)
        self._tell()
        return self.settings

    def application_changed(self, name: str) -> None:
        """Another program is in front; "": which one is not known."""
        self._post(FocusChanged())
        self._move(lambda place: replace(place, application=name))

    def close(self) -> None:
        """Nothing happens by itself any more."""
        self._is_closed = True
        self.pauses.close()

    def _with_overrides(self, settings: Settings) -> Settings:
        if not self._overrides:
            return settings
        values: dict[str, Any] = settings.model_dump()
        return Settings.model_validate(merged(values, self._overrides))

    def _move(self, change: Callable[[Surroundings], Surroundings]) -> None:
        with self._place_lock:
            now = change(self._surroundings)
            if now == self._surroundings:
                return
            self._surroundings = now
            if self._wanted_profile() == self._profile:
                return
            self._follow_profile()
        self._tell()

    def _wanted_profile(self) -> str | None:
        if self._chosen_profile in self.settings.profiles:
            return self._chosen_profile
        return fitting(self.settings.profiles, self._surroundings)

    def _follow_profile(self) -> None:
        """Work by the settings as they are here and now."""
        self._profile = self._wanted_profile()
        self._post(Configure(effective(self.settings, self._profile)))
        if self._profile is not None and self.settings.profiles[self._profile].off:
            self.pauses.begin(PauseReason.PROFILE)
        else:
            self.pauses.end(PauseReason.PROFILE)

    def _tell(self) -> None:
        state = self.state
        if state is None:
            return
        self._told_away = state.away
        for listener in self._listeners:
            try:
                listener(state)
            except Exception as error:  # noqa: BLE001  one listener must not keep the others from it
                _log.error("a listener failed with %s", name_of_error(error))
