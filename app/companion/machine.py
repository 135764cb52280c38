# SPDX-License-Identifier: Apache-2.0
"""The companion's rules, without a thread: messages and the passing of time in, outputs out.

Every output is a function of the state. After each message the view is made anew, and what differs
from what the keyboard was told last is sent. So nothing that is out of date stays on the display.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from app.companion import messages as to_companion
from app.companion.context import TextUnknown
from app.companion.engine_watch import EngineWatch
from app.companion.key_edits import KeyEdits, KeyEvent
from app.companion.lights import LightRules, load_palette
from app.companion.messages import EngineChanged, Message
from app.companion.modes.base import Desk, Mode, View
from app.companion.modes.chat import ChatMode
from app.companion.modes.react import ReactMode
from app.companion.modes.suggest import SuggestMode
from app.companion.notice import Notice
from app.companion.output import Output
from app.companion.overlays import engine_text, engine_view, paused_view
from app.companion.ports import EnginePort, KeyboardPort
from app.companion.rest import Rest
from app.companion.screen import Screen
from app.companion.state import CompanionState
from app.companion.status_bar import Privacy, Situation
from app.companion.words import failure_text, mode_name
from app.settings import ModeName, Settings
from engine.messages import Event, Failed, Forgotten, Hello, ModelLoaded
from firmware_bridge.display.spelling import is_plain
from firmware_bridge.events import (
    CaptureEnded,
    CaptureStarted,
    EventsDropped,
    KeyPressed,
    KeyReleased,
    LinkLost,
    LinkReady,
    MacroTriggered,
    SuggestionAccepted,
)
from firmware_bridge.keys.layout import load_layout
from firmware_bridge.keys.text_events import KeyText
from firmware_bridge.protocol.capabilities import Capabilities, Feature


class MacroKey(enum.IntEnum):
    """What the companion keys of the firmware do. Higher numbers are causes for react mode."""

    NEXT_MODE = 0
    ASK = 1
    PAUSE = 2
    CANCEL = 3


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
        self._now = clock
        self._desk = Desk(engine, settings, load_palette(), clock)
        self._furnish(settings)
        self._mode = self._modes[settings.mode]
        self._engine = EngineWatch(self._desk)
        self._notice = Notice()
        self._rest = Rest(settings.display.off_s, settings.idle_wipe_s)
        self._is_paused = False
        self._dropped = 0
        self._board: Capabilities | None = None
        self._screen = Screen(settings.display.text_size)
        self._light_rules = LightRules(settings.lights)
        self._out = Output(keyboard, self._screen, self._light_rules)
        self._mode.enter()
        self.is_stopped = False

    def _furnish(self, settings: Settings) -> None:
        """All that is made from the settings, empty."""
        self._keys = KeyEdits(
            KeyText(load_layout(settings.layout)), settings.key_repeat_s, self._now
        )
        self._chat = ChatMode(self._desk)
        self._modes: dict[ModeName, Mode] = {
            ModeName.SUGGEST: SuggestMode(self._desk),
            ModeName.CHAT: self._chat,
            ModeName.REACT: ReactMode(self._desk),
        }

    # ---------------------------------------------------------------- what comes in

    def handle(self, message: Message) -> None:
        """Take one message. `wake` is to follow: it sends what changed."""
        self._rest.stay_awake(message, self._now())
        match message:
            case KeyPressed() | KeyReleased():
                self._edit(message)
            case MacroTriggered(number=number):
                self._macro(number)
            case EventsDropped(count=count):
                self._dropped += count
                self._edit(message)
                self._notify_lost(count)
            case LinkReady(capabilities=capabilities):
                self._connect(capabilities)
            case LinkLost():
                self._board = None
                self._edit(message)
            case EngineChanged():
                self._engine_changed(message)
            case Failed():
                self._failed(message)
            case ModelLoaded():
                self._engine.loaded(message)
            case Hello() | Forgotten() | CaptureStarted() | CaptureEnded() | SuggestionAccepted():
                pass  # nothing depends on them
            case (
                to_companion.SetMode()
                | to_companion.Ask()
                | to_companion.Pause()
                | to_companion.Resume()
                | to_companion.CancelReply()
                | to_companion.Forget()
                | to_companion.Configure()
                | to_companion.FocusChanged()
                | to_companion.Stop()
            ):
                self._command(message)
            case _:
                if self._answered(message):
                    self._engine.error = ""

    @property
    def deadline(self) -> float | None:
        """When `wake` is to be called, if no message comes before."""
        if self.is_stopped:
            return None
        times = [
            self._mode.deadline,
            self._rest.deadline,
            self._notice.deadline,
            self._out.deadline,
        ]
        return min((time for time in times if time is not None), default=None)

    def wake(self) -> None:
        """Do what is due by now, and send what changed. After a Stop nothing is."""
        if self.is_stopped:
            return
        now = self._now()
        if self._rest.falls_asleep(now):
            self._wipe()
        if self._rest.falls_dark(now, is_busy=self._out.is_busy):
            # The keyboard shows its own screen, or darkens it.
            self._out.release()
        self._notice.wake(now)
        self._mode.wake()
        if not self._rest.is_dark:
            self._out.send(self._view(), self._situation(), self._desk.size, now)
        self._desk.ready.expect(None if self._is_paused else self._mode.question)

    def failed(self, error: str) -> None:
        """Something in here raised; `error` names it without content."""
        self._engine.error = error
        self._notify(self._desk.tr("internal error"))

    def state(self) -> CompanionState:
        """What there is to know of this moment."""
        return CompanionState(
            mode=self._mode.name,
            status=self._out.status,
            is_paused=self._is_paused,
            engine=self._engine.state,
            engine_detail=self._engine.detail,
            model=self._engine.model,
            keyboard=self._board,
            dropped=self._dropped,
            error=self._engine.error,
            latency=self._desk.latency,
            frame=self._out.frame,
            lines=self._out.lines,
            lights=self._out.overlay,
            reply=self._mode.reply,
            ready=self._desk.ready.stats,
        )

    # ---------------------------------------------------------------- keys and keyboard

    def _edit(self, event: KeyEvent) -> None:
        if self._is_paused:
            self._keys.follow(event)
            return
        for edit, at in self._keys.take(event):
            self._mode.edited(edit, at)

    def _connect(self, capabilities: Capabilities) -> None:
        self._board = capabilities
        self._screen.connect(capabilities)

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
        if self._engine.changed(change):
            self._mode.engine_came()
        elif not self._desk.engine_ready:
            self._desk.ready.engine_left()
            for mode in self._modes.values():
                mode.engine_left()

    def _answered(self, event: Event) -> bool:
        """Whether it answers what somebody asked for."""
        is_ahead = self._desk.ready.answered(event)
        for mode in self._modes.values() if not is_ahead else ():
            mode.answered(event)
        if self._engine.answered():
            self._mode.engine_came()
        return not is_ahead

    def _failed(self, event: Failed) -> None:
        if not self._answered(event):
            return  # the same question may be asked yet; then the person is told
        if code := self._engine.failed(event):
            self._notify(failure_text(code, self._desk.tr))

    # ---------------------------------------------------------------- commands

    def _command(self, command: to_companion.CompanionCommand) -> None:
        tr = self._desk.tr
        match command:
            case to_companion.SetMode(mode=mode):
                self._set_mode(mode)
            case to_companion.Ask(text=text) if not self._is_paused:
                self._set_mode(ModeName.CHAT)
                self._chat.ask(text, self._now())
            case to_companion.Ask():
                self._notify(tr("paused: not asked"))
            case to_companion.Pause():
                self._pause()
            case to_companion.Resume():
                self._resume()
            case to_companion.CancelReply():
                self._mode.cancel()
            case to_companion.Forget():
                self._wipe()
                self._notify(tr("forgotten"))
            case to_companion.FocusChanged() if not self._is_paused:
                self._keys.forget()
                self._mode.edited(TextUnknown(), self._now())
            case to_companion.FocusChanged():
                pass  # no text is kept
            case to_companion.Configure(settings=settings):
                self._configure(settings)
            case to_companion.Stop():
                self.is_stopped = True
                self._wipe()
                self._out.release()

    def _configure(self, settings: Settings) -> None:
        """Other settings: what is made from them is made anew, so what was typed so far is forgotten."""
        old = self._desk.settings
        if settings == old:
            return
        name = self._mode.name if settings.mode is old.mode else settings.mode
        self._mode.leave()
        self._wipe()
        self._desk.configure(settings)
        self._screen.configure(settings.display.text_size)
        self._light_rules.configure(settings.lights)
        self._rest.configure(settings.display.off_s, settings.idle_wipe_s, self._now())
        self._furnish(settings)
        self._mode = self._modes[name]
        if not self._is_paused:
            self._mode.enter()

    def _set_mode(self, name: ModeName) -> None:
        if name is self._mode.name:
            return
        tr = self._desk.tr
        self._mode.leave()
        self._desk.ready.wipe()
        self._mode = self._modes[name]
        if not self._is_paused:
            self._mode.enter()
        self._notify(tr("mode: {name}").format(name=mode_name(name, tr)))

    def _pause(self) -> None:
        self._is_paused = True
        self._wipe()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._mode.enter()

    def _wipe(self) -> None:
        """Forget every text, here and in the engine."""
        self._keys.forget()
        self._desk.context.wipe()
        self._screen.forget()
        for mode in self._modes.values():
            mode.wipe()
        self._desk.ready.wipe()
        self._engine.forget_content()

    # ---------------------------------------------------------------- what is seen

    def _notify_lost(self, count: int) -> None:
        tr = self._desk.tr
        text = tr("1 key lost") if count == 1 else tr("{count} keys lost").format(count=count)
        self._notify(text)

    def _notify(self, text: str) -> None:
        self._notice.say(text, self._now())

    def _view(self) -> View:
        desk, engine, tr = self._desk, self._engine, self._desk.tr
        if self._is_paused:
            self._fit(not is_plain(tr("paused") + tr("No keys are read.")))
            view = paused_view(desk.size, tr)
        elif text := engine_text(engine.state, engine.detail, tr):
            typed = self._mode.typed
            self._fit(not is_plain(text + typed))
            view = engine_view(engine.state, text, typed, desk.size, desk.palette)
        else:
            self._fit(self._mode.needs_pixels)
            view = self._mode.view()
        return self._notice.over(view, desk.size)

    def _fit(self, needs_pixels: bool) -> None:
        """Have the desk's size in the font that shows what is to be seen."""
        size = self._screen.size(needs_pixels or not is_plain(self._notice.text))
        if size != self._desk.size:
            self._desk.size = size
            for mode in self._modes.values():
                mode.resized()

    def _situation(self) -> Situation:
        if self._is_paused:
            privacy = Privacy.PAUSED
        elif self._board is not None and Feature.KEYS not in self._board.features:
            privacy = Privacy.DEAF
        else:
            privacy = Privacy.READING
        return Situation(privacy, self._mode.name, self._engine.state)
