# SPDX-License-Identifier: Apache-2.0
"""The companion's rules, without a thread: messages and the passing of time in, outputs out.

Every output is a function of the state. After each message the view is made anew, and what differs
from what the keyboard was told last is sent. So nothing that is out of date stays on the display.
"""

from __future__ import annotations

import enum
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.companion import messages as to_companion
from app.companion.context import TextUnknown
from app.companion.lights import load_palette
from app.companion.messages import EngineChanged, Message
from app.companion.modes.base import Desk, Mode, View
from app.companion.modes.chat import ChatMode
from app.companion.modes.react import ReactMode
from app.companion.modes.suggest import SuggestMode
from app.companion.output import Output
from app.companion.overlays import PAUSED_VIEW, engine_view, with_notice
from app.companion.picture import Size
from app.companion.ports import EnginePort, KeyboardPort
from app.companion.state import CompanionState
from app.settings import ModeName, Settings
from engine.client import EngineState
from engine.messages import Event, Failed, Forget, Forgotten, Hello, ModelLoaded
from firmware_bridge.events import (
    BridgeEvent,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    LinkLost,
    LinkReady,
    MacroTriggered,
)
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.text_events import KeyText
from firmware_bridge.protocol.capabilities import Capabilities

NOTICE_S = 2.0
# Requests that ended with the engine: its state tells the same, and more.
_ENDED_WITH_ENGINE = ("engine-died", "engine-stopped")

_log = logging.getLogger(__name__)


class MacroKey(enum.IntEnum):
    """What the companion keys of the firmware do. Higher numbers are causes for react mode."""

    NEXT_MODE = 0
    ASK = 1
    PAUSE = 2
    CANCEL = 3


@dataclass(frozen=True, slots=True)
class _HeldKey:
    """The newest key that changed the text, while nothing else was pressed after it."""

    place: tuple[int, int] = field(repr=False)
    since: float


class CompanionMachine:
    """All state of the companion. One thread calls it; nothing in it waits.

    Raises (by the constructor):
        ValueError: there is no keyboard layout of the name in `settings`.
    """

    def __init__(
        self,
        keyboard: KeyboardPort,
        engine: EnginePort,
        settings: Settings,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._now = clock
        self._keys = KeyText(load_layout(settings.layout))
        self._held: _HeldKey | None = None
        self._desk = Desk(engine, settings, load_palette(), clock)
        self._chat = ChatMode(self._desk)
        self._modes: dict[ModeName, Mode] = {
            ModeName.SUGGEST: SuggestMode(self._desk),
            ModeName.CHAT: self._chat,
            ModeName.REACT: ReactMode(self._desk),
        }
        self._mode = self._modes[settings.mode]
        self._is_paused = False
        self._forget_owed = False
        self._is_asleep = False
        self._engine = EngineState.STOPPED
        self._engine_detail = ""
        self._model = ""
        self._dropped = 0
        self._error = ""
        self._notice = ""
        self._notice_until = 0.0
        self._sleep_at: float | None = None
        self._board: Capabilities | None = None
        self._out = Output(keyboard)
        self._mode.enter()
        self.is_stopped = False

    # ---------------------------------------------------------------- what comes in

    def handle(self, message: Message) -> None:
        """Take one message. `wake` is to follow: it sends what changed."""
        self._stay_awake(message)
        match message:
            case KeyPressed():
                self._key_pressed(message)
            case KeyReleased():
                self._keys.feed(message)
                if self._held is not None and self._held.place == (message.row, message.column):
                    self._end_hold(message.host_s)
            case MacroTriggered(number=number):
                self._macro(number)
            case EventsDropped(count=count):
                self._dropped += count
                self._lose_track(message)
                self._notify("1 key lost" if count == 1 else f"{count} keys lost")
            case LinkReady(capabilities=capabilities):
                self._connect(capabilities)
            case LinkLost():
                self._board = None
                self._lose_track(message)
            case EngineChanged():
                self._engine_changed(message)
            case Failed():
                self._failed(message)
            case ModelLoaded():
                self._model = message.name
                self._error = ""
            case Hello() | Forgotten():
                pass  # nothing depends on them
            case (
                to_companion.SetMode()
                | to_companion.Ask()
                | to_companion.Pause()
                | to_companion.Resume()
                | to_companion.CancelReply()
                | to_companion.Forget()
                | to_companion.Stop()
            ):
                self._command(message)
            case _:
                self._error = ""
                self._answered(message)

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called, if no message comes before."""
        if self.is_stopped:
            return None
        times = [
            self._mode.deadline,
            self._sleep_at,
            self._notice_until if self._notice else None,
            self._out.deadline,
        ]
        return min((time for time in times if time is not None), default=None)

    def wake(self) -> None:
        """Do what is due by now, and send what changed. After a Stop nothing is."""
        if self.is_stopped:
            return
        now = self._now()
        if self._sleep_at is not None and now >= self._sleep_at:
            self._fall_asleep()
        if self._notice and now >= self._notice_until:
            self._notice = ""
        self._mode.wake()
        if not self._is_asleep:
            self._out.send(self._view(), self._desk.size, now)

    def failed(self, error: str) -> None:
        """Something in here raised; `error` names it without content."""
        self._error = error
        self._notify("internal error")

    def state(self) -> CompanionState:
        """What there is to know of this moment."""
        return CompanionState(
            mode=self._mode.name,
            status=self._out.status,
            is_paused=self._is_paused,
            engine=self._engine,
            engine_detail=self._engine_detail,
            model=self._model,
            keyboard=self._board,
            dropped=self._dropped,
            error=self._error,
            latency=self._desk.latency,
            frame=self._out.frame,
            reply=self._mode.reply,
        )

    # ---------------------------------------------------------------- keys and keyboard

    def _key_pressed(self, event: KeyPressed) -> None:
        edit = self._keys.feed(event)
        if self._is_paused:
            return
        self._end_hold(event.host_s)
        if edit is not None:
            self._held = _HeldKey((event.row, event.column), event.host_s)
            self._mode.edited(edit, event.host_s)

    def _end_hold(self, at: float) -> None:
        """The system repeats the newest key while it is held: then the text is unknown."""
        held, self._held = self._held, None
        if held is not None and at - held.since >= self._settings.key_repeat_s:
            self._mode.edited(TextUnknown(), at)

    def _lose_track(self, event: EventsDropped | LinkLost) -> None:
        self._keys.feed(event)
        self._held = None
        if not self._is_paused:
            self._mode.edited(TextUnknown(), self._now())

    def _connect(self, capabilities: Capabilities) -> None:
        self._board = capabilities
        if capabilities.has_display:
            self._desk.size = Size(capabilities.columns, capabilities.rows)
            for mode in self._modes.values():
                mode.resized()

    def _macro(self, number: int) -> None:
        if self._is_paused and number != MacroKey.PAUSE:
            return
        match number:
            case MacroKey.NEXT_MODE:
                names = list(ModeName)
                self._set_mode(names[(names.index(self._mode.name) + 1) % len(names)])
            case MacroKey.ASK:
                self._mode.commit()
            case MacroKey.PAUSE if self._is_paused:
                self._resume()
            case MacroKey.PAUSE:
                self._pause()
            case MacroKey.CANCEL:
                self._mode.cancel()
            case _:
                self._mode.macro(number)

    # ---------------------------------------------------------------- engine

    def _engine_changed(self, change: EngineChanged) -> None:
        was_ready = self._desk.engine_ready
        self._engine = change.state
        self._engine_detail = _brief(change.detail, self._settings.model)
        self._desk.engine_ready = change.state is EngineState.READY
        self._forget_owed = False  # another child has nothing to forget
        if self._desk.engine_ready and not was_ready:
            self._mode.engine_came()
        elif not self._desk.engine_ready:
            for mode in self._modes.values():
                mode.engine_left()

    def _answered(self, event: Event) -> None:
        for mode in self._modes.values():
            mode.answered(event)
        if self._engine is EngineState.READY and not self._desk.engine_ready:
            # It had refused a command because too many were open: now one is answered.
            self._desk.engine_ready = True
            if self._forget_owed:
                self._forget_in_engine()
            self._mode.engine_came()

    def _failed(self, event: Failed) -> None:
        self._answered(event)
        if event.code not in _ENDED_WITH_ENGINE:
            _log.warning("the engine could not answer: %s: %s", event.code, event.message)
            self._error = f"{event.code}: {event.message}"
            self._notify(event.code)

    # ---------------------------------------------------------------- commands

    def _command(self, command: to_companion.CompanionCommand) -> None:
        match command:
            case to_companion.SetMode(mode=mode):
                self._set_mode(mode)
            case to_companion.Ask(text=text) if not self._is_paused:
                self._set_mode(ModeName.CHAT)
                self._chat.ask(text, self._now())
            case to_companion.Ask():
                self._notify("paused: not asked")
            case to_companion.Pause():
                self._pause()
            case to_companion.Resume():
                self._resume()
            case to_companion.CancelReply():
                self._mode.cancel()
            case to_companion.Forget():
                self._wipe()
                self._notify("forgotten")
            case to_companion.Stop():
                self.is_stopped = True
                self._wipe()
                self._out.release()

    def _set_mode(self, name: ModeName) -> None:
        if name is self._mode.name:
            return
        self._mode.leave()
        self._mode = self._modes[name]
        if not self._is_paused:
            self._mode.enter()
        self._notify(f"mode: {name}")

    def _pause(self) -> None:
        self._is_paused = True
        self._wipe()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._mode.enter()

    def _stay_awake(self, message: Message) -> None:
        """Keys and commands put the idle wipe off; news of keyboard and engine only bring the display back."""
        if not isinstance(message, BridgeEvent | to_companion.CompanionCommand | EngineChanged):
            return
        self._is_asleep = False
        is_of_a_person = isinstance(
            message, KeyPressed | MacroTriggered | to_companion.CompanionCommand
        )
        if is_of_a_person or self._sleep_at is None:
            self._sleep_at = self._now() + self._settings.idle_wipe_s

    def _fall_asleep(self) -> None:
        """Nobody types: forget everything and let the keyboard show its own screen, or darken it."""
        self._sleep_at = None
        self._is_asleep = True
        self._wipe()
        self._out.release()

    def _wipe(self) -> None:
        """Forget every text, here and in the engine."""
        self._held = None
        self._desk.context.wipe()
        for mode in self._modes.values():
            mode.wipe()
        self._forget_in_engine()

    def _forget_in_engine(self) -> None:
        """Have the engine overwrite what it holds: now, or when it takes requests again."""
        self._forget_owed = self._desk.request(lambda n: Forget(request=n)) is None

    # ---------------------------------------------------------------- what is seen

    def _notify(self, text: str) -> None:
        self._notice = text
        self._notice_until = self._now() + NOTICE_S

    def _view(self) -> View:
        desk = self._desk
        if self._is_paused:
            view = PAUSED_VIEW
        else:
            view = (
                engine_view(
                    self._engine, self._engine_detail, self._mode.typed, desk.size, desk.palette
                )
                or self._mode.view()
            )
        return with_notice(view, self._notice, desk.size) if self._notice else view


def _brief(detail: str, model: Path | None) -> str:
    """What fits a display: the first line (the child's log follows it), the model without its folder."""
    line = detail.partition("\n")[0]
    return line if model is None else line.replace(f"{model.absolute().parent}{os.sep}", "")
