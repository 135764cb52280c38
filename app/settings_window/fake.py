# SPDX-License-Identifier: Apache-2.0
"""A companion and a settings file that live in memory: for tests, and to try the window alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.config.problems import Problem
from app.config.store import Changes, Loaded, merged
from app.settings import ModeName, Settings
from app.settings_window.ports import (
    Answer,
    BoardShape,
    CompanionView,
    Presence,
    PressedKey,
    Preview,
    SettingsRefusedError,
)
from firmware_bridge.display.frame import TextFrame
from firmware_bridge.lights.overlay import LightEffect, LightOverlay, Rgb
from firmware_bridge.protocol.messages import Status

BOARD = BoardShape(width=128, height=32, led_count=16)


class FakeSettings:
    """Settings in memory. As long as `refuse` is not empty, changes fail with this text."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._stored = self.settings.model_dump(mode="json", exclude_defaults=True)
        self.problems: tuple[Problem, ...] = ()
        self.refuse = ""
        self._listeners: list[Callable[[Settings], None]] = []

    def load(self) -> Loaded:
        return Loaded(self.settings, self.problems)

    def change(self, changes: Changes) -> Settings:
        if self.refuse:
            raise SettingsRefusedError(self.refuse)
        self._stored = merged(self._stored, changes)
        self.settings = Settings.model_validate(self._stored)
        return self.settings

    def watch_settings(self, listener: Callable[[Settings], None]) -> None:
        self._listeners.append(listener)

    def changed_elsewhere(self, settings: Settings) -> None:
        """As the mode key of the keyboard does."""
        self.settings = settings
        self._stored = settings.model_dump(mode="json", exclude_defaults=True)
        for listener in self._listeners:
            listener(settings)


class FakeCompanion:
    """A keyboard that shows a greeting, and a model that answers with what it was asked."""

    def __init__(self) -> None:
        self.view = CompanionView(
            presence=Presence.HERE, mode="suggest", status=Status.LISTENING, engine="ready",
            model="smollm2", keyboard="Thock virtual keyboard", board=BOARD,
        )  # fmt: skip
        self.preview = Preview(
            BOARD,
            TextFrame(("Hello", "1 world", "2 there", "3 again")),
            Status.LISTENING,
            LightOverlay(Rgb(0, 79, 57), LightEffect.SOLID, {2: Rgb(107, 47, 0)}),
        )
        self.is_watched = False
        self.is_capturing = False
        self.forgotten = 0
        self.want_page: Callable[[str], None] = lambda _: None
        self._views: list[Callable[[CompanionView], None]] = []
        self._previews: Callable[[Preview], None] | None = None
        self._keys: Callable[[PressedKey], None] | None = None

    def watch_state(self, listener: Callable[[CompanionView], None]) -> None:
        self._views.append(listener)
        listener(self.view)

    def watch_pages(self, listener: Callable[[str], None]) -> None:
        self.want_page = listener

    def become(self, view: CompanionView) -> None:
        """Another state."""
        self.view = view
        for listener in self._views:
            listener(view)

    def watch_preview(self, listener: Callable[[Preview], None] | None) -> None:
        self._previews = listener
        self.is_watched = listener is not None
        if listener is not None:
            listener(self.preview)

    def show(self, preview: Preview) -> None:
        """Another picture on the keyboard."""
        self.preview = preview
        if self._previews is not None:
            self._previews(preview)

    def capture_key(self, listener: Callable[[PressedKey], None] | None) -> None:
        self._keys = listener
        self.is_capturing = listener is not None

    def press(self, key: PressedKey) -> None:
        """A key of the keyboard goes down."""
        listener, self._keys = self._keys, None
        self.is_capturing = False
        if listener is not None:
            listener(key)

    def ask(self, text: str, listener: Callable[[Answer], None]) -> None:
        listener(Answer(text[: len(text) // 2]))
        listener(Answer(text, is_finished=True))

    def stop_asking(self) -> None:
        pass  # the whole answer was told at once

    def load_model(self) -> None:
        self.become(replace(self.view, engine="ready"))

    def unload_model(self) -> None:
        self.become(replace(self.view, engine="stopped"))

    def cancel(self) -> None:
        self.become(replace(self.view, status=Status.LISTENING))

    def pause(self, minutes: float | None = None) -> None:
        paused_s = None if minutes is None else minutes * 60
        self.become(replace(self.view, is_paused=True, paused_s=paused_s))

    def resume(self) -> None:
        self.become(replace(self.view, is_paused=False, paused_s=None, away="", is_left_open=False))

    def set_mode(self, mode: ModeName) -> None:
        self.become(replace(self.view, mode=mode.value))

    def reply(self) -> str:
        return "An answer of before."

    def forget(self) -> None:
        self.forgotten += 1
